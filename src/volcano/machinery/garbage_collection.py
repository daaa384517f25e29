"""Short pauses of Python's garbage collector in programs that hold many objects for long.

A full collection visits every object: about a second for some ten thousand pods. An object that survived one full
collection almost always stays, so survivors are frozen and later collections skip them. To find reference cycles
among frozen objects, all are unfrozen once per UNFREEZE_EVERY. What a request makes is almost never part of a cycle:
young objects are looked at after MAX_YOUNG_OBJECTS of them, where Python's usual 700 are made by three requests.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from volcano.machinery.clock import Clock

OLDEST_GENERATION: Final = 2
MAX_YOUNG_OBJECTS: Final = 20_000
UNFREEZE_EVERY: Final = timedelta(hours=1)


@contextlib.contextmanager
def survivors_frozen() -> Iterator[None]:
    """Collect seldom and freeze the survivors of every full collection, for as long as the block runs."""
    usual = gc.get_threshold()
    gc.callbacks.append(_freeze_survivors)
    gc.set_threshold(MAX_YOUNG_OBJECTS, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        gc.callbacks.remove(_freeze_survivors)
        gc.unfreeze()


async def collect_fully_every(clock: Clock, period: timedelta = UNFREEZE_EVERY) -> None:
    """Until cancelled: unfreeze everything once per period, so that the next full collection visits it again."""
    while True:
        await clock.sleep(period)
        gc.unfreeze()


def _freeze_survivors(phase: str, collection: dict[str, int]) -> None:
    if phase == "stop" and collection["generation"] == OLDEST_GENERATION:
        gc.freeze()
