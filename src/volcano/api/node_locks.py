"""Node locks: a node annotation with a time, held from a pod's assignment to a card until its device plugin has it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from volcano.api.times import timestamp_or_none

LOCK_EXPIRY: Final = timedelta(minutes=5)


def is_locked(text: str, now: datetime) -> bool:
    """Whether the annotation's value is a lock in force. One that is too old, or no time at all, is none."""
    taken = timestamp_or_none(text)
    return taken is not None and abs(now - taken) < LOCK_EXPIRY
