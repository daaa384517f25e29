"""Reading of a scenario's fields: every error gives the path and the reason, and a key that nothing reads is one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from volcano.api.durations import DurationError, parse_duration
from volcano.api.nearest_words import did_you_mean
from volcano.api.quantity import QuantityError, parse_quantity

MISSING: Any = object()


class InvalidScenario(ValueError):
    """The scenario cannot be used; the message has the path and the reason."""


class Fields:
    """A mapping at a path, whose keys are read once each."""

    def __init__(self, value: Any, path: str) -> None:
        if not isinstance(value, Mapping):
            raise InvalidScenario(f"{path or 'the file'}: must be a mapping, not {_kind(value)}")
        self.path, self._value = path, value
        self._read: set[str] = set()

    def at(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key

    def has(self, key: str) -> bool:
        return key in self._value and self._value[key] is not None

    def raw(self, key: str, default: Any = MISSING) -> Any:
        self._read.add(key)
        value = self._value.get(key)
        if value is None:
            if default is MISSING:
                raise InvalidScenario(f"{self.at(key)}: is required")
            return default
        return value

    def text(self, key: str, default: Any = MISSING) -> str:
        value = self.raw(key, default)
        if isinstance(value, bool | Mapping | list):
            raise InvalidScenario(f"{self.at(key)}: must be text, not {_kind(value)}")
        return str(value)

    def integer(self, key: str, default: Any = MISSING, *, least: int = 0, most: int = 10**9) -> int:
        value = self.raw(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise InvalidScenario(f"{self.at(key)}: must be a whole number from {least} to {most}")
        return value

    def number(self, key: str, default: Any = MISSING, *, least: float = 0.0) -> float:
        value = self.raw(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < math.inf:
            raise InvalidScenario(f"{self.at(key)}: must be a number of at least {least:g}")
        return float(value)

    def flag(self, key: str, default: bool = False) -> bool:
        value = self.raw(key, default)
        if not isinstance(value, bool):
            raise InvalidScenario(f"{self.at(key)}: must be true or false")
        return value

    def seconds(self, key: str, default: Any = MISSING) -> float:
        return seconds_at(self.raw(key, default), self.at(key)) if self.has(key) or default is MISSING else default

    def quantity(self, key: str, default: Any = MISSING) -> str:
        text = self.text(key, default)
        try:
            parse_quantity(text)
        except QuantityError as error:
            raise InvalidScenario(f"{self.at(key)}: {error}") from error
        return text

    def fields(self, key: str, default: Any = MISSING) -> Fields:
        return Fields(self.raw(key, default), self.at(key))

    def items(self, key: str, *, most: int = 10_000) -> Iterator[tuple[str, Any]]:
        """Each entry of a list, with its path."""
        value = self.raw(key, [])
        if not isinstance(value, list):
            raise InvalidScenario(f"{self.at(key)}: must be a list, not {_kind(value)}")
        if len(value) > most:
            raise InvalidScenario(f"{self.at(key)}: has {len(value)} entries; at most {most} are read")
        for index, item in enumerate(value):
            yield f"{self.at(key)}[{index}]", item

    def texts(self, key: str) -> list[str]:
        return [str(item) for _, item in self.items(key)]

    def mapping(self, key: str) -> dict[str, str]:
        value = self.raw(key, {})
        if not isinstance(value, Mapping):
            raise InvalidScenario(f"{self.at(key)}: must be a mapping, not {_kind(value)}")
        return {str(name): str(each) for name, each in value.items()}

    def done(self) -> None:
        """An unknown key is an error: a misspelt one would silently change what is simulated."""
        for key in self._value:
            if key not in self._read:
                raise InvalidScenario(f"{self.at(str(key))}: is not a known field{did_you_mean(str(key), self._read)}")


def seconds_at(value: Any, path: str) -> float:
    """A number of seconds, or a duration such as 1h30m; `2d` is two days."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf:
        return float(value)
    text = str(value)
    try:
        if text.endswith("d") and text[:-1].replace(".", "", 1).isdecimal():
            return float(text[:-1]) * 86400.0
        found = parse_duration(text).total_seconds()
    except (DurationError, ValueError) as error:
        raise InvalidScenario(f"{path}: must be a duration such as 90s, 1h30m or 2d, not {text[:40]!r}") from error
    if found < 0.0:
        raise InvalidScenario(f"{path}: must not be negative")
    return found


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    return {dict: "a mapping", list: "a list", str: "text", bool: "true or false"}.get(type(value), "a number")
