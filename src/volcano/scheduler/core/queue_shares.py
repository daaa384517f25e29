"""QueueShare: one queue's account during a session. Plugins compute what it deserves and may have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from volcano.scheduler.core.ledger import Sums
from volcano.scheduler.model import CPU, MEMORY, PODS, Queue, Resources, Task
from volcano.scheduler.model.resources import GREATEST, dominant_share

NOTHING: Final = Resources()
"""Never changed."""


@dataclass(slots=True, eq=False)
class QueueShare:
    """One queue's account during a session. `allocated` follows placements; `inqueue` is admitted but not placed.

    `leaving` is what tasks that are being ended still use; `allocated` is without them.
    """

    queue: Queue
    guarantee: Resources
    capability: Resources | None = None
    real_capability: Resources = field(default_factory=Resources)
    deserved: Resources = field(default_factory=Resources)
    allocated: Resources = field(default_factory=Resources)
    request: Resources = field(default_factory=Resources)
    inqueue: Resources = field(default_factory=Resources)
    elastic: Resources = field(default_factory=Resources)
    leaving: Resources = field(default_factory=Resources)
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

    def most_alike(self, request: Resources, limit: Resources, number: int) -> int:
        """Of `number` such requests, how many can be added one after the other before one would exceed the limit."""
        held, bounds = self.allocated.amounts, limit.amounts
        for name, asked in request.amounts.items():
            if asked > 0.0 and name != PODS:
                has, bound = held.get(name, 0.0), bounds.get(name, 0.0)
                if has + asked * number > bound:
                    number = max(0, min(number, int((bound - has) / asked) + 1))
                    while number and has + asked * number > bound:
                        number -= 1
        return number

    @property
    def waits_for_leavers(self) -> bool:
        """Whether tasks that are being ended may keep others from being bound."""
        return self.capability is not None and any(amount > 0.0 for amount in self.leaving.amounts.values())

    def has_room_to_bind(self, request: Resources) -> bool:
        """Whether the stated capability has room for a request beside the tasks that are being ended."""
        if self.capability is None:
            return True
        held, bounds, asked = self.allocated.amounts, self.capability.amounts, request.amounts
        return not any(
            leaving > 0.0 and name != PODS and name in bounds and asked.get(name, 0.0) > 0.0
            and held.get(name, 0.0) + leaving + asked[name] > bounds[name]
            for name, leaving in self.leaving.amounts.items()
        )  # fmt: skip

    def wanted_with(self, asked: Resources) -> Resources:
        """What the queue would stand for if a job asking this much entered."""
        return (asked + self.allocated).add(self.inqueue).subtract(self.elastic)

    def enter(self, sums: Sums) -> None:
        """Count the jobs of a queue as the session opens."""
        self.allocated.add(sums.allocated)
        self.request.add(sums.request)
        self.inqueue.add(sums.inqueue)
        self.elastic.add(sums.elastic)
        self.leaving.add(sums.leaving)

    def refresh_share(self) -> None:
        self.share = dominant_share(self.allocated, self.deserved)


def account_for(queue: Queue, sums: Sums) -> QueueShare:
    """Its amounts are those of the ledger: they are replaced, and never changed."""
    return QueueShare(
        queue,
        queue.guarantee or NOTHING,
        stated_capability(queue),
        real_capability=NOTHING,
        deserved=NOTHING,
        allocated=sums.allocated,
        request=sums.request,
        inqueue=sums.inqueue,
        elastic=sums.elastic,
        leaving=sums.leaving,
    )


def stated_capability(queue: Queue) -> Resources | None:
    """A stated capability bounds cpu and memory only where it names them."""
    if queue.capability is None:
        return None
    capability = queue.capability.copy()
    for name in (CPU, MEMORY):
        if capability[name] <= 0.0:
            capability.amounts[name] = GREATEST
    return capability


def summed(tasks: Iterable[Task]) -> Resources:
    total = Resources()
    for task in tasks:
        total.add(task.request)
    return total
