"""Which victims may leave without taking from their queue what it is guaranteed.

Plugins judge victims tier by tier, and the first tier that names any decides, so a plugin that knows guarantees may
not be asked at all. A guarantee holds whichever plugin decided, so the actions check it themselves. As in Volcano, the
guarantee of a queue above the victim's own does not protect it.
"""

from __future__ import annotations

from collections.abc import Iterable

from volcano.scheduler.framework.queue_usage import held_by_queues
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Task


def within_guarantees(session: Session, claimant: str, victims: Iterable[Task]) -> list[Task]:
    """The victims, in their order, whose queues keep what they are guaranteed.

    What the claiming queue loses in a victim of its own it gains in the claimant, so that one does not count.
    """
    victims = list(victims)
    if not session.has_guarantees:
        return victims
    held = held_by_queues(session)
    kept = []
    for task in victims:
        queue = session.queue_of(task)
        if queue is not None and queue.guarantee is not None and queue.name != claimant:
            left = held[queue.name] - task.request
            if not queue.guarantee.fits(left):
                continue
            held[queue.name] = left
        kept.append(task)
    return kept
