"""Records as rows and back: the fields of a record are the columns of its table, in the same order. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final, TypeVar, get_type_hints

import msgspec

T = TypeVar("T", bound=msgspec.Struct)

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
UNSTORED: Final = frozenset(("used_cpu_milli", "used_memory_bytes", "measured_seconds"))
"""Fields that are computed when they are read."""


def milliseconds(moment: datetime) -> int:
    return (moment - EPOCH) // _MILLISECOND


def moment_of(stored: int) -> datetime:
    return EPOCH + stored * _MILLISECOND


@cache
def columns_of(record: type[msgspec.Struct]) -> tuple[str, ...]:
    return tuple(name for name in record.__struct_fields__ if name not in UNSTORED)


def values_of(record: msgspec.Struct) -> dict[str, Any]:
    return {name: _stored(getattr(record, name)) for name in columns_of(type(record))}


def record_of(kind: type[T], row: Sequence[Any], **computed: Any) -> T:
    """From the columns in the order of `columns_of`."""
    found = {name: read(value) for (name, read), value in zip(_readers(kind), row, strict=True)}
    return kind(**found, **computed)


def quoted(columns: Sequence[str], table: str = "") -> str:
    before = f"{table}." if table else ""
    return ", ".join(f'{before}"{name}"' for name in columns)


def _stored(value: Any) -> Any:
    match value:
        case datetime():
            return milliseconds(value)
        case bool():
            return int(value)
        case dict() | list():
            return msgspec.json.encode(value).decode()
        case str():
            return value.replace("\x00", "")  # PostgreSQL's text has none
        case _:
            return value


@cache
def _readers(kind: type[msgspec.Struct]) -> tuple[tuple[str, Callable[[Any], Any]], ...]:
    hints = get_type_hints(kind)
    return tuple((name, _reader(hints[name])) for name in columns_of(kind))


def _reader(hint: Any) -> Callable[[Any], Any]:
    if hint is datetime:
        return moment_of
    if hint == datetime | None:
        return lambda value: None if value is None else moment_of(value)
    if hint is bool:
        return bool
    if hint in (int, str, float, int | None, float | None):
        return lambda value: value
    decoder = msgspec.json.Decoder(hint)
    return decoder.decode
