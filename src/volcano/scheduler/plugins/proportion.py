"""proportion: queues share the cluster by weight; what one does not ask for is spread over the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from volcano.api.jobs.why import ENQUEUE, QUEUE, Why
from volcano.scheduler.core.pour import pour
from volcano.scheduler.core.queue_shares import QueueShare, account_for, summed
from volcano.scheduler.framework.answers import Vote
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.framework.record import Note
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import CPU, Job, Queue, Resources, Status, Task
from volcano.scheduler.model.resources import total


class Proportion(Plugin):
    name = "proportion"
    argument_names = frozenset()

    def open(self, session: Session) -> None:
        super().open(session)
        ledger = session.snapshot.ledger.queues
        self.accounts = self._shares = {
            name: account_for(queue, ledger[name])
            for name, queue in session.queues.items()
            if name in ledger and ledger[name].jobs and queue.is_charged
        }
        self._bound()
        pour(session.total, list(self._shares.values()))
        self._lender = Lender(session, self._shares)
        self._evicted: set[str] = set()  # in this session

    def _bound(self) -> None:
        """What each queue may have at most: what others' guarantees leave, and its capability."""
        guaranteed = Resources()
        for queue in self.session.queues.values():
            if queue.guarantee is not None:
                guaranteed.add(queue.guarantee)
        free = self.session.total.exceeding(guaranteed)
        for share in self._shares.values():
            share.real_capability = free if share.queue.guarantee is None else free + share.guarantee
            if share.capability is not None:
                share.real_capability = share.real_capability.limited(share.capability, missing_is_infinite=True)

    def close(self, session: Session) -> None:
        for name, queue in session.queues.items():
            share = self._shares.get(name)
            if queue.is_charged:
                session.record.gauge("queue_weight", queue.weight, name)
            if share is None:
                continue
            session.record.gauge("queue_share", share.share, name)
            session.record.gauge("queue_overused", float(share.deserved.fits(share.allocated)), name)
            for kind in ("allocated", "request", "deserved", "inqueue"):
                session.record.gauge_amount(f"queue_{kind}", getattr(share, kind), name)

    # -- orders and bounds ---------------------------------------------------------------------------------------------
    def queue_order(self, one: Queue, other: Queue) -> int:
        if one.priority != other.priority:
            return other.priority - one.priority
        mine, theirs = self._share(one), self._share(other)
        return 0 if mine == theirs else -1 if mine < theirs else 1

    def _share(self, queue: Queue) -> float:
        share = self._shares.get(queue.name)
        return share.share if share else 0.0

    def overused(self, queue: Queue) -> bool:
        share = self._shares.get(queue.name)
        return share is not None and share.deserved.fits(share.allocated)

    def allocatable(self, queue: Queue, task: Task) -> bool:
        return queue.is_open and (self.simulate_allocatable(queue, task) or self._lender.lends_to(queue, task))

    def simulate_allocatable(self, queue: Queue, task: Task) -> bool:
        if not queue.is_charged:
            return True
        share = self._shares.get(queue.name)
        return share is not None and not share.would_exceed(task.request, share.deserved)

    def bindable(self, queue: Queue, task: Task) -> bool:
        share = self._shares.get(queue.name)
        return share is None or share.has_room_to_bind(task.request)

    def preemptive(self, queue: Queue, tasks: Sequence[Task]) -> bool:
        share = self._shares.get(queue.name)
        return queue.is_open and share is not None and not share.would_exceed(summed(tasks), share.deserved)

    def reclaimable(self, reclaimer: Task, candidates: list[Task]) -> list[Task]:
        """In order, as long as a queue holds more than it deserves."""
        left: dict[str, Resources] = {}
        victims = []
        for task in candidates:
            share = self._share_of(task)
            if share is None:
                continue
            held = left.get(share.queue.name)
            if held is None:
                held = left[share.queue.name] = share.allocated.copy()
            if not held.fits(share.deserved):
                held.subtract(task.request)
                victims.append(task)
        return victims

    def evictable(self, kind: str, job: Job, candidates: list[Task]) -> list[Task]:
        """Whole gangs may take a queue below what it deserves, but only one that holds more than that."""
        if kind != "GangReclaim":
            return list(candidates)
        over = {name for name, share in self._shares.items() if not share.allocated.fits(share.deserved)}
        jobs = self.session.jobs
        return [task for task in candidates if task.job_id in jobs and jobs[task.job_id].queue in over]

    # -- entering ------------------------------------------------------------------------------------------------------
    def job_enqueueable(self, job: Job) -> Vote:
        queue, share = self.session.queues[job.queue], self._shares[job.queue]
        if not queue.is_open:
            self.session.record.refuse(job.id, Why(QUEUE, f"queue {queue.name} is {queue.state}", self.name))
            return Vote.REJECT
        if job.min_resources is None:
            return Vote.PERMIT
        over = share.wanted_with(job.min_resources).exceeds_requested(share.real_capability, job.min_resources)
        if not over:
            return Vote.PERMIT
        message = "queue resource quota insufficient: " + ", ".join(f"insufficient {name}" for name in over)
        self.session.record.notes.append(Note(job.id, "Unschedulable", message))
        self.session.record.refuse(job.id, Why(ENQUEUE, "queue resource quota insufficient", self.name, message))
        return Vote.REJECT

    def job_enqueued(self, job: Job) -> None:
        if job.min_resources is not None:
            share = self._shares[job.queue]
            share.inqueue = share.inqueue + job.without_gated(job.min_resources)

    # -- following placements ------------------------------------------------------------------------------------------
    def on_allocate(self, task: Task) -> None:
        share = self._share_of(task)
        if share is not None:
            share.allocated = share.allocated + task.request
            share.refresh_share()
            if task.uid in self._evicted:
                self._evicted.remove(task.uid)
                share.leaving = share.leaving.copy().withdraw(task.request)

    def alike_limit(self, job: Job, task: Task, number: int) -> int:
        """As many as the queue deserves; beyond that it may be lent room, which is asked about each task."""
        queue = self.session.queues[job.queue]
        share = self._shares.get(queue.name)
        if share is None or not queue.is_open or self._evicted or share.waits_for_leavers:
            return 0
        return share.most_alike(task.request, share.deserved, number)

    def on_allocate_alike(self, tasks: Sequence[Task]) -> None:
        share = self._share_of(tasks[0])
        if share is not None:
            share.allocated = share.allocated + tasks[0].request * len(tasks)
            share.refresh_share()

    def on_deallocate(self, task: Task) -> None:
        share = self._share_of(task)
        if share is not None:
            share.allocated = share.allocated - task.request
            share.refresh_share()
            if task.status == Status.RELEASING:
                self._evicted.add(task.uid)
                share.leaving = share.leaving + task.request

    def _share_of(self, task: Task) -> QueueShare | None:
        job = self.session.jobs.get(task.job_id)
        return self._shares.get(job.queue) if job else None


