"""Decisions: the last scheduling cycles with the time of each action, what was placed, evicted and refused, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

import msgspec

from volcano.api.batch import Job
from volcano.api.core import Pod
from volcano.api.errors import ApiError
from volcano.api.jobs.cycles import PastCycle
from volcano.dashboard.object_reads import of_scheduler
from volcano.dashboard.view import CallerView

SHOWN: Final = 50


class DecisionsPage(msgspec.Struct, frozen=True, rename="camel"):
    at: datetime
    cycles: list[PastCycle]
    chosen: PastCycle | None
    problem: str
    actions: list[str]
    search: str


async def decisions_page(view: CallerView, query: Mapping[str, str]) -> DecisionsPage:
    """Without the objects of namespaces that the caller may not list."""
    search = query.get("q", "")[:200].lower()
    try:
        found = await of_scheduler(view.caller.client, "/cycles", (("limit", "200"),))
        cycles = msgspec.convert(found["cycles"], type=list[PastCycle])
    except (ApiError, msgspec.ValidationError, KeyError) as error:
        text = error.message if isinstance(error, ApiError) else "its answer cannot be read"
        return DecisionsPage(view.now, [], None, f"the scheduler cannot be asked: {text}", [], search)
    pods, jobs = await view.sight(Pod), await view.sight(Job)
    cycles = [visible(cycle, pods.sees, jobs.sees) for cycle in cycles]
    if search:
        cycles = [cycle for cycle in cycles if _speaks_of(cycle, search)]
    number = query.get("cycle", "")
    chosen = next((cycle for cycle in cycles if str(cycle.number) == number), None)
    actions = list(
        dict.fromkeys(name for cycle in cycles for name in cycle.seconds if name not in ("open", "close", "cycle"))
    )
    return DecisionsPage(view.now, cycles[:SHOWN], chosen, "", actions, search)


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
