"""Since when a controller has run without a gap: after a gap no node is judged by times from before it.

A suspended laptop, a stopped process and an overloaded machine stop the observer as well as the observed. Their silence
during that time means nothing, so a controller that judges by silence counts from `WatchTime.since` at the earliest.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from volcano.api.meta import Key
from volcano.machinery.plan import Later

LOOK_INTERVAL: Final = timedelta(seconds=10)
MAX_GAP_BETWEEN_LOOKS: Final = timedelta(seconds=15)
"""A longer gap is a stall: with a look every 10 seconds the controller was not run for more than 5 of them."""
WATCH_KEY: Final = Key("", "watch/")
"""The key of a controller's own looks; no object can have this name."""
NEXT_LOOK: Final = Later(LOOK_INTERVAL, key=WATCH_KEY)


class WatchTime:
    """The looks of one controller at the world; it must look at least every LOOK_INTERVAL while it judges anyone."""

    def __init__(self) -> None:
        self._last_look: datetime | None = None
        self._since: datetime | None = None

    def look(self, now: datetime) -> datetime:
        """Count this look; returns since when there was no gap. A clock that was set back starts anew too."""
        last = self._last_look
        if self._since is None or last is None or not timedelta(0) <= now - last <= MAX_GAP_BETWEEN_LOOKS:
            self._since = now
        self._last_look = now
        return self._since
