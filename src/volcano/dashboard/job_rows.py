"""JobRow: a Job in one line, and JobRows: all of them, kept current with each change."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from volcano.api.batch import FINISHED_PHASES, Job, Phase
from volcano.api.jobs.estimates import SUBMITTER_KEY
from volcano.api.meta import Key
from volcano.api.pods.amounts import Amounts, added, times
from volcano.api.pods.requests import pod_requests, read_resources
from volcano.dashboard.watched import Watched
from volcano.machinery.world import Change

WAITING, RUNNING, SUSPENDED, COMPLETED, FAILED = "waiting", "running", "suspended", "completed", "failed"
STATES: Final = (WAITING, RUNNING, SUSPENDED, COMPLETED, FAILED)
STATE_OF_PHASE: Final[Mapping[str, str]] = {
    Phase.NONE: WAITING,
    Phase.PENDING: WAITING,
    Phase.RESTARTING: WAITING,
    Phase.RUNNING: RUNNING,
    Phase.COMPLETING: RUNNING,
    Phase.ABORTING: SUSPENDED,
    Phase.ABORTED: SUSPENDED,
    Phase.COMPLETED: COMPLETED,
    Phase.FAILED: FAILED,
    Phase.TERMINATING: FAILED,
    Phase.TERMINATED: FAILED,
}
MAX_KEPT_CHANGES: Final = 500
CHANGES_SHOWN_FOR: Final = timedelta(minutes=30)
MAX_REASON_CHARACTERS: Final = 500


class JobRow(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """`reason` is what was written about a job that waits or failed; `cause` is its part without numbers."""

    namespace: str
    name: str
    queue: str
    phase: str
    state: str
    user: str = ""
    created: datetime | None = None
    started: datetime | None = None
    ended: datetime | None = None
    replicas: int = 0
    min_available: int = 0
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    retries: int = 0
    priority_class: str = ""
    reason: str = ""
    cause: str = ""
    requests: dict[str, str] = {}
    labels: dict[str, str] = {}

    @property
    def key(self) -> Key:
        return Key(self.namespace, self.name)

    def waited(self, now: datetime) -> timedelta | None:
        return (self.started or self.ended or now) - self.created if self.created else None

    def ran(self, now: datetime) -> timedelta | None:
        return (self.ended or now) - self.started if self.started else None


class JobChange(msgspec.Struct, frozen=True, rename="camel"):
    """A Job went from one phase to another; `before` is empty for a new one, `after` for one that was deleted."""

    at: datetime
    namespace: str
    name: str
    before: str
    after: str


class JobRows:
    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self.rows: dict[Key, JobRow] = {}
        self.changes: deque[JobChange] = deque(maxlen=MAX_KEPT_CHANGES)
        watched.listen(Job, self._take)

    def namespaces(self) -> set[str]:
        return {key.namespace for key in self.rows}

    def _take(self, change: Change[Job]) -> None:
        key, old = change.object.key, self.rows.get(change.object.key)
        if change.new is None:
            self.rows.pop(key, None)
            if old is not None:
                self._note(self._watched.now, key, old.phase, "")
            return
        row = self.rows[key] = job_row(change.new)
        if old is None or old.phase != row.phase:
            at = change.new.status.state.last_transition_time or row.created or self._watched.now
            self._note(at, key, old.phase if old is not None else "", row.phase or Phase.PENDING)

    def _note(self, at: datetime, key: Key, before: str, after: str) -> None:
        if self._watched.now - at < CHANGES_SHOWN_FOR:
            self.changes.append(JobChange(at, key.namespace, key.name, before, after))


def job_row(job: Job) -> JobRow:
    spec, status = job.spec, job.status
    phase = status.state.phase
    state = STATE_OF_PHASE.get(phase, WAITING)
    is_over = phase in FINISHED_PHASES
    reason = status.state.message[:MAX_REASON_CHARACTERS] if state in (WAITING, FAILED, SUSPENDED) else ""
    return JobRow(
        job.namespace,
        job.name,
        spec.queue or "default",
        phase or Phase.PENDING,
        state,
        job.annotations.get(SUBMITTER_KEY, ""),
        job.metadata.creation_timestamp,
        started(job),
        status.state.last_transition_time if is_over else None,
        sum(task.replicas for task in spec.tasks),
        spec.min_available,
        status.pending,
        status.running,
        status.succeeded,
        status.failed,
        status.retry_count,
        spec.priority_class_name,
        reason,
        status.state.reason if reason else "",
        {name: str(amount) for name, amount in job_requests(job).items()},
        job.labels,
    )


def started(job: Job) -> datetime | None:
    """When it last began to run."""
    times_of = [each.last_transition_time for each in job.status.conditions if each.status == Phase.RUNNING]
    return next((moment for moment in reversed(times_of) if moment is not None), None)


def job_requests(job: Job) -> Amounts:
    total: Amounts = {}
    for task in job.spec.tasks:
        spec = task.template.get("spec") if isinstance(task.template, dict) else None
        if isinstance(spec, dict):
            total = added(total, times(pod_requests(read_resources(spec)), task.replicas))
    return total
