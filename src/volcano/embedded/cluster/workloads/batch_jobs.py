"""batch/v1 Jobs (Kubernetes' own, not Volcano's): pods until the wanted number has succeeded.

With a number of completions, each completion is a slot, indexed or not. The status records the slots that succeeded,
and a pod's name contains its slot and attempt, so that no slot runs twice at once or again once it is done.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import ClassVar, Final

import msgspec

from volcano.api.core import BatchJob, Pod
from volcano.api.meta import JSON, Key, Resource
from volcano.api.times import parse_timestamp, timestamp
from volcano.embedded.cluster.workloads.batch_job_pods import LabelledPod, pod_for, slot_of
from volcano.embedded.cluster.workloads.batch_job_spec import BatchJobSpec, format_indexes, parse_indexes
from volcano.embedded.cluster.workloads.pods import MAX_PODS_PER_PLAN, is_active, ready_since
from volcano.machinery.controller import Controller, Wake, Waker, self_key
from volcano.machinery.plan import NOTHING, Delete, Later, Patch, Plan, Record, Together, merge_difference, ref
from volcano.machinery.time_after import TimeAfter
from volcano.machinery.world import Change, World

INITIAL_BACKOFF: Final = timedelta(seconds=10)
MAX_BACKOFF: Final = timedelta(minutes=10)


class BatchJobController(Controller):
    """Reconciles Kubernetes' Jobs."""

    name: ClassVar = "batch-job"

    @property
    def wakes_on(self) -> Mapping[type[Resource], Waker]:
        return {BatchJob: self_key, Pod: _batch_owner}

    def decide(self, key: Key, world: World, causes: tuple[Hashable, ...]) -> Plan:
        job = world.get(BatchJob, key)
        if job is None or job.is_deleting:
            return NOTHING
        try:
            spec = msgspec.convert(job.spec or {}, BatchJobSpec, strict=False)
        except msgspec.ValidationError:
            return NOTHING
        if spec.managed_by not in (None, "kubernetes.io/job-controller"):
            return NOTHING
        finished = _finished_at(job)
        if finished is not None:
            return _after_finish(job, spec, finished, world, causes)
        return _JobReconciliation(job, spec, world, causes).plan()


def _batch_owner(change: Change[Pod]) -> Iterable[Wake]:
    """Volcano's Jobs have the same kind in another group."""
    owner = change.object.controller
    if owner is not None and owner.kind == "Job" and owner.api_version.startswith("batch/"):
        yield Wake(Key(change.object.namespace, owner.name))


def _finished_at(job: BatchJob) -> datetime | None:
    condition = job.end_condition
    return parse_timestamp(condition["lastTransitionTime"]) if condition is not None else None


def _after_finish(
    job: BatchJob, spec: BatchJobSpec, finished: datetime, world: World, causes: tuple[Hashable, ...]
) -> Plan:
    """Delete pods that still run; delete the Job when its time to live is over."""
    left = [pod for pod in world.where(Pod, "owner", job.uid) if is_active(pod)]
    ends: Plan = (Together(tuple(Delete(ref(pod)) for pod in left)),) if left else ()
    if spec.ttl_seconds_after_finished is None:
        return ends
    lives = TimeAfter(finished, timedelta(seconds=spec.ttl_seconds_after_finished))
    if not lives.is_over(world.now, causes):
        return (*ends, lives.reminder(world.now))
    return (Delete(ref(job, fresh=True), propagation="Foreground"),)