class Lender:
    """Room that is deserved and that no queue can use, for the first gang of a queue that is larger than its share.

    Shares are parts of the cluster and gangs are whole: two queues whose gangs are both larger than their shares would
    wait for each other for ever, on an empty cluster.
    """

    def __init__(self, session: Session, shares: Mapping[str, QueueShare]) -> None:
        self._session, self._shares = session, shares
        self._users: frozenset[str] | None = None  # queues that can use what they deserve
        self._asking = ""
        self._spare = Resources()

    def lends_to(self, queue: Queue, task: Task) -> bool:
        share, job = self._shares.get(queue.name), self._session.jobs.get(task.job_id)
        if share is None or job is None or not job.is_starving or not share.allocated.fits(job.held):
            return False  # beyond its share a queue may have one gang, and no more of it than its minimum
        if share.would_exceed(task.request, share.real_capability):
            return False
        if self._asking != job.id:  # while one job asks, the accounts of the other queues do not change
            self._asking, self._spare = job.id, self._spare_for(share)
        return not share.would_exceed(task.request, share.deserved + self._spare)

    def _spare_for(self, borrower: QueueShare) -> Resources:
        """What no queue deserves, and what the others deserve and cannot use; without what they hold beyond that."""
        if self._users is None:
            self._users = self._queues_that_can_use_their_share()
        spare, held = self._session.total - borrower.deserved, Resources()
        for name, share in self._shares.items():
            if share is not borrower:
                held.add(share.deserved.at_least(share.allocated) if name in self._users else share.allocated)
        return spare.exceeding(held)

    def _queues_that_can_use_their_share(self) -> frozenset[str]:
        found: set[str] = set()
        for job in self._session.waiting:
            share = self._shares.get(job.queue)
            if share is None or job.queue in found or job.is_pending:
                continue
            if not share.would_exceed(_next_request(job), share.deserved):
                found.add(job.queue)
        return frozenset(found)


def _next_request(job: Job) -> Resources:
    """The least that must be placed for a job at once: what its minimum lacks, or a single task."""
    waiting = sorted((task.request for task in job.by_status[Status.PENDING].values()), key=lambda asked: asked[CPU])
    lacking = max(1, job.min_available - job.counts.ready - job.counts.waiting)
    return total(waiting[:lacking])
