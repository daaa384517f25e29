"""Rate limits for the events that the scheduler records about a job: the same message is not written every cycle."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from volcano.api.times import is_recent

REPEAT_INTERVAL: Final = timedelta(minutes=50)
"""The same event again. Kubernetes deletes events after an hour; a job that still waits keeps its event by this."""
NEW_MESSAGE_INTERVAL: Final = timedelta(seconds=10)
"""Another message for the same reason."""
MAX_MESSAGES_PER_REASON: Final = 8


@dataclass(slots=True)
class _Recorded:
    at: datetime
    messages: dict[str, datetime] = field(default_factory=dict)


class EventLimiter:
    """What was recorded when, by job and reason.

    A cycle may give several messages for one reason, so all the latest are remembered: with the last one alone, two
    messages that take turns would each look new.
    """

    def __init__(self) -> None:
        self._recorded: dict[tuple[str, str], _Recorded] = {}

    def __len__(self) -> int:
        return len(self._recorded)

    def allows(self, job: str, reason: str, message: str, now: datetime) -> bool:
        """Whether the event may be recorded now; if so, it counts as recorded."""
        known = self._recorded.get((job, reason))
        if known is None:
            known = self._recorded[job, reason] = _Recorded(now)
        elif message in known.messages:
            if is_recent(known.messages[message], now, REPEAT_INTERVAL):
                return False
        elif is_recent(known.at, now, NEW_MESSAGE_INTERVAL):
            return False
        known.at = now
        known.messages.pop(message, None)
        known.messages[message] = now
        while len(known.messages) > MAX_MESSAGES_PER_REASON:
            del known.messages[next(iter(known.messages))]
        return True

    def keep(self, jobs: Container[str]) -> None:
        """Drop deleted jobs."""
        self._recorded = {place: known for place, known in self._recorded.items() if place[0] in jobs}
