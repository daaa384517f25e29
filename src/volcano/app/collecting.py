"""Keeps the garbage collector's pauses short in programs that hold many objects for long.

A full collection looks at every object there is: a second's pause for some ten thousand pods. What has survived one is
almost always here to stay, so later ones leave it out; now and then everything is looked at once more.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from volcano.machinery.clock import Clock

FULL: Final = 2
ALL_AGAIN: Final = timedelta(hours=1)


@contextlib.contextmanager
def short_pauses() -> Iterator[None]:
    """For as long as the block runs."""
    gc.callbacks.append(_leave_out_survivors)
    try:
        yield
    finally:
        gc.callbacks.remove(_leave_out_survivors)
        gc.unfreeze()


async def look_at_all_now_and_then(clock: Clock) -> None:
    """Until cancelled: cycles among what was left out are found too, if late."""
    while True:
        await clock.sleep(ALL_AGAIN)
        gc.unfreeze()


def _leave_out_survivors(phase: str, collection: dict[str, int]) -> None:
    if phase == "stop" and collection["generation"] == FULL:
        gc.freeze()
