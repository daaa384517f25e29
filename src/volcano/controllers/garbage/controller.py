"""garbage: delete a finished Job `ttlSecondsAfterFinished` after it finished.

What belongs to the Job goes with it, by owner references; that is the API server's garbage collection, not ours.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from datetime import timedelta
from typing import ClassVar

from volcano.api.batch import FINISHED_PHASES, Job
from volcano.api.meta import Key, Resource
from volcano.machinery.controller import Controller, Waker, self_key
from volcano.machinery.plan import NOTHING, Delete, Plan, ref
from volcano.machinery.time_after import TimeAfter
from volcano.machinery.world import World


class GarbageController(Controller):
    """Deletes Jobs whose time after finishing is over."""

    name: ClassVar = "garbage"

    @property
    def wakes_on(self) -> Mapping[type[Resource], Waker]:
        return {Job: self_key}

    def decide(self, key: Key, world: World, causes: tuple[Hashable, ...]) -> Plan:
        job = world.get(Job, key)
        lives = time_to_live(job) if job is not None else None
        if job is None or lives is None:
            return NOTHING
        if not lives.is_over(world.now, causes):
            return (lives.reminder(world.now),)
        # Tied to the state it was decided on, so that a Job changed in the meantime is looked at again.
        return (Delete(ref(job, fresh=True), propagation="Foreground"),)


def time_to_live(job: Job) -> TimeAfter | None:
    """None if the Job is not to go, or it is not known yet when; an Aborted one stays, since it may be resumed."""
    ttl, finished = job.spec.ttl_seconds_after_finished, job.status.state.last_transition_time
    if ttl is None or finished is None or job.is_deleting or job.status.state.phase not in FINISHED_PHASES:
        return None
    return TimeAfter(finished, timedelta(seconds=ttl))
