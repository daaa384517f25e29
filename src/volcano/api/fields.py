"""A cursor over untyped JSON: reads a value as the type it should have, and notes what is wrong at its path.

Validation walks user input, which may be anything at all. A value of the wrong type is noted as an error once and then
counts as absent, so that a rule never has to ask. Null counts as absent, as it does in Go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

from volcano.api import field_errors
from volcano.api.errors import FieldError
from volcano.api.quantity import Quantity, QuantityError, parse_quantity

MOST_ERRORS: Final = 200
"""A reply is for people; past this many errors nothing more is noted."""


_Step: TypeAlias = "tuple[Field, Any, Callable[[str, Any], str]]"
"""Parent, name or index, and how that is written behind the parent's path."""


class Field:
    """A place in a JSON value. Children share the list of errors."""

    __slots__ = ("_path", "errors", "value")

    def __init__(self, value: Any, path: str | _Step, errors: list[FieldError] | None = None) -> None:
        self.value = value
        self._path = path
        self.errors: list[FieldError] = [] if errors is None else errors

    @property
    def path(self) -> str:
        """Written out only when asked for: most fields are never complained about."""
        if isinstance(self._path, tuple):
            parent, step, write = self._path
            self._path = write(parent.path, step)
        return self._path

    @property
    def is_set(self) -> bool:
        return self.value is not None

    # -- going deeper ----------------------------------------------------------------------------------------------
    def at(self, *names: str) -> Field:
        """The field of that name, whether or not it is there."""
        place = self
        for name in names:
            inside = place.value.get(name) if isinstance(place.value, dict) else None
            place = Field(inside, (place, name, field_errors.child), self.errors)
        return place

    def index(self, index: int | str, value: Any = None) -> Field:
        return Field(value, (self, index, field_errors.item), self.errors)

    def has(self, name: str) -> bool:
        return isinstance(self.value, dict) and self.value.get(name) is not None

    def each(self, name: str) -> list[Field]:
        """The elements of the list of that name."""
        if not self.has(name):
            return []
        place = self.at(name)
        if place.value is None:
            return []
        if not isinstance(place.value, list):
            place.is_no("a list")
            return []
        return [place.index(i, value) for i, value in enumerate(place.value)]

    def entries(self, name: str) -> list[tuple[str, Field]]:
        """The entries of the map of that name, in key order."""
        place = self.at(name)
        if place.value is None:
            return []
        if not isinstance(place.value, dict):
            place.is_no("an object")
            return []
        return [(str(key), place.index(str(key), place.value[key])) for key in sorted(place.value, key=str)]

    # -- reading ---------------------------------------------------------------------------------------------------
    def text(self, name: str) -> str:
        found = self.value.get(name) if isinstance(self.value, dict) else None
        return found if type(found) is str else self.at(name).as_text()

    def texts(self, name: str) -> list[str]:
        return [place.as_text() for place in self.each(name)]

    def number(self, name: str, default: int = 0) -> int:
        found = self.at(name).as_number()
        return default if found is None else found

    def truth(self, name: str) -> bool:
        return bool(self.at(name).as_truth())

    def as_text(self) -> str:
        if self.value is None or isinstance(self.value, str):
            return self.value or ""
        self.is_no("a string")
        return ""

    def as_number(self) -> int | None:
        if self.value is None or (isinstance(self.value, int) and not isinstance(self.value, bool)):
            return self.value
        self.is_no("an integer")
        return None

    def as_truth(self) -> bool | None:
        if self.value is None or isinstance(self.value, bool):
            return self.value
        self.is_no("true or false")
        return None

    def as_quantity(self) -> Quantity | None:
        try:
            if isinstance(self.value, str | int | float):
                return parse_quantity(self.value)
        except (QuantityError, ValueError, OverflowError):
            pass
        if self.value is not None:
            self.invalid(QuantityError.MESSAGE)
        return None

    # -- noting ----------------------------------------------------------------------------------------------------
    def note(self, error: FieldError) -> None:
        if len(self.errors) < MOST_ERRORS:
            self.errors.append(error)

    def is_no(self, wanted: str) -> None:
        self.note(field_errors.type_invalid(self.path, self.value, f"must be {wanted}"))

    def invalid(self, detail: str, value: Any = None) -> None:
        self.note(field_errors.invalid(self.path, self.value if value is None else value, detail))

    def required(self, detail: str = "") -> None:
        self.note(field_errors.required(self.path, detail))

    def forbidden(self, detail: str) -> None:
        self.note(field_errors.forbidden(self.path, detail))

    def duplicate(self, value: Any = None) -> None:
        self.note(field_errors.duplicate(self.path, self.value if value is None else value))

    def not_found(self, value: Any = None, detail: str = "") -> None:
        self.note(field_errors.not_found(self.path, self.value if value is None else value, detail))

    def too_long(self, limit: int) -> None:
        self.note(field_errors.too_long(self.path, limit))

    def too_many(self, actual: int, limit: int) -> None:
        self.note(field_errors.too_many(self.path, actual, limit))

    def unsupported(self, choices: Iterable[str]) -> None:
        self.note(field_errors.not_supported(self.path, self.value, choices))

    def check(self, problems: Iterable[str]) -> None:
        """Note what a check of api.names found about this value."""
        for problem in problems:
            self.invalid(problem)

    def one_of(self, *choices: str) -> None:
        """A text, if there is one, must be one of these."""
        if self.as_text() and self.value not in choices:
            self.unsupported(choices)
