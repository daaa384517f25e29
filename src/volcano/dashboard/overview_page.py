"""The first page: what waits, runs and failed, how full the cluster is, the commonest reasons, the newest changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

import msgspec

from volcano.api.core import Node
from volcano.api.pods.amounts import added, amounts_of
from volcano.api.quantity import Quantity
from volcano.dashboard.job_rows import STATES, WAITING, JobChange, JobRow
from volcano.dashboard.view import CallerView

MAX_OLDEST: Final = 8
MAX_REASONS: Final = 6
MAX_CHANGES: Final = 12
FIRST_RESOURCES: Final = ("cpu", "memory")
LAST_RESOURCES: Final = ("pods", "ephemeral-storage")
ZERO: Final = Quantity(0)


class ResourceUse(msgspec.Struct, frozen=True, rename="camel"):
    """Of all nodes, or of one."""

    name: str
    allocated: str
    allocatable: str
    free: str
    share: float


class ReasonCount(msgspec.Struct, frozen=True, rename="camel"):
    reason: str
    jobs: int
    example: str


class ClusterOverview(msgspec.Struct, frozen=True, rename="camel"):
    at: datetime
    states: dict[str, int]
    resources: list[ResourceUse]
    nodes: int
    ready_nodes: int
    oldest: list[JobRow]
    reasons: list[ReasonCount]
    changes: list[JobChange]
    sees_all_pods: bool = True


async def overview(view: CallerView) -> ClusterOverview:
    rows = await view.job_rows()
    nodes = await view.nodes()
    loads, sees_all = await view.loads(nodes)
    waiting = sorted((row for row in rows if row.state == WAITING), key=_age)
    changes = [each for each in view.changes() if view.jobs_sight.sees(each.namespace)]
    counts = Counter(row.state for row in rows)
    return ClusterOverview(
        view.now,
        {state: counts[state] for state in STATES},
        resource_uses(added(*(amounts_of(node.status.allocatable) for node in nodes)), added(*loads.values())),
        len(nodes),
        sum(map(is_ready, nodes)),
        waiting[:MAX_OLDEST],
        reason_counts(waiting),
        sorted(changes, key=lambda each: each.at, reverse=True)[:MAX_CHANGES],
        sees_all,
    )


def _age(row: JobRow) -> tuple[float, str]:
    return (row.created.timestamp() if row.created else 0.0, row.name)


def reason_counts(waiting: Iterable[JobRow]) -> list[ReasonCount]:
    counts: Counter[str] = Counter()
    examples: dict[str, str] = {}
    for row in waiting:
        cause = row.cause or ("not looked at yet" if not row.reason else row.reason[:60])
        counts[cause] += 1
        examples.setdefault(cause, row.reason)
    return [ReasonCount(cause, number, examples[cause]) for cause, number in counts.most_common(MAX_REASONS)]


def resource_uses(allocatable: Mapping[str, Quantity], allocated: Mapping[str, Quantity]) -> list[ResourceUse]:
    """CPU and memory first, devices next; resources that no node has are left out."""
    found = []
    for name in ordered_resources(allocatable):
        have, used = allocatable[name], allocated.get(name, ZERO)
        if have.nanos:
            free = have - used if have > used else ZERO
            found.append(ResourceUse(name, str(used), str(have), str(free), used.nanos / have.nanos))
    return found


def ordered_resources(names: Iterable[str]) -> list[str]:
    present = {*names}
    first = [name for name in FIRST_RESOURCES if name in present]
    last = [name for name in LAST_RESOURCES if name in present]
    hidden = {name for name in present if name.startswith("hugepages-")}
    return [*first, *sorted(present - {*first, *last} - hidden), *last]


def is_ready(node: Node) -> bool:
    return any(each.type == "Ready" and each.status == "True" for each in node.status.conditions)
