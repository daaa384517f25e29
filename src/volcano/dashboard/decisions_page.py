"""Decisions: the last scheduling cycles with the time of each action, what was placed, evicted and refused, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

import msgspec

from volcano.api.batch import Job
from volcano.api.core import Pod
from volcano.api.errors import ApiError
from volcano.api.jobs.cycles import PastCycle
from volcano.api.pods.amounts import added, amounts_of
from volcano.dashboard.job_rows import FAILED, STATE_OF_PHASE, STATES
from volcano.dashboard.object_reads import of_scheduler
from volcano.dashboard.overview_page import ResourceUse, resource_uses
from volcano.dashboard.past_reads import past_moment
from volcano.dashboard.view import CallerView
from volcano.machinery.client import Client

SHOWN: Final = 50
MAX_QUEUES: Final = 50


class CycleQueue(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    pending: int
    inqueue: int
    running: int
    allocated: dict[str, str]


class CycleSnapshot(msgspec.Struct, frozen=True, rename="camel"):
    """The cluster when a cycle ran, from the history's newest samples before it."""

    at: datetime
    states: dict[str, int]
    nodes: int
    ready_nodes: int
    resources: list[ResourceUse]
    queues: list[CycleQueue]


class DecisionsPage(msgspec.Struct, frozen=True, rename="camel"):
    at: datetime
    cycles: list[PastCycle]
    chosen: PastCycle | None
    snapshot: CycleSnapshot | None
    problem: str
    actions: list[str]
    search: str


async def decisions_page(view: CallerView, query: Mapping[str, str], *, until: datetime | None = None) -> DecisionsPage:
    """Without the objects of namespaces that the caller may not list; `until` leaves out what came later."""
    search = query.get("q", "")[:200].lower()
    try:
        found = await of_scheduler(view.caller.client, "/cycles", (("limit", "200"),))
        cycles = msgspec.convert(found["cycles"], type=list[PastCycle])
    except (ApiError, msgspec.ValidationError, KeyError) as error:
        text = error.message if isinstance(error, ApiError) else "its answer cannot be read"
        return DecisionsPage(view.now, [], None, None, f"the scheduler cannot be asked: {text}", [], search)
    pods, jobs = await view.sight(Pod), await view.sight(Job)
    cycles = [visible(cycle, pods.sees, jobs.sees) for cycle in cycles]
    if until is not None:
        cycles = [cycle for cycle in cycles if cycle.at <= until]
    if search:
        cycles = [cycle for cycle in cycles if _speaks_of(cycle, search)]
    number = query.get("cycle", "")
    chosen = next((cycle for cycle in cycles if str(cycle.number) == number), None)
    actions = list(
        dict.fromkeys(name for cycle in cycles for name in cycle.seconds if name not in ("open", "close", "cycle"))
    )
    snapshot = await cycle_snapshot(view.caller.client, chosen.at) if chosen is not None else None
    return DecisionsPage(view.now, cycles[:SHOWN], chosen, snapshot, "", actions, search)


async def cycle_snapshot(client: Client, at: datetime) -> CycleSnapshot | None:
    """None without a history."""
    try:
        moment = await past_moment(client, at)
    except ApiError:
        return None
    states = Counter(dict.fromkeys(STATES, 0))
    for each in moment.jobs:
        states[STATE_OF_PHASE.get(each.phase, FAILED)] += each.count
    nodes = [node for node in moment.nodes if not node.gone]
    uses = resource_uses(
        added(*(amounts_of({**node.allocatable}) for node in nodes)),
        added(*(amounts_of({**node.requested, "pods": node.pods}) for node in nodes)),
    )
    queues = [
        CycleQueue(queue.queue, queue.pending, queue.inqueue, queue.running, queue.allocated)
        for queue in moment.queues
        if not queue.gone
    ]
    shown = sorted(queues, key=lambda queue: (-queue.running - queue.inqueue - queue.pending, queue.name))[:MAX_QUEUES]
    return CycleSnapshot(at, dict(states), len(nodes), sum(node.ready for node in nodes), uses, shown)


def visible(cycle: PastCycle, sees_pods: Callable[[str], bool], sees_jobs: Callable[[str], bool]) -> PastCycle:
    return msgspec.structs.replace(
        cycle,
        binds=[each for each in cycle.binds if sees_pods(each.pod.partition("/")[0])],
        evictions=[each for each in cycle.evictions if sees_pods(each.pod.partition("/")[0])],
        waiting={job: why for job, why in cycle.waiting.items() if sees_jobs(job.partition("/")[0])},
    )


def _speaks_of(cycle: PastCycle, text: str) -> bool:
    names = [each.pod for each in cycle.binds] + [each.pod for each in cycle.evictions] + list(cycle.waiting)
    return any(text in name.lower() for name in names)
