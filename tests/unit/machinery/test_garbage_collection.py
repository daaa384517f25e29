"""The garbage collector leaves out what has survived it, for as long as a program asks for short pauses."""

from __future__ import annotations

import gc
import weakref

from volcano.machinery.garbage_collection import survivors_frozen


class Node:
    def __init__(self) -> None:
        self.itself = self


def test_survivors_of_a_full_collection_are_left_out_of_the_next():
    kept = [Node() for _ in range(100)]

    with survivors_frozen():
        before = gc.get_freeze_count()
        gc.collect()
        assert gc.get_freeze_count() >= before + len(kept)

    assert gc.get_freeze_count() == 0


def test_new_cycles_are_still_found():
    with survivors_frozen():
        gc.collect()
        lost = weakref.ref(Node())
        gc.collect()

        assert lost() is None
