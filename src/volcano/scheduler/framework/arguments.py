"""Typed reading of plugin and action arguments. A value of the wrong type counts as absent, as in Volcano."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from volcano.scheduler.model.durations import parse_duration
from volcano.scheduler.model.read import FALSE, TRUE


class Arguments(Mapping[str, Any]):
    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        self._values = dict(values or {})

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def integer(self, key: str, default: int) -> int:
        value = self._values.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else default

    def number(self, key: str, default: float) -> float:
        value = self._values.get(key)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else default

    def flag(self, key: str, default: bool) -> bool:
        value = self._values.get(key)
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value in TRUE | FALSE:
            return value in TRUE
        return default

    def text(self, key: str, default: str) -> str:
        value = self._values.get(key)
        return value if isinstance(value, str) else default

    def duration(self, key: str) -> timedelta | None:
        value = self._values.get(key)
        return parse_duration(value) if isinstance(value, str) else None
