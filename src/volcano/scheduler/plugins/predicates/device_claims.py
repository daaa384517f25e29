"""Claims of devices (dynamic resource allocation): the nodes where a pod's ResourceClaims are or can be allocated.

What a placement of this session was given is assumed, so that no device is given twice. How devices are chosen is
core.dra; the allocation is written before the pod is bound (commit.device_steps).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import msgspec
import numpy as np

from volcano.api.core import Pod, ResourceClaim
from volcano.api.core.devices import CLAIM_PROTECTION, MAX_CLAIM_USERS
from volcano.api.meta import JSON, Key
from volcano.scheduler.core.dra.asked import ClaimAsk, UnreadableClaim, read_claim
from volcano.scheduler.core.dra.device_supply import ClaimSearch, DeviceSupply, node_selector
from volcano.scheduler.core.dra.results import allocation_result
from volcano.scheduler.core.node_table import Mask, NodeTable
from volcano.scheduler.core.node_view import NodeView
from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.framework.answers import Refusal
from volcano.scheduler.framework.record import ClaimRelease, DeviceChoice
from volcano.scheduler.model import ClusterObjects, Status, Task

ELSEWHERE: Final = "resourceclaim not available on the node"
IN_USE: Final = "resourceclaim in use"
UNALLOCATED: Final = "cannot allocate all claims"
NAME: Final = "DynamicResources"


Asked = tuple[ClaimAsk, bytes]
"""What a claim asks for, and its text: the same object for claims that ask for the same."""


class DeviceClaims:
    def __init__(self, table: NodeTable, around: ClusterObjects, snapshot: Snapshot) -> None:
        self._table, self._around, self._snapshot = table, around, snapshot
        self._supply: DeviceSupply | None = None
        self._made: dict[Key, JSON] = {}  # allocations of this session
        self._users: dict[Key, set[str]] = {}  # the tasks of this session that use a claim
        self._reserved: dict[str, tuple[DeviceChoice, ...]] = {}  # by task uid
        self._asks: dict[Key, Asked] = {}
        self._read: dict[bytes, Asked] = {}  # by what the spec says
        self._of_task: dict[str, tuple[Pod, tuple[ResourceClaim, ...]]] = {}  # by uid

    # -- before any node -----------------------------------------------------------------------------------------
    def refusal(self, task: Task) -> Refusal | None:
        """Why no node need be looked at yet."""
        for name, entry in _named(task.pod):
            if name is None:
                said = f'waiting for dynamic resource controller to create the resourceclaim "{entry}"'
                return _refusal(said)
            claim = self._claim(task, name)
            if claim is None or claim.is_deleting:
                return _refusal(f'resourceclaim "{name}" {"not found" if claim is None else "is being deleted"}')
            try:
                self._ask(claim)
            except UnreadableClaim as error:
                return _refusal(f'resourceclaim "{name}": {error}')
        return None

    def sharing_key(self, task: Task) -> Hashable:
        """Equal for tasks whose claims ask for the same and are in the same state."""
        return tuple(self._state(claim) for claim in self._claims(task))

    def is_row_local(self, task: Task) -> bool:
        """Whether a placement changes what fits on its own node alone."""
        wanted = [claim for claim in self._claims(task) if self._is_wanted(claim, task)]
        if not all(map(self._is_readable, wanted)):
            return True
        return not wanted or not self._search(wanted).uses_shared

    # -- node by node, all at once -------------------------------------------------------------------------------
    def checks(self, task: Task, nodes: NodeView) -> Iterator[tuple[Mask, str]]:
        """For every reason the entries of the view that are refused."""
        wanted: list[ResourceClaim] = []
        for claim in self._claims(task):
            if self._is_wanted(claim, task):
                wanted.append(claim)
                continue
            allocation = self._allocation(claim) or {}
            if self._is_full(claim, task):
                yield nodes.all(), IN_USE
            reachable = self._reachable(allocation)
            if not reachable.all():
                yield ~nodes.take(reachable), ELSEWHERE
        if not all(map(self._is_readable, wanted)):
            yield nodes.all(), UNALLOCATED
        elif wanted:
            yield self._unfit(wanted, nodes), UNALLOCATED

    def _unfit(self, claims: Sequence[ResourceClaim], nodes: NodeView) -> Mask:
        """Imagined copies of the task have claims of their own, which ask for the same."""
        most = int(nodes.copies.max(initial=0))
        if not most or any(self._allocation(claim) is not None for claim in claims):
            return ~nodes.take(self._fits(claims))
        refused: Mask = self._search(claims).counts(nodes.rows, most + 1) <= nodes.copies
        return refused

    def _fits(self, claims: Sequence[ResourceClaim]) -> Mask:
        held = [allocation for claim in claims if (allocation := self._allocation(claim)) is not None]
        if not held:
            return self._search(claims).fitting()
        with self._without(held):
            return self._search(claims).fitting().copy()

    def _search(self, claims: Sequence[ResourceClaim]) -> ClaimSearch:
        asks = [self._ask(claim) for claim in claims]
        return self._devices.search(tuple(text for _, text in asks), [ask for ask, _ in asks])

    @contextmanager
    def _without(self, allocations: Sequence[JSON]) -> Iterator[None]:
        """As if these were released."""
        for allocation in allocations:
            self._devices.release(allocation)
        try:
            yield
        finally:
            for allocation in allocations:
                self._devices.take(allocation)

    # -- what happened -------------------------------------------------------------------------------------------
    def reserve(self, task: Task) -> str | None:
        """Give the claims of a placed task their devices; an objection when they cannot be had any more."""
        row = self._table.index[task.node]
        claims = list(self._claims(task))
        settled, wanted = [], []
        for claim in claims:
            allocation = self._allocation(claim)
            if allocation is None or self._is_movable(claim, task.uid):
                wanted.append(claim)
            elif self._reachable(allocation)[row]:
                settled.append(DeviceChoice(claim.key, allocation, is_new=claim.key in self._made))
            else:
                return ELSEWHERE
        chosen: list[DeviceChoice] = []
        if wanted:
            freed = [allocation for claim in wanted if (allocation := self._allocation(claim)) is not None]
            with self._without(freed):
                found = self._search(wanted).places(row)
            if found is None:
                return UNALLOCATED
            for claim, devices in zip(wanted, found, strict=True):
                replaced = self._allocation(claim)
                made = allocation_result(
                    self._ask(claim)[0], claim.uid, devices, self._around.device_classes, task.node
                )
                self._devices.take(made)  # devices of the old allocation stay taken until it is removed
                self._made[claim.key] = made
                chosen.append(DeviceChoice(claim.key, made, is_new=True, replaces=replaced is not None))
        for choice in (*settled, *chosen):
            self._users.setdefault(choice.claim, set()).add(task.uid)
        self._reserved[task.uid] = (*settled, *chosen)
        return None

    def release(self, task: Task) -> None:
        for choice in self._reserved.pop(task.uid, ()):
            users = self._users.get(choice.claim, set())
            users.discard(task.uid)
            if choice.is_new and not users and choice.claim in self._made:
                self._devices.release(self._made.pop(choice.claim))

    def reserved(self, uid: str) -> tuple[DeviceChoice, ...]:
        return self._reserved.get(uid, ())

    def left_over(self) -> Iterator[ClaimRelease]:
        """The claims that hold devices, or name users, for pods that did not get a node."""
        assumed = self._around.assumed_allocations
        for key, claim in self._around.resource_claims.items():
            status = claim.status
            if not status or not status.get("allocation") or key in self._made or key in assumed:
                continue
            users = claim.users
            gone = [user for user in users if self._is_without_node(user)]
            frees = len(gone) == len(users)
            if gone or (frees and CLAIM_PROTECTION in claim.metadata.finalizers):
                yield ClaimRelease(key, tuple(str(user.get("uid")) for user in gone), frees)

    # -- claims --------------------------------------------------------------------------------------------------
    @property
    def _devices(self) -> DeviceSupply:
        if self._supply is None:
            self._supply = DeviceSupply(self._table, self._around)
        return self._supply

    def _claims(self, task: Task) -> tuple[ResourceClaim, ...]:
        known = self._of_task.get(task.uid)
        if known is None or known[0] is not task.pod:
            claims = [self._claim(task, name) for name, _ in _named(task.pod) if name]
            known = self._of_task[task.uid] = (task.pod, tuple(claim for claim in claims if claim is not None))
        return known[1]

    def _claim(self, task: Task, name: str) -> ResourceClaim | None:
        return self._around.resource_claims.get(Key(task.namespace, name))

    def _ask(self, claim: ResourceClaim) -> Asked:
        """UnreadableClaim when its spec cannot be understood."""
        key = claim.key
        known = self._asks.get(key)
        if known is None:
            text = msgspec.json.encode(claim.spec, order="deterministic")
            known = self._read.get(text)
            if known is None:
                known = self._read[text] = (read_claim(claim.spec), text)
            self._asks[key] = known
        return known

    def _is_readable(self, claim: ResourceClaim) -> bool:
        try:
            self._ask(claim)
        except UnreadableClaim:
            return False
        return True

    def _state(self, claim: ResourceClaim) -> Hashable:
        allocation = self._allocation(claim)
        if allocation is None:
            return self._ask(claim)[1] if self._is_readable(claim) else claim.key
        return (claim.key, id(allocation), len(self._users.get(claim.key, ())))

    def _allocation(self, claim: ResourceClaim) -> JSON | None:
        """What the claim has: from this session, from a write in flight, or from the API."""
        made = self._made.get(claim.key) or self._around.assumed_allocations.get(claim.key)
        stated = (claim.status or {}).get("allocation")
        return made or (stated if isinstance(stated, dict) else None)

    def _is_wanted(self, claim: ResourceClaim, task: Task) -> bool:
        """Whether devices are still to be found for it."""
        return self._allocation(claim) is None or self._is_movable(claim, task.uid)

    def _is_movable(self, claim: ResourceClaim, uid: str) -> bool:
        """Whether its allocation was left over by binds that failed: then it may be made anew for the task."""
        if claim.key in self._made or claim.key in self._around.assumed_allocations:
            return False
        users = claim.users
        if not users:
            return CLAIM_PROTECTION in claim.metadata.finalizers
        return len(users) == 1 and users[0].get("uid") == uid  # of several, one might be bound with it meanwhile

    def _is_without_node(self, user: JSON) -> bool:
        """Whether it is a pod of this scheduler that has no node and is not about to get one."""
        task = self._snapshot.tasks.get(str(user.get("uid")))
        if task is None or task.status is not Status.PENDING:
            return False
        names = self._snapshot.scheduler_names
        return names is None or task.pod.spec.scheduler_name in names

    def _is_full(self, claim: ResourceClaim, task: Task) -> bool:
        users = {str(user.get("uid")) for user in claim.users} | self._users.get(claim.key, set())
        return len(users) >= MAX_CLAIM_USERS and task.uid not in users

    def _reachable(self, allocation: JSON) -> Mask:
        selector = allocation.get("nodeSelector")
        if not selector:
            return np.ones(len(self._table), dtype=bool)
        return self._table.labels.in_any_term(node_selector(selector))


def _refusal(said: str) -> Refusal:
    return Refusal(NAME, f"plugin {NAME} pre-predicates failed {said}")


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
