"""Copies of plain JSON values: several times as fast as copy.deepcopy, which must reckon with any kind of object."""

from __future__ import annotations

from typing import Any


def copied(value: Any) -> Any:
    """A value that shares no dict and no list with this one."""
    if type(value) is dict:
        return {name: copied(each) if type(each) in _NESTED else each for name, each in value.items()}
    if type(value) is list:
        return [copied(each) if type(each) in _NESTED else each for each in value]
    return value


_NESTED = (dict, list)
