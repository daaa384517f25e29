"""What the metrics of jobs count, computed from changes; controllers.service.job_metrics keeps the metrics."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from volcano.api.batch import Job, Phase
from volcano.api.core import Pod
from volcano.machinery.world import Change


@dataclass(frozen=True, slots=True)
class Ended:
    """A job has completed or failed: one more in `job_completed_phase_count` or `job_failed_phase_count`."""

    job: str  # namespace/name
    queue: str
    completed: bool


def ended(change: Change[Job]) -> Ended | None:
    """Only a change of phase counts, not a job that is found to have ended long ago."""
    old, new = change.old, change.new
    if old is None or new is None or old.status.state.phase == new.status.state.phase:
        return None
    phase = new.status.state.phase
    if phase not in (Phase.COMPLETED, Phase.FAILED):
        return None
    return Ended(str(new.key), new.spec.queue, phase == Phase.COMPLETED)


def creation_latency(job: Job, change: Change[Pod]) -> timedelta | None:
    """From the job's creation to that of a pod that has just been made."""
    created, made = job.metadata.creation_timestamp, change.object.metadata.creation_timestamp
    if change.old is not None or change.new is None or created is None or made is None:
        return None
    return max(made - created, timedelta(0))
