"""reclaim: a queue below its share takes back from queues above theirs."""

from __future__ import annotations

from volcano.scheduler.core.fit import fits_row
from volcano.scheduler.core.heap import Heap
from volcano.scheduler.framework.session import Session
from volcano.scheduler.framework.statement import Statement
from volcano.scheduler.model import Job, Node, Queue, Status, Task
from volcano.scheduler.solve.backlog import TaskBacklog
from volcano.scheduler.solve.candidates import Candidates, CouldHold
from volcano.scheduler.solve.choose import shard_groups
from volcano.scheduler.solve.guarantees import within_guarantees
from volcano.scheduler.solve.make_room import frees_enough
from volcano.scheduler.solve.victims import victims_first

RECLAIM = "reclaim"


def reclaim(session: Session) -> None:
    order = Heap[Queue](session.ask.queue_before)
    starving: dict[str, Heap[Job]] = {}
    for job in session.waiting:
        if job.is_pending or session.ask.job_valid(job) is not None:
            continue
        if job.queue not in starving:
            starving[job.queue] = Heap(session.ask.job_before)
            order.push(session.queues[job.queue])
        if session.ask.job_starving(job):
            starving[job.queue].push(job)
    possible = CouldHold(session)
    while order:
        queue = order.pop()
        if session.ask.overused(queue):
            continue
        while starving[queue.name]:
            _reclaim_for_job(session, queue, starving[queue.name].pop(), possible)


def _reclaim_for_job(session: Session, queue: Queue, job: Job, possible: CouldHold) -> None:
    """Evict for the whole gang, or not at all."""
    statement = Statement(session)
    waiting = (task for task in job.by_status[Status.PENDING].values() if not task.is_gated)
    line = TaskBacklog(session, waiting)
    search = Reclaiming(session, job, possible)
    while line and session.ask.job_starving(job):
        task = line.pop()
        if task.preempts and session.ask.preemptive(queue, [task]) and session.ask.pre_filter(task) is None:
            search.make_room(task, statement)
    if session.ask.job_pipelined(job):
        if statement.has_evictions:
            session.record.counters[("eviction_transactions_total", (RECLAIM,))] += 1
        statement.commit()
    else:
        statement.discard()


class Reclaiming:
    """On behalf of one job."""

    def __init__(self, session: Session, job: Job, could_hold: CouldHold) -> None:
        self._session = session
        self._job = job
        self._could_hold = could_hold

    def make_room(self, task: Task, statement: Statement) -> bool:
        """The first node, in the order of the table, where others leave enough."""
        session = self._session
        candidates = Candidates(session, RECLAIM).of(task) & self._could_hold.of(task)
        for group in shard_groups(session, candidates):
            for row in group.nonzero()[0]:
                if self._free(session.table.nodes[row], task, statement):
                    return True
        return False

    def _free(self, node: Node, task: Task, statement: Statement) -> bool:
        session, table = self._session, self._session.table
        exposed = [other for other in node.tasks_in_order if self._is_exposed(other)]
        if not exposed:
            return False
        victims = within_guarantees(session, self._job.queue, session.ask.reclaimable(task, exposed))
        if not frees_enough(session, node, task, victims):
            return False
        attempt = Statement(session)
        room = table.future_idle[:, node.row].copy()
        waiting = victims_first(session, task, victims)
        while not (fits := fits_row(table, task.request, room)) and waiting:
            victim = waiting.pop()
            attempt.evict(victim, RECLAIM, preemptor=task.key)
            room += table.vector(victim.request)
        if not fits or attempt.pipeline(task, node, eviction_occurred=attempt.has_evictions) is not None:
            attempt.discard()
            return False
        statement.merge(attempt)
        return True

    def _is_exposed(self, task: Task) -> bool:
        if task.status != Status.RUNNING or not task.preemptable:
            return False
        job = self._session.jobs.get(task.job_id)
        return job is not None and job.queue != self._job.queue and self._session.queues[job.queue].reclaimable