class _JobReconciliation:
    """One decision about a Job that has not finished."""

    def __init__(self, job: BatchJob, spec: BatchJobSpec, world: World, causes: tuple[Hashable, ...]) -> None:
        self.job, self.spec, self.now, self.causes = job, spec, world.now.replace(microsecond=0), causes
        self.status: JSON = dict(job.status or {})
        self.pods = [LabelledPod(pod, slot_of(pod)) for pod in world.where(Pod, "owner", job.uid)]
        self.active = [each for each in self.pods if is_active(each.pod)]
        succeeded = {each.slot for each in self.pods if each.pod.status.phase == "Succeeded"}
        self.done = parse_indexes(self.status.get("completedIndexes", "")) | (succeeded - {None})
        self.failures = [each for each in self.pods if each.pod.status.phase == "Failed"]
        self.failed = max(len(self.failures), int(self.status.get("failed", 0)))

    def plan(self) -> Plan:
        ending = self._ending()
        if ending is not None:
            return self._ended(*ending)
        if self.spec.suspend:
            return self._suspended()
        moves = self._moves()
        limit = self._time_limit()
        later: Plan = (limit.reminder(self.now),) if limit is not None else ()
        status = self._counts()
        status.setdefault("startTime", timestamp(self.now))
        status["conditions"] = self._resumed_conditions()
        return (*self._written(status), *moves, *later)

    # -- how it ends ------------------------------------------------------------------------------------------
    @property
    def succeeded(self) -> int:
        if self.spec.wanted is not None:
            return len([slot for slot in self.done if slot is not None and slot < self.spec.wanted])
        counted = sum(each.pod.status.phase == "Succeeded" for each in self.pods)
        return max(counted, int(self.status.get("succeeded", 0)))

    def _ending(self) -> tuple[str, str, str] | None:
        """The condition that ends the Job, its reason and message; None while it goes on."""
        if self.failed > self.spec.backoff_limit or self._restarted_too_often():
            return ("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
        limit = self._time_limit()
        if not self.spec.suspend and limit is not None and limit.is_over(self.now, self.causes):
            return ("Failed", "DeadlineExceeded", "Job was active longer than specified deadline")
        if self.spec.wanted is not None:
            if self.succeeded >= self.spec.wanted:
                return ("Complete", "CompletionsReached", "Reached expected number of succeeded pods")
        elif self.succeeded and not self.active:
            return ("Complete", "CompletionsReached", "Reached expected number of succeeded pods")
        return None

    def _restarted_too_often(self) -> bool:
        """Restarts of containers in place count as attempts."""
        policy = ((self.spec.template or {}).get("spec") or {}).get("restartPolicy")
        restarts = sum(
            status.restart_count
            for each in self.active
            for status in (*each.pod.status.init_container_statuses, *each.pod.status.container_statuses)
        )
        return policy == "OnFailure" and restarts >= max(1, self.spec.backoff_limit)

    def _time_limit(self) -> TimeAfter | None:
        """None without a deadline."""
        deadline, started = self.spec.active_deadline_seconds, self.status.get("startTime")
        if deadline is None:
            return None
        since = parse_timestamp(started) if started else self.now
        return TimeAfter(since, timedelta(seconds=deadline))

    def _ended(self, condition: str, reason: str, message: str) -> Plan:
        status = self._counts()
        status.pop("active", None)
        status.pop("ready", None)
        if condition == "Complete":
            status["completionTime"] = timestamp(self.now)
        status.setdefault("startTime", timestamp(self.now))
        status["conditions"] = self._with_condition(condition, reason, message)
        ends = tuple(Delete(ref(each.pod)) for each in self.active)
        event = "Completed" if condition == "Complete" else reason
        note = Record(ref(self.job), event, message, "Normal" if condition == "Complete" else "Warning")
        return (*self._written(status), *((Together(ends),) if ends else ()), note)

    def _suspended(self) -> Plan:
        status = self._counts()
        status.pop("startTime", None)
        is_new = not any(
            each.get("type") == "Suspended" and each.get("status") == "True" for each in self._conditions()
        )
        status["conditions"] = (
            self._with_condition("Suspended", "JobSuspended", "Job suspended") if is_new else self._conditions()
        )
        ends = tuple(Delete(ref(each.pod)) for each in self.active)
        note = (Record(ref(self.job), "Suspended", "Job suspended"),) if is_new else ()
        return (*self._written(status), *((Together(ends),) if ends else ()), *note)

    # -- pods -------------------------------------------------------------------------------------------------
    def _moves(self) -> Plan:
        missing = self._parallelism() - len(self.active)
        if missing < 0:
            doomed = sorted(self.active, key=lambda each: (ready_since(each.pod) is not None, each.order))
            return (Together(tuple(Delete(ref(each.pod)) for each in doomed[:-missing])),)
        if missing == 0:
            return ()
        backoff = self._backoff()
        if backoff is not None:
            return (Later(backoff),)
        taken = {each.pod.name for each in self.pods}
        made = tuple(
            pod_for(self.job, self.spec, slot, taken) for slot in self._free_slots(min(missing, MAX_PODS_PER_PLAN))
        )
        return (Together(made),) if made else ()

    def _parallelism(self) -> int:
        """How many pods may run now. Without a number of completions, no pod is created after the first success."""
        if self.spec.wanted is not None:
            return min(self.spec.at_once, self.spec.wanted - self.succeeded)
        return min(self.spec.at_once, len(self.active)) if self.succeeded else self.spec.at_once

    def _free_slots(self, count: int) -> Iterable[int]:
        taken = {each.slot for each in self.active}
        if self.spec.wanted is None:
            free = (slot for slot in range(self.spec.at_once + len(self.pods)) if slot not in taken)
        else:
            free = (slot for slot in range(self.spec.wanted) if slot not in taken and slot not in self.done)
        return [slot for slot, _ in zip(free, range(count), strict=False)]

    def _backoff(self) -> timedelta | None:
        """Back off exponentially after consecutive failures; None when a pod may be created now."""
        if not self.failures:
            return None
        ends = [_ended_at(each.pod) for each in self.pods if each.pod.is_finished]
        last_success = max((_ended_at(e.pod) for e in self.pods if e.pod.status.phase == "Succeeded"), default=None)
        in_a_row = sum(last_success is None or _ended_at(each.pod) >= last_success for each in self.failures)
        if not in_a_row or not ends:
            return None
        wait = min(INITIAL_BACKOFF * (1 << min(in_a_row - 1, 10)), MAX_BACKOFF)
        left = max(_ended_at(each.pod) for each in self.failures) + wait - self.now
        return left if left > timedelta(0) else None

    # -- status -----------------------------------------------------------------------------------------------
    def _counts(self) -> JSON:
        counts = {
            "active": len(self.active),
            "ready": sum(ready_since(each.pod) is not None for each in self.active),
            "succeeded": self.succeeded,
            "failed": self.failed,
            "terminating": sum(each.pod.is_deleting and not each.pod.is_finished for each in self.pods),
        }
        status: JSON = {name: count for name, count in counts.items() if count}
        if self.spec.wanted is not None and self.done:
            status["completedIndexes"] = format_indexes(slot for slot in self.done if slot is not None)
        if "startTime" in self.status:
            status["startTime"] = self.status["startTime"]
        return status

    def _conditions(self) -> list[JSON]:
        return list(self.status.get("conditions") or [])

    def _with_condition(self, kind: str, reason: str, message: str, *, status: str = "True") -> list[JSON]:
        stamp = timestamp(self.now)
        condition = {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": message,
            "lastProbeTime": stamp,
            "lastTransitionTime": stamp,
        }
        return [*(each for each in self._conditions() if each.get("type") != kind), condition]

    def _resumed_conditions(self) -> list[JSON]:
        if any(each.get("type") == "Suspended" and each.get("status") == "True" for each in self._conditions()):
            return self._with_condition("Suspended", "JobResumed", "Job resumed", status="False")
        return self._conditions()

    def _written(self, status: JSON) -> Plan:
        status = {name: value for name, value in status.items() if value != []}
        if status == self.status:
            return ()
        return (
            Patch(ref(self.job, fresh=True), {"status": merge_difference(self.status, status)}, subresource="status"),
        )


def _ended_at(pod: Pod) -> datetime:
    ends = [
        status.state.terminated.finished_at
        for status in pod.status.container_statuses
        if status.state.terminated is not None and status.state.terminated.finished_at is not None
    ]
    known = max(ends, default=None) or pod.metadata.deletion_timestamp or pod.metadata.creation_timestamp
    assert known is not None, "every pod was created at some time"
    return known
