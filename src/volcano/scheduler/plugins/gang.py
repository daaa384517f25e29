"""gang: a job starts whole or not at all."""

from __future__ import annotations

from collections import Counter

from volcano.api.scheduling import PodGroupCondition
from volcano.scheduler.framework.answers import Refusal, Vote
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.framework.reasons import job_reason
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Job, Status, SubJob, Task
from volcano.scheduler.model.status import IS_ALLOCATED, SCHEDULED


class Gang(Plugin):
    name = "gang"
    argument_names = frozenset()

    # -- are there enough pods at all ------------------------------------------------------------------------------
    def job_valid(self, job: Job) -> Refusal | None:
        if not job.roles_have(pending=True):
            return Refusal("NotEnoughPodsOfTask", "Not enough valid pods of each task for gang-scheduling")
        policies = Counter(sub_job.policy_id for sub_job in job.sub_jobs.values())
        if any(policies[policy] < least for policy, least in job.sub_group_minimums.items()):
            return Refusal("NotEnoughPodsOfTask", "Not enough valid subGroups of each task for gang-scheduling")
        if job.counts.valid < job.min_available:
            counted = f"valid: {job.counts.valid}, min: {job.min_available}"
            return Refusal("NotEnoughTasks", f"Not enough valid tasks for gang-scheduling, {counted}")
        return None

    # -- is it whole -----------------------------------------------------------------------------------------------
    def job_order(self, one: Job, other: Job) -> int:
        return one.is_ready - other.is_ready  # a gang not yet whole goes first

    def sub_job_order(self, one: SubJob, other: SubJob) -> int:
        return one.is_ready - other.is_ready

    def job_ready(self, job: Job) -> bool:
        return job.is_ready and job.roles_have() and _sub_groups(job, pipelined=False)

    def alike_limit(self, job: Job, task: Task, number: int) -> int:
        """So many that the gang is whole with the last of them and not before."""
        return min(number, job.min_available - job.counts.ready_or_free)

    def sub_job_ready(self, job: Job, sub_job: SubJob) -> bool:
        return sub_job.is_ready

    def job_pipelined(self, job: Job) -> Vote:
        whole = job.is_pipelined and job.roles_have(pipelined=True) and _sub_groups(job, pipelined=True)
        return Vote.PERMIT if whole else Vote.REJECT

    def sub_job_pipelined(self, job: Job, sub_job: SubJob) -> Vote:
        return Vote.PERMIT if sub_job.is_pipelined else Vote.REJECT

    def job_starving(self, job: Job) -> bool:
        return job.is_starving

    # -- victims: what a gang can spare ----------------------------------------------------------------------------
    def preemptable(self, preemptor: Task, candidates: list[Task]) -> list[Task]:
        return self._spare(candidates)

    def reclaimable(self, reclaimer: Task, candidates: list[Task]) -> list[Task]:
        return self._spare(candidates)

    def evictable(self, kind: str, job: Job, candidates: list[Task]) -> list[Task]:
        return list(candidates)  # a gang eviction takes whole gangs on purpose

    def _spare(self, candidates: list[Task]) -> list[Task]:
        """In order, as long as a job keeps more than its minimum."""
        jobs, left, spare = self.session.jobs, dict[str, int](), []
        for task in candidates:
            job = jobs.get(task.job_id)
            if job is None:
                continue
            ready = left.get(job.id)
            if ready is None:
                ready = job.counts.ready
            if ready > job.min_available:
                spare.append(task)
                ready -= 1
            left[job.id] = ready
        return spare

    # -- conditions and reasons ------------------------------------------------------------------------------------
    def close(self, session: Session) -> None:
        unready_jobs = 0
        for job in session.unsettled:
            if not job.tasks:
                continue
            if job.is_ready:
                condition = self._condition(session, "Scheduled", "tasks in gang are ready to be scheduled", "")
            elif _waits_only_for_leavers(job):
                continue
            else:
                unready = _unready(job)
                message = f"{unready}/{len(job.tasks)} tasks in gang unschedulable: {job_reason(session, job)}"
                condition = self._condition(session, "Unschedulable", "NotEnoughResources", message)
                unready_jobs += 1
                session.record.gauge("unschedule_task_count", unready, job.name)
                session.record.counters[("job_retry_counts", (job.name,))] += 1
            session.record.conditions.setdefault(job.id, []).append(condition)
        session.record.gauge("unschedule_job_count", unready_jobs)

    def _condition(self, session: Session, kind: str, reason: str, message: str) -> PodGroupCondition:
        return PodGroupCondition(
            type=kind,
            status="True",
            transition_id=session.snapshot.uid,
            last_transition_time=session.now,
            reason=reason,
            message=message,
        )


def _sub_groups(job: Job, *, pipelined: bool) -> bool:
    if not job.sub_group_minimums:
        return True
    whole = Counter(s.policy_id for s in job.sub_jobs.values() if (s.is_pipelined if pipelined else s.is_ready))
    return job.sub_groups_have(whole)


def _unready(job: Job) -> int:
    nearly = sum(
        task.last_transaction is not None and IS_ALLOCATED[task.last_transaction.status]
        for task in job.by_status[Status.PENDING].values()
    )
    return job.min_available - job.counts.ready - nearly


def _waits_only_for_leavers(job: Job) -> bool:
    """No task waits to be placed, and the tasks being released would complete the gang."""
    leaving = sum(bool(task.node) for task in job.by_status[Status.RELEASING].values())
    if not leaving or job.by_status[Status.PENDING] or job.by_status[Status.PIPELINED]:
        return False
    return job.counts.of(SCHEDULED) + leaving >= job.min_available
