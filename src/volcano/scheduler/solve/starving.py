"""Jobs for which room should be made, queue by queue; and those that only wait for room that is being made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from volcano.scheduler.core.heap import Heap
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Job, Queue, Status, Task
from volcano.scheduler.solve.make_room import is_leaving


def queues_with_starving(session: Session) -> Iterator[tuple[Queue, Heap[Job]]]:
    """Queues in their order, as it is when each one's turn comes, with their starving jobs."""
    starving: dict[str, Heap[Job]] = {}
    order = Heap[Queue](session.ask.queue_before)
    for job in session.waiting:
        if job.is_pending or session.ask.job_valid(job) is not None:
            continue
        if job.queue not in starving:
            starving[job.queue] = Heap(session.ask.job_before)
            order.push(session.queues[job.queue])
        if session.ask.job_starving(job):
            starving[job.queue].push(job)
    while order:
        queue = order.pop()
        yield queue, starving[queue.name]


def may_be_evicted_for_gangs(job: Job) -> bool:
    """A job that states whether it is preemptable decides; one that does not may be evicted."""
    return job.preemptable or not job.preemptable_stated


def waits_for_leavers(session: Session, tasks: Iterable[Task]) -> bool:
    """Whether nothing should be evicted for these tasks: one never preempts, or pods are still ending for one."""
    for task in tasks:
        if not task.preempts:
            return True
        row = session.table.index.get(task.nominated_node) if task.nominated_node else None
        if row is not None and any(_is_leaving(other) for other in session.table.nodes[row].tasks.values()):
            return True
    return False


def _is_leaving(task: Task) -> bool:
    """Evicted to make room: the pod shows it, or the eviction is being written."""
    return is_leaving(task) or (task.status == Status.RELEASING and not task.pod.is_deleting)
