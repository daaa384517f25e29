"""Jobs that wait for other jobs, or for their turn in an array: held before their PodGroup is made, and let go.

A job that changes says so to those that wait for it, by an annotation; no job asks again and again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from volcano.api.batch import Job, Phase
from volcano.api.indexes import Indexes
from volcano.api.jobs.dependencies import (
    ARRAY_TURN,
    MET_KEY,
    WORDS,
    Dependency,
    Prospect,
    array_limit,
    array_of,
    met_before,
    next_in_array,
    prospect,
    stated_dependencies,
)
from volcano.api.meta import Key
from volcano.controllers.job.view import JobView
from volcano.machinery.plan import Patch, Plan, ref
from volcano.machinery.world import World

WAITED_FOR, ARRAY = "waited-for", "array"
MAX_NAMED: Final = 3


def _waited_for(job: Job) -> Iterable[str]:
    return {str(Key(job.namespace, each.job)) for each in _readable(job)}


def _array(job: Job) -> Iterable[str]:
    array = array_of(job)
    return (array,) if array else ()


DEPENDENTS: Final[Indexes] = {Job: {WAITED_FOR: _waited_for, ARRAY: _array}}


def _readable(job: Job) -> tuple[Dependency, ...]:
    try:
        return stated_dependencies(job.annotations)
    except ValueError:
        return ()


def hold(view: JobView) -> tuple[str, str] | None:
    """Reason and message while a new job must wait; None when it may start, or has started before."""
    job = view.job
    if view.phase is not Phase.PENDING or view.group is not None or job.status.version:
        return None
    met = met_before(job.annotations)
    waits = [each for each in _readable(job) if str(each) not in met]
    prospects = [(each, prospect(each, view.world.get(Job, Key(job.namespace, each.job)))) for each in waits]
    if never := [each for each, how in prospects if how is Prospect.NEVER]:
        return "DependencyNeverSatisfied", f"will not start: it waits for {_named(never)}, which cannot happen any more"
    if still := [each for each, how in prospects if how is Prospect.OPEN]:
        return "Dependency", f"waits for {_named(still)}"
    if array_of(job) and ARRAY_TURN not in met and job.uid not in {each.uid for each in _turn(view.world, job)}:
        return "JobArrayTaskLimit", f"waits for its turn: at most {array_limit(job)} jobs of the array run at a time"
    return None


def released_by(key: Key, job: Job | None, world: World, arrays: list[str]) -> Plan:
    """Tell the jobs that wait for this one what has happened to it; `arrays` are those that it was deleted from."""
    steps = []
    for waiting in world.where(Job, WAITED_FOR, str(key)):
        met = met_before(waiting.annotations)
        ours = [each for each in _readable(waiting) if each.job == key.name and str(each) not in met]
        news = [str(each) for each in ours if prospect(each, job) is Prospect.MET]
        if news and not waiting.is_deleting:
            steps.append(Patch(ref(waiting), _with_met(met, news)))
    if job is not None and job.status.state.phase not in ("", Phase.PENDING):
        arrays = [*arrays, array_of(job)]
    for array in filter(None, arrays):
        steps += _turns(world, array)
    return tuple(steps)


def _turns(world: World, array: str) -> list[Patch]:
    jobs = world.where(Job, ARRAY, array)
    return [
        Patch(ref(each), _with_met(met_before(each.annotations), [ARRAY_TURN]))
        for each in (next_in_array(jobs, array_limit(jobs[0])) if jobs else ())
        if ARRAY_TURN not in met_before(each.annotations) and each.status.state.phase in ("", Phase.PENDING)
    ]


def _turn(world: World, job: Job) -> list[Job]:
    return next_in_array(world.where(Job, ARRAY, array_of(job)), array_limit(job))


def _with_met(met: frozenset[str], more: list[str]) -> dict[str, dict[str, dict[str, str]]]:
    return {"metadata": {"annotations": {MET_KEY: ",".join(sorted({*met, *more}))}}}


def _named(dependencies: list[Dependency]) -> str:
    shown = [f"job {each.job} {WORDS[each.kind]}" for each in dependencies[:MAX_NAMED]]
    more = len(dependencies) - MAX_NAMED
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
