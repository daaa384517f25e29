"""drf: the job with the smaller dominant share goes first; with a hierarchy, queues are ordered so, too."""

from __future__ import annotations

from typing import Final

from volcano.scheduler.core.hierarchy import ShareTree, sign
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Job, Queue, Resources, Task
from volcano.scheduler.model.resources import dominant_share

TOLERANCE: Final = 1e-6


class Drf(Plugin):
    name = "drf"
    argument_names = frozenset()

    def open(self, session: Session) -> None:
        super().open(session)
        self._shares: dict[str, tuple[int, float]] = {}  # of a job, as of its version
        self._tree: ShareTree | None = None
        if self.hierarchy:
            self._tree = ShareTree(session.total)
            for job in session.jobs.values():
                self._tree.put(session.queues[job.queue], job.id, job.held, job.total_request)
            self._tree.update()

    def close(self, session: Session) -> None:
        for job in session.unsettled:
            session.record.gauge("job_share", self._share(job), job.namespace, job.name)

    def _share(self, job: Job) -> float:
        version, share = self._shares.get(job.id, (-1, 0.0))
        if version != job.version:
            share = dominant_share(job.held, self.session.total)
            self._shares[job.id] = (job.version, share)
        return share

    def job_order(self, one: Job, other: Job) -> int:
        mine, theirs = self._share(one), self._share(other)
        return 0 if mine == theirs else -1 if mine < theirs else 1

    def preemptable(self, preemptor: Task, candidates: list[Task]) -> list[Task]:
        """Tasks whose job, giving them up one after the other, still holds at least the preemptor's share."""
        job, total = self.session.job_of(preemptor), self.session.total
        if job is None:
            return []
        mine = dominant_share(job.held + preemptor.request, total)
        left: dict[str, Resources] = {}
        victims = []
        for task in candidates:
            theirs = self.session.job_of(task)
            if theirs is None:
                continue
            held = left.setdefault(theirs.id, theirs.held.copy()).subtract(task.request)
            share = dominant_share(held, total)
            if mine < share or abs(mine - share) <= TOLERANCE:
                victims.append(task)
        return victims

    # -- with a hierarchy of queues ------------------------------------------------------------------------------------
    def queue_order(self, one: Queue, other: Queue) -> int:
        return 0 if self._tree is None else sign(self._tree.compare(one, other))

    def reclaimable(self, reclaimer: Task, candidates: list[Task]) -> list[Task] | None:
        """Each on its own: tasks of queues that would be behind ours even after we got what we ask for."""
        if self._tree is None:
            return None
        queue = self.session.queue_of(reclaimer)
        job = self.session.job_of(reclaimer)
        if queue is None or job is None:
            return []
        tree = self._tree.copy()
        tree.put(queue, job.id, job.held + reclaimer.request, job.total_request)
        tree.update()
        victims = []
        for task in candidates:
            theirs, their_queue = self.session.job_of(task), self.session.queue_of(task)
            if theirs is None or their_queue is None:
                continue
            before = tree.held(their_queue, theirs.id)
            tree.put(their_queue, theirs.id, before - task.request, theirs.total_request)
            tree.update()
            if tree.compare(queue, their_queue) < 0:
                victims.append(task)
            tree.put(their_queue, theirs.id, before, theirs.total_request)
            tree.update()
        return victims

    def on_allocate(self, task: Task) -> None:
        self._follow(task)

    def alike_limit(self, job: Job, task: Task, number: int) -> int:
        return number if self._tree is None else 0

    def on_deallocate(self, task: Task) -> None:
        self._follow(task)

    def _follow(self, task: Task) -> None:
        job, queue = self.session.job_of(task), self.session.queue_of(task)
        if self._tree is None or job is None or queue is None:
            return
        self._tree.put(queue, job.id, job.held, job.total_request)
        self._tree.update()
