"""Kubernetes quantities, exactly: "500m", "1.5Gi", "1e3", "-2k".

A quantity is an integer number of nano-units and a notation. Kubernetes keeps at most nine decimals and
rounds what is finer away from zero; so does `parse_quantity`. Nothing past this parser handles strings.
"""

from __future__ import annotations

import re
from functools import lru_cache, total_ordering
from typing import Final

NANO: Final = 10**9
BINARY: Final = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIX: Final = {power: suffix for suffix, power in DECIMAL.items()}
MAX_NANOS: Final = (2**63 - 1) * NANO
MAX_QUANTITY_CHARACTERS: Final = 128
_FORM: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?P<dot>\.?)(?P<fraction>[0-9]*)"
    r"(?P<suffix>[KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,4}|)"
)

BINARY_SI: Final = "BinarySI"
DECIMAL_SI: Final = "DecimalSI"
DECIMAL_EXPONENT: Final = "DecimalExponent"


class QuantityError(ValueError):
    """The text is not a quantity; the message is the API server's own."""

    MESSAGE: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


@total_ordering
class Quantity:
    """An exact amount. Comparison and hashing are by amount; the notation only matters for printing."""

    __slots__ = ("nanos", "notation")

    def __init__(self, nanos: int, notation: str = DECIMAL_SI) -> None:
        self.nanos = nanos
        self.notation = notation

    @property
    def milli(self) -> int:
        """Thousandths, rounded away from zero, as Kubernetes' MilliValue."""
        return _divide_away(self.nanos, 10**6)

    @property
    def value(self) -> int:
        """Units, rounded away from zero, as Kubernetes' Value."""
        return _divide_away(self.nanos, NANO)

    def __float__(self) -> float:
        return self.nanos / NANO

    def __bool__(self) -> bool:
        return self.nanos != 0

    def __add__(self, other: Quantity) -> Quantity:
        return Quantity(self.nanos + other.nanos, self.notation if self.nanos else other.notation)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.nanos - other.nanos, self.notation if self.nanos else other.notation)

    def __neg__(self) -> Quantity:
        return Quantity(-self.nanos, self.notation)

    def __mul__(self, times: int) -> Quantity:
        return Quantity(self.nanos * times, self.notation)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.nanos == other.nanos

    def __lt__(self, other: Quantity) -> bool:
        return self.nanos < other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __repr__(self) -> str:
        return f"Quantity({self})"

    def __str__(self) -> str:
        """The canonical form: the largest suffix that leaves an integer."""
        if self.nanos == 0:
            return "0"
        if self.notation == BINARY_SI and abs(self.nanos) >= 1024 * NANO and self.nanos % NANO == 0:
            return _with_binary_suffix(self.nanos // NANO)
        mantissa, power = _largest_power_of_thousand(self.nanos)
        if self.notation == DECIMAL_EXPONENT:
            return f"{mantissa}e{power}" if power else str(mantissa)
        return f"{mantissa}{_DECIMAL_SUFFIX[power]}"


@lru_cache(maxsize=65536)
def parse_quantity(text: str | int | float) -> Quantity:
    """The exact amount that a JSON string or number names; QuantityError when it is none."""
    if isinstance(text, bool):
        raise QuantityError(QuantityError.MESSAGE)
    if isinstance(text, int):
        return _bounded(text * NANO, DECIMAL_SI)
    if isinstance(text, float):
        text = format(text, ".15g")
    match = _FORM.fullmatch(text) if len(text) <= MAX_QUANTITY_CHARACTERS else None
    if match is None or not (match["whole"] or match["fraction"]):
        raise QuantityError(QuantityError.MESSAGE)
    suffix, digits = match["suffix"], int(match["whole"] + match["fraction"])
    scale = -len(match["fraction"])
    if suffix in BINARY:
        nanos, notation = _scaled(digits * BINARY[suffix], scale + 9), BINARY_SI
    elif suffix in DECIMAL:
        nanos, notation = _scaled(digits, scale + 9 + DECIMAL[suffix]), DECIMAL_SI
    else:
        nanos, notation = _scaled(digits, scale + 9 + int(suffix[1:])), DECIMAL_EXPONENT
    return _bounded(-nanos if match["sign"] == "-" else nanos, notation)


def format_quantity(text: str | int | float) -> str:
    """The canonical spelling of a quantity ("1000m" → "1")."""
    return str(parse_quantity(text))


def _scaled(digits: int, power: int) -> int:
    """digits · 10^power as an integer, what is lost rounded up."""
    if digits == 0:
        return 0
    if power >= 0:
        return int(digits * 10 ** min(power, 64))
    return _divide_away(digits, 10 ** min(-power, 4 * MAX_QUANTITY_CHARACTERS))


def _divide_away(amount: int, by: int) -> int:
    return -(-amount // by) if amount >= 0 else amount // by


def _bounded(nanos: int, notation: str) -> Quantity:
    """Kubernetes caps what is beyond 2^63-1 instead of refusing it."""
    return Quantity(max(-MAX_NANOS, min(MAX_NANOS, nanos)), notation)


def _with_binary_suffix(amount: int) -> str:
    for suffix, size in reversed(BINARY.items()):
        if amount % size == 0:
            return f"{amount // size}{suffix}"
    return str(amount)


def _largest_power_of_thousand(nanos: int) -> tuple[int, int]:
    power = -9
    while power < 18 and nanos % 1000 == 0:
        nanos //= 1000
        power += 3
    return nanos, power
