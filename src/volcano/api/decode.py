"""From JSON bytes to structs, forgivingly.

The API server has validated what it stores; reading must not fail because a list is null or a number came as
a string. What cannot be read even so is `Unreadable`, and the caller sets that one object aside.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, Final, TypeVar

import msgspec

from volcano.api.meta import Resource

R = TypeVar("R", bound=Resource)
MAX_RECENT: Final = 1024
MAX_RECENT_BYTES: Final = 16 * 1024


class Unreadable(ValueError):
    """An object whose fields do not have the types its kind promises; it is set aside with this reason."""


@cache
def _decoder(reader: type[Any]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(reader)


def prepare_decoders(readers: Iterable[type[Resource]]) -> None:
    """Build the decoders of these kinds now, before other threads decode objects.

    msgspec builds its description of a struct at the first use; when two threads do that at once, the process crashes.
    """
    for reader in readers:
        _decoder(reader)


def decode(reader: type[R], raw: bytes | bytearray | memoryview) -> R:
    """One object. Nulls count as absent where the field cannot be null."""
    try:
        found: R = _decoder(reader).decode(raw)
        return found
    except msgspec.ValidationError:
        return decode_object(reader, msgspec.json.decode(raw))


def decode_shared(reader: type[R], raw: bytes | bytearray | memoryview) -> R:
    """One object, which several readers in this process get in turn: it is decoded once, and they share the struct."""
    text = bytes(raw)
    recent = _RECENT.get(reader)
    if recent is None:
        recent = _RECENT[reader] = {}
    found: R | None = recent.get(text)
    if found is None:
        found = decode(reader, text)
        if len(recent) >= MAX_RECENT:
            recent.clear()
        if len(text) <= MAX_RECENT_BYTES:
            recent[text] = found
    return found


_RECENT: dict[type[Any], dict[bytes, Any]] = {}
"""By reader, the text of objects that were decoded lately."""


def decode_object(reader: type[R], value: Any) -> R:
    """The same from an already parsed object."""
    try:
        return msgspec.convert(value, reader, strict=False)
    except msgspec.ValidationError:
        try:
            return msgspec.convert(_without_nulls(value), reader, strict=False)
        except msgspec.ValidationError as error:
            raise Unreadable(str(error)) from error


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_nulls(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [_without_nulls(v) for v in value if v is not None]
    return value
