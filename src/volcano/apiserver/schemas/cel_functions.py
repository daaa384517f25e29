"""Functions that Kubernetes adds to CEL and rules use: on lists, sets, regular expressions and quantities.

A quantity is kept as its canonical text between calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from volcano.api.quantity import Quantity, QuantityError, parse_quantity
from volcano.apiserver.schemas.patterns import compile_pattern


class Function(NamedTuple):
    """One overload: parameter and result types by their CEL names, and what it does."""

    name: str
    parameters: tuple[str, ...]
    result: str
    does: Callable[..., Any]
    is_member: bool = True


def _is_sorted(items: Sequence[Any]) -> bool:
    return all(one <= other for one, other in pairwise(items))


def _index(items: Sequence[Any], wanted: Any) -> int:
    return next((index for index, item in enumerate(items) if item == wanted), -1)


def _last_index(items: Sequence[Any], wanted: Any) -> int:
    return next((index for index in range(len(items) - 1, -1, -1) if items[index] == wanted), -1)


def _find(text: str, pattern: str) -> str:
    return next(iter(_find_all(text, pattern)), "")


def _find_all(text: str, pattern: str) -> list[str]:
    compiled = compile_pattern(pattern)
    if compiled is None:
        raise ValueError(f"the pattern {pattern!r} cannot be used")
    return compiled.found(text)


def _is_quantity(text: str) -> bool:
    try:
        parse_quantity(text)
    except QuantityError:
        return False
    return True


def _compare(one: str, other: str) -> int:
    first, second = parse_quantity(one), parse_quantity(other)
    return (first > second) - (first < second)


def _sign(text: str) -> int:
    return _compare(text, "0")


def _added(one: str, other: str | int) -> str:
    return str(parse_quantity(one) + parse_quantity(other))


def _subtracted(one: str, other: str | int) -> str:
    return str(parse_quantity(one) - parse_quantity(other))


def _as_integer(text: str) -> int:
    amount: Quantity = parse_quantity(text)
    if not _is_integer(text):
        raise ValueError(f"cannot convert value to integer: {text}")
    return amount.value


def _is_integer(text: str) -> bool:
    return parse_quantity(text).nanos % 10**9 == 0


FUNCTIONS: Final[tuple[Function, ...]] = (
    Function("isSorted", ("LIST",), "BOOL", _is_sorted),
    Function("sum", ("LIST",), "DYN", sum),
    Function("min", ("LIST",), "DYN", min),
    Function("max", ("LIST",), "DYN", max),
    Function("indexOf", ("LIST", "DYN"), "INT", _index),
    Function("lastIndexOf", ("LIST", "DYN"), "INT", _last_index),
    Function("sets.contains", ("LIST", "LIST"), "BOOL", lambda a, b: all(x in a for x in b), False),
    Function("sets.intersects", ("LIST", "LIST"), "BOOL", lambda a, b: any(x in a for x in b), False),
    Function(
        "sets.equivalent", ("LIST", "LIST"), "BOOL",
        lambda a, b: all(x in a for x in b) and all(x in b for x in a), False,
    ),
    Function("find", ("STRING", "STRING"), "STRING", _find),
    Function("findAll", ("STRING", "STRING"), "DYN", _find_all),
    Function("isQuantity", ("STRING",), "BOOL", _is_quantity, False),
    Function("quantity", ("STRING",), "STRING", lambda text: str(parse_quantity(text)), False),
    Function("sign", ("STRING",), "INT", _sign),
    Function("isInteger", ("STRING",), "BOOL", _is_integer),
    Function("asInteger", ("STRING",), "INT", _as_integer),
    Function("asApproximateFloat", ("STRING",), "DOUBLE", lambda text: float(parse_quantity(text))),
    Function("compareTo", ("STRING", "STRING"), "INT", _compare),
    Function("isGreaterThan", ("STRING", "STRING"), "BOOL", lambda a, b: _compare(a, b) > 0),
    Function("isLessThan", ("STRING", "STRING"), "BOOL", lambda a, b: _compare(a, b) < 0),
    Function("add", ("STRING", "STRING"), "STRING", _added),
    Function("add", ("STRING", "INT"), "STRING", _added),
    Function("sub", ("STRING", "STRING"), "STRING", _subtracted),
    Function("sub", ("STRING", "INT"), "STRING", _subtracted),
)  # fmt: skip
