"""What queues hold, want and may have: the sums that fair-share policies build on. No policy here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from volcano.scheduler.model import CPU, MEMORY, PODS, Job, Queue, Resources, Status, Task
from volcano.scheduler.model.resources import GREATEST, dominant_share


@dataclass(slots=True, eq=False)
class QueueShare:
    """One queue's account during a session. `allocated` follows placements; `inqueue` is spoken for but not placed."""

    queue: Queue
    guarantee: Resources
    capability: Resources | None = None
    real_capability: Resources = field(default_factory=Resources)
    deserved: Resources = field(default_factory=Resources)
    allocated: Resources = field(default_factory=Resources)
    request: Resources = field(default_factory=Resources)
    inqueue: Resources = field(default_factory=Resources)
    elastic: Resources = field(default_factory=Resources)
    share: float = 0.0

    @property
    def name(self) -> str:
        return self.queue.name

    def would_exceed(self, request: Resources, limit: Resources) -> bool:
        """Whether a requested dimension would go strictly beyond the limit; `pods` never counts."""
        held, bounds = self.allocated.amounts, limit.amounts
        for name, asked in request.amounts.items():
            if asked > 0.0 and name != PODS and held.get(name, 0.0) + asked > bounds.get(name, 0.0):
                return True
        return False

    def wanted_with(self, asked: Resources) -> Resources:
        """What the queue would stand for if a job asking this much entered."""
        return (asked + self.allocated).add(self.inqueue).subtract(self.elastic)

    def refresh_share(self) -> None:
        self.share = dominant_share(self.allocated, self.deserved)


def account_for(queue: Queue) -> QueueShare:
    return QueueShare(queue, queue.guarantee or Resources(), stated_capability(queue))


def stated_capability(queue: Queue) -> Resources | None:
    """A stated capability bounds cpu and memory only where it speaks of them."""
    if queue.capability is None:
        return None
    capability = queue.capability.copy()
    for name in (CPU, MEMORY):
        if capability[name] <= 0.0:
            capability.amounts[name] = GREATEST
    return capability


def enter(share: QueueShare, job: Job) -> None:
    """Count a job of the queue as the session opens."""
    share.allocated.add(job.allocated)
    share.request.add(job.allocated)
    for task in job.by_status[Status.PENDING].values():
        share.request.add(task.request)
    share.inqueue.add(spoken_for(job))
    share.elastic.add(elastic(job))


def spoken_for(job: Job) -> Resources:
    """What a job let in still waits for: of one in the queue, or of one running at its minimum."""
    if job.min_resources is None or not counts_as_inqueue(job):
        return Resources()
    return job.without_gated(still_missing(job))


def counts_as_inqueue(job: Job) -> bool:
    least = job.group.spec.min_member if job.group else 0
    return job.phase == "Inqueue" or (job.phase == "Running" and job.allocated_count >= least)


def still_missing(job: Job) -> Resources:
    """Of the minimum, what is not allocated yet."""
    missing = Resources()
    least = job.min_resources or missing
    for name, amount in least.amounts.items():
        if name in (CPU, MEMORY):
            missing.amounts[name] = max(amount - job.allocated[name], 0.0)
        elif name not in job.allocated:
            if name != PODS or amount > 0.0:
                missing.amounts[name] = amount
        elif amount - job.allocated[name] > 0.0:
            missing.amounts[name] = amount - job.allocated[name]
    return missing


def elastic(job: Job) -> Resources:
    """What a job holds beyond its minimum, and could be without."""
    return job.allocated.exceeding(job.min_resources or Resources())


def summed(tasks: Iterable[Task]) -> Resources:
    total = Resources()
    for task in tasks:
        total.add(task.request)
    return total
