"""Copies of JSON values are equal and share nothing that can change."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from volcano.api.copies import copied

atoms = st.none() | st.booleans() | st.integers() | st.text(max_size=3)
values = st.recursive(
    atoms, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
)


def changeable(value: Any) -> set[int]:
    if isinstance(value, dict):
        return {id(value)}.union(*map(changeable, value.values()))
    if isinstance(value, list):
        return {id(value)}.union(*map(changeable, value))
    return set()


@given(values)
def test_a_copy_is_equal_and_shares_nothing_that_can_change(value: Any) -> None:
    copy = copied(value)

    assert copy == value
    assert not changeable(copy) & changeable(value)
