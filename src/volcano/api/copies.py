"""Copies of plain JSON values: several times as fast as copy.deepcopy, which must reckon with any kind of object."""

from __future__ import annotations

from typing import Any

import msgspec


def copied(value: Any) -> Any:
    """A value that shares no dict and no list with this one."""
    if type(value) is dict:
        return {name: copied(each) if type(each) in _NESTED else each for name, each in value.items()}
    if type(value) is list:
        return [copied(each) if type(each) in _NESTED else each for each in value]
    return value


_NESTED = (dict, list)


def decoded_again(value: Any) -> Any:
    """A copy of a value that was decoded from JSON, by encoding and decoding it: half the cost of `copied`."""
    return _DECODER.decode(_ENCODER.encode(value))


_ENCODER, _DECODER = msgspec.json.Encoder(), msgspec.json.Decoder()
