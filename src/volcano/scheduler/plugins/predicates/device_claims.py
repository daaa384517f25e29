"""Claims of devices (dynamic resource allocation): a pod goes where its claims are allocated.

Devices are not allocated here: a claim that is not allocated keeps its pods waiting, with a reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec
import numpy as np

from volcano.api.core import NodeSelector, Pod, ResourceClaim
from volcano.api.meta import JSON, Key
from volcano.scheduler.core.node_table import Mask, NodeTable
from volcano.scheduler.framework.answers import Refusal
from volcano.scheduler.model import ClusterObjects, Task

ELSEWHERE: Final = "resourceclaim not available on the node"
IN_USE: Final = "resourceclaim in use"
UNALLOCATED: Final = "cannot allocate all claims"
MAX_CLAIM_USERS: Final = 256
NAME: Final = "DynamicResources"


class DeviceClaims:
    def __init__(self, table: NodeTable, around: ClusterObjects) -> None:
        self._table, self._around = table, around

    def refusal(self, task: Task) -> Refusal | None:
        """Why no node need be looked at yet."""
        for name, entry in _named(task.pod):
            if name is None:
                said = f'waiting for dynamic resource controller to create the resourceclaim "{entry}"'
                return Refusal(NAME, f"plugin {NAME} pre-predicates failed {said}")
            claim = self._claim(task, name)
            if claim is None or claim.is_deleting:
                said = f'resourceclaim "{name}" {"not found" if claim is None else "is being deleted"}'
                return Refusal(NAME, f"plugin {NAME} pre-predicates failed {said}")
        return None

    def checks(self, task: Task) -> Iterator[tuple[Mask, str]]:
        """For every reason the rows refused."""
        for name, _ in _named(task.pod):
            claim = self._claim(task, name or "")
            status = claim.status if claim is not None else None
            allocation = (status or {}).get("allocation")
            if not isinstance(allocation, dict):
                yield np.ones(len(self._table), dtype=bool), UNALLOCATED
                continue
            if _is_full(status or {}, task):
                yield np.ones(len(self._table), dtype=bool), IN_USE
            selector = allocation.get("nodeSelector")
            if selector:
                yield ~self._table.labels.in_any_term(_read(selector)), ELSEWHERE

    def _claim(self, task: Task, name: str) -> ResourceClaim | None:
        return self._around.resource_claims.get(Key(task.namespace, name))


def _named(pod: Pod) -> list[tuple[str | None, str]]:
    """The claims a pod uses, with the name of the entry; None for one that is still to be made from its template."""
    made = {status.name: status for status in pod.status.resource_claim_statuses}
    found: list[tuple[str | None, str]] = []
    for entry in pod.spec.resource_claims:
        if entry.resource_claim_name:
            found.append((entry.resource_claim_name, entry.name))
        elif entry.name not in made:
            found.append((None, entry.name))
        elif made[entry.name].resource_claim_name:
            found.append((made[entry.name].resource_claim_name, entry.name))
    return found


def _is_full(status: JSON, task: Task) -> bool:
    users = [user for user in status.get("reservedFor") or () if isinstance(user, dict)]
    return len(users) >= MAX_CLAIM_USERS and not any(user.get("uid") == task.uid for user in users)


def _read(selector: JSON) -> NodeSelector:
    """A selector that cannot be read chooses no node."""
    try:
        return msgspec.convert(selector, NodeSelector)
    except msgspec.ValidationError:
        return NodeSelector()
