"""JobBook: the jobs of a snapshot by id, and which of them came, changed or went since that was last asked.

A cycle in which one job of ten thousand changed must not look at the others: so jobs say that they changed, and the
jobs that a session sees stay sorted from one cycle to the next.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection

from volcano.scheduler.model import Job


class JobBook(dict[str, Job]):
    """Change it by single keys only: other ways of changing a dict are not noticed, and not offered."""

    __slots__ = ("_changed", "_ids", "_queues", "_seen", "_uncounted", "unsettled")

    def __init__(self) -> None:
        super().__init__()
        self._changed: set[str] = set()  # shared with the jobs, which enter their ids
        self._ids: list[str] = []  # of schedulable jobs, sorted
        self._seen: dict[str, Job] = {}  # schedulable jobs, in that order
        self._queues: frozenset[str] = frozenset()  # that existed when these were found
        self._uncounted: set[str] = set()  # changed, and not handed out by `take_changed` yet
        self.unsettled: set[str] = set()  # jobs about which a session has to decide, or that have gone

    def __setitem__(self, id: str, job: Job) -> None:
        before = self.get(id)
        if before is not None:
            before.changes = None
        super().__setitem__(id, job)
        job.changes = self._changed
        self._changed.add(id)

    def __delitem__(self, id: str) -> None:
        self[id].changes = None
        super().__delitem__(id)
        self._changed.add(id)

    def remove(self, id: str) -> Job | None:
        """The job, which is no longer here."""
        job = self.get(id)
        if job is not None:
            del self[id]
        return job

    def schedulable(self, queues: Collection[str]) -> dict[str, Job]:
        """Jobs with a PodGroup in a queue that exists, by id in ascending order; not to be changed."""
        names = frozenset(queues)
        if names != self._queues:
            self._queues = names
            self._changed.update(self)
        if self._changed:
            self._find_schedulable()
        return self._seen

    def _find_schedulable(self) -> None:
        ids, seen, moved = self._ids, self._seen, False
        many = len(self._changed) > 64
        for id in self._changed:
            job = self.get(id)
            if job is None or job.group is None or job.queue not in self._queues:
                if id in seen:
                    del seen[id]
                    if not many:
                        del ids[bisect_left(ids, id)]
            else:
                if id not in seen:
                    moved = True
                    if not many:
                        insort(ids, id)
                seen[id] = job
        if many:
            self._ids = ids = sorted(seen)
        if moved:
            self._seen = {id: seen[id] for id in ids}
        self.unsettled |= self._changed
        self._uncounted |= self._changed
        self._changed.clear()

    def take_changed(self) -> set[str]:
        """Ids of jobs that came, changed or went since this was last asked, as far as `schedulable` has seen them."""
        changed, self._uncounted = self._uncounted, set()
        return changed
