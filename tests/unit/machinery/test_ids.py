"""Ids: random ones, and ones that a seed repeats."""

from __future__ import annotations

import re

import pytest

from volcano.machinery.ids import ALPHABET, RandomIds, SeededIds


@pytest.mark.parametrize("ids", [RandomIds(), SeededIds(1)])
def test_ids_do_not_repeat_and_look_right(ids):
    uids, suffixes = {ids.uid() for _ in range(500)}, [ids.suffix() for _ in range(500)]

    assert len(uids) == 500
    assert all(
        re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", uid) for uid in uids
    )
    assert all(len(suffix) == 5 and set(suffix) <= set(ALPHABET) for suffix in suffixes)


def test_seeded_ids_are_the_same_for_the_same_seed():
    assert [SeededIds(5).uid() for _ in range(2)] == [SeededIds(5).uid() for _ in range(2)]
    assert SeededIds(5).uid() != SeededIds(6).uid()
