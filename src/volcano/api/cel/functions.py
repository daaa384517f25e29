"""Functions that Kubernetes adds to CEL and rules use: on lists, sets, regular expressions and quantities.

Addresses, URLs, versions and named formats have modules of their own; `FUNCTIONS` has them all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from volcano.api.cel import named_formats as cel_named_formats
from volcano.api.cel import networks as cel_networks
from volcano.api.cel import urls as cel_urls
from volcano.api.cel import versions as cel_versions
from volcano.api.cel.values import Function, kind_of, made, text_of
from volcano.api.cel.versions import SEMVER, compare_versions
from volcano.api.patterns import compile_pattern
from volcano.api.quantity import Quantity, QuantityError, parse_quantity

QUANTITY: Final = "kubernetes.Quantity"


def _is_sorted(items: Sequence[Any]) -> bool:
    return all(one <= other for one, other in pairwise(items))


def _index(items: Sequence[Any], wanted: Any) -> int:
    return next((index for index, item in enumerate(items) if item == wanted), -1)


def _last_index(items: Sequence[Any], wanted: Any) -> int:
    return next((index for index in range(len(items) - 1, -1, -1) if items[index] == wanted), -1)


def _find(text: str, pattern: str) -> str:
    return next(iter(compile_pattern(pattern).find_all(text, 1)), "")


def _find_all(text: str, pattern: str) -> list[str]:
    return compile_pattern(pattern).find_all(text)


def _find_some(text: str, pattern: str, limit: int) -> list[str]:
    return compile_pattern(pattern).find_all(text, None if limit < 0 else limit)


# -- quantities -----------------------------------------------------------------------------------------------
def _is_quantity(text: str) -> bool:
    try:
        parse_quantity(text)
    except QuantityError:
        return False
    return True


def _made(amount: Quantity) -> dict[str, str]:
    return made(QUANTITY, str(amount))


def _amount(value: Mapping[str, Any] | int) -> Quantity:
    return parse_quantity(value if isinstance(value, int) else text_of(value, QUANTITY))


def _compare(one: Mapping[str, Any], other: Mapping[str, Any]) -> int:
    """Quantities or versions, two of a kind."""
    if kind_of(one, QUANTITY, SEMVER) == SEMVER:
        return compare_versions(one, other)
    first, second = _amount(one), _amount(other)
    return (first > second) - (first < second)


def _sign(value: Mapping[str, Any]) -> int:
    nanos = _amount(value).nanos
    return (nanos > 0) - (nanos < 0)


def _added(one: Mapping[str, Any], other: Mapping[str, Any] | int) -> dict[str, str]:
    return _made(_amount(one) + _amount(other))


def _subtracted(one: Mapping[str, Any], other: Mapping[str, Any] | int) -> dict[str, str]:
    return _made(_amount(one) - _amount(other))


def _as_integer(value: Mapping[str, Any]) -> int:
    if not _is_integer(value):
        raise ValueError(f"cannot convert value to integer: {text_of(value, QUANTITY)}")
    return _amount(value).value


def _is_integer(value: Mapping[str, Any]) -> bool:
    amount = _amount(value)
    return amount.nanos % 10**9 == 0 and -(2**63) <= amount.value < 2**63


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
    Function("findAll", ("STRING", "STRING", "INT"), "DYN", _find_some),
    Function("isQuantity", ("STRING",), "BOOL", _is_quantity, False),
    Function("quantity", ("STRING",), "MAP", lambda text: _made(parse_quantity(text)), False),
    Function("sign", ("MAP",), "INT", _sign, False),
    Function("isInteger", ("MAP",), "BOOL", _is_integer),
    Function("asInteger", ("MAP",), "INT", _as_integer),
    Function("asApproximateFloat", ("MAP",), "DOUBLE", lambda value: float(_amount(value))),
    Function("compareTo", ("MAP", "MAP"), "INT", _compare),
    Function("isGreaterThan", ("MAP", "MAP"), "BOOL", lambda a, b: _compare(a, b) > 0),
    Function("isLessThan", ("MAP", "MAP"), "BOOL", lambda a, b: _compare(a, b) < 0),
    Function("add", ("MAP", "MAP"), "MAP", _added),
    Function("add", ("MAP", "INT"), "MAP", _added),
    Function("sub", ("MAP", "MAP"), "MAP", _subtracted),
    Function("sub", ("MAP", "INT"), "MAP", _subtracted),
    *cel_networks.FUNCTIONS,
    *cel_urls.FUNCTIONS,
    *cel_versions.FUNCTIONS,
    *cel_named_formats.FUNCTIONS,
)  # fmt: skip
