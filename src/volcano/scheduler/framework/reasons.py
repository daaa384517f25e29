"""Why jobs and tasks wait, in Volcano's words."""

from __future__ import annotations

from collections import Counter

from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Job, LastTransaction, Status, Task


def task_reason(session: Session, task: Task) -> tuple[str, str, str]:
    """Reason and message for the pod's condition, and the node to nominate, if any."""
    last = task.last_transaction or LastTransaction(task.status, task.node, task.eviction_occurred)
    where = f"Pod {task.key} can possibly be assigned to {last.node}"
    if last.status in (Status.ALLOCATED, Status.BINDING):
        return "Schedulable", f"{where}, once minAvailable is satisfied", ""
    if last.status == Status.PIPELINED:
        nominated = last.node if last.eviction_occurred else ""
        return "Unschedulable", f"{where}, once resource is released and minAvailable is satisfied", nominated
    if last.status == Status.PENDING:
        errors = session.record.fit_errors.get(task.job_id, {}).get(task.uid)
        if errors is not None:
            return "Unschedulable", str(errors), ""
        return "Unschedulable", session.record.job_fit_errors.get(task.job_id, ""), ""
    return last.status.label, "", ""


def job_reason(session: Session, job: Job) -> str:
    """The state of a whole job in one line."""
    counts = [f"{len(tasks)} {Status(number).label}" for number, tasks in enumerate(job.by_status) if tasks]
    counts.append(f"{job.min_available} minAvailable")
    text = f"pod group is {'ready' if job.is_ready else 'not ready'}, {', '.join(sorted(counts))}"
    waiting = job.by_status[Status.PENDING]
    if waiting:
        reasons = Counter(task_reason(session, task)[0] for task in waiting.values())
        text += f"; Pending: {', '.join(sorted(f'{count} {reason}' for reason, count in reasons.items()))}"
    return text + _origin(session, job)


def _origin(session: Session, job: Job) -> str:
    reason = session.record.job_fit_errors.get(job.id)
    if reason:
        return f". Origin reason is: {reason}"
    for uid, errors in sorted(session.record.fit_errors.get(job.id, {}).items()):
        if uid in job.tasks:
            return f". Origin reason is {job.tasks[uid].name}: {errors}"
    return ""
