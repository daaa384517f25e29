"""garbage: delete a finished Job `ttlSecondsAfterFinished` after it finished.

What belongs to the Job goes with it, by owner references; that is the API server's garbage collection, not ours.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from datetime import datetime, timedelta
from typing import ClassVar

from volcano.api.batch import FINISHED_PHASES, Job
from volcano.api.meta import Key, Resource
from volcano.machinery.controller import Controller, Waker, self_key
from volcano.machinery.plan import NOTHING, Delete, Later, Plan, ref
from volcano.machinery.world import World

"""Not Aborted: such a Job may be resumed."""


class GarbageController(Controller):
    """Deletes Jobs whose time after finishing is over."""

    name: ClassVar = "garbage"

    @property
    def wakes_on(self) -> Mapping[type[Resource], Waker]:
        return {Job: self_key}

    def decide(self, key: Key, world: World, causes: tuple[Hashable, ...]) -> Plan:
        job = world.get(Job, key)
        expiry = expires(job) if job is not None else None
        if job is None or expiry is None:
            return NOTHING
        if expiry > world.now:
            return (Later(expiry - world.now),)
        # Tied to the state it was decided on, so that a Job changed in the meantime is looked at again.
        return (Delete(ref(job, fresh=True), propagation="Foreground"),)


def expires(job: Job) -> datetime | None:
    """When a Job is to go; None if it is not to, or not yet known."""
    ttl, finished = job.spec.ttl_seconds_after_finished, job.status.state.last_transition_time
    if ttl is None or finished is None or job.is_deleting or job.status.state.phase not in FINISHED_PHASES:
        return None
    return finished + timedelta(seconds=ttl)
