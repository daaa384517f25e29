"""TimeAfter: a time that counts from a moment which some clock has written, though that clock may have been ahead."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass
from datetime import datetime, timedelta

from volcano.machinery.plan import Later


@dataclass(frozen=True, slots=True)
class TimeAfter:
    """`lasts` counts from `since`, or from when a decision first saw a `since` that was still to come.

    Such a moment is from a clock that was wrong; waiting for it to pass would take as long as that clock was ahead. To
    take it for long ago would end the time at once for clocks that differ by a second. A controller that is restarted
    sees it for the first time again, so the wait is never longer than `lasts` after the last restart.
    """

    since: datetime
    lasts: timedelta

    def is_over(self, now: datetime, causes: Collection[Hashable]) -> bool:
        """`causes` are those of the decision: a reminder for a moment to come is answered by this very value."""
        return self in causes or self.since + self.lasts <= now

    def reminder(self, now: datetime) -> Later:
        """For a time that is not over."""
        if self.since > now:
            return Later(self.lasts, self)
        return Later(self.since + self.lasts - now)
