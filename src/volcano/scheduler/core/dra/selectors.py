"""Device selectors: CEL expressions about one device, compiled once and evaluated once for all that they look at."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Final

import msgspec

from volcano.api.meta import JSON
from volcano.api.quantity import parse_quantity
from volcano.scheduler.core.dra.published import AttributeValue, PublishedDevice

_DOMAIN: Final = re.compile(r"""\.(?:attributes|capacity)\s*\[\s*(?:"([^"]+)"|'([^']+)')\s*\]""")
_VARIABLE: Final = re.compile(r"\bdevice\b")
_LITERAL: Final = r"""(?:"([^"\\]+)"|'([^'\\]+)')"""
_REFERENCE: Final = re.compile(
    r"device\s*\.\s*(?:driver\b|allowMultipleAllocations\b|(attributes|capacity)\s*\[\s*" + _LITERAL + r"\s*\]"
    r"(?:\s*\.\s*([A-Za-z_]\w*)\b(?!\s*\()|\s*\[\s*" + _LITERAL + r"\s*\])?)"
)
MAX_REMEMBERED: Final = 20_000


class SelectorFailed(Exception):
    """An expression does not compile, or cannot be evaluated for a device."""


class LookedAt(msgspec.Struct, frozen=True):
    """The attributes and capacities, by full name, that expressions can see at most."""

    names: frozenset[str] = frozenset()
    domains: frozenset[str] = frozenset()
    """Those of which all attributes and capacities can be seen."""
    is_everything: bool = False

    def __or__(self, other: LookedAt) -> LookedAt:
        everything = self.is_everything or other.is_everything
        return LookedAt(self.names | other.names, self.domains | other.domains, everything)

    def includes(self, name: str, driver: str) -> bool:
        """`name` as a device states it: without a domain it is the driver's."""
        full = name if "/" in name else f"{driver}/{name}"
        return self.is_everything or full in self.names or full.rpartition("/")[0] in self.domains


Seen = tuple[str, bool, tuple[tuple[str, AttributeValue], ...], tuple[tuple[str, Any], ...]]
"""Driver, whether it can be shared, attributes, capacities."""


@lru_cache(maxsize=1024)
def looked_at(expression: str) -> LookedAt:
    """Every use of the variable must be a known one; otherwise the expression may see all of the device."""
    names, domains = set(), set()
    for use in _VARIABLE.finditer(expression):
        found = _REFERENCE.match(expression, use.start())
        if found is None:
            return LookedAt(is_everything=True)
        kind, *quoted, name, other, another = found.groups()
        if kind is None:
            continue
        domain = quoted[0] or quoted[1]
        short = name or other or another
        if short:
            names.add(f"{domain}/{short}")
        else:
            domains.add(domain)
    return LookedAt(frozenset(names), frozenset(domains))


def is_selected(expression: str, device: PublishedDevice) -> bool:
    """SelectorFailed when the expression cannot be evaluated."""
    found = _evaluated(expression, _seen(device, looked_at(expression)))
    if isinstance(found, str):
        raise SelectorFailed(found)
    return found


def _seen(device: PublishedDevice, at: LookedAt) -> Seen:
    driver = device.id.driver
    attributes = tuple(item for item in device.attributes.items() if at.includes(item[0], driver))
    capacity = tuple((name, offer.stated) for name, offer in device.capacity.items() if at.includes(name, driver))
    return driver, device.is_shareable, attributes, capacity


@lru_cache(maxsize=1024)
def _compiled(expression: str) -> tuple[Any, str]:
    """The compiled expression, or the compiler's message."""
    from volcano.api.cel.evaluator import MAX_EXPRESSION_CHARACTERS, environment

    if len(expression) > MAX_EXPRESSION_CHARACTERS:
        return None, "CEL compile error: the expression is too long"
    try:
        return environment("device").compile(expression), ""
    except Exception as error:  # the engine raises its own kinds, none of them public
        return None, f"CEL compile error: {' '.join(str(error).split())[:500]}"


@lru_cache(maxsize=MAX_REMEMBERED)
def _evaluated(expression: str, seen: Seen) -> bool | str:
    """What the expression says of a device, or why it says nothing."""
    from volcano.api.cel.evaluator import is_error

    program, problem = _compiled(expression)
    if program is None:
        return problem
    try:
        result = program.eval(data={"device": _bound(expression, seen)})
        if is_error(result):
            return f"CEL runtime error: {str(result.value())[:500]}"
        return result.plain_value() is True
    except Exception as error:  # the engine raises its own kinds, none of them public
        return f"CEL runtime error: {str(error)[:500]}"


def _bound(expression: str, seen: Seen) -> JSON:
    """A device as expressions see it; a domain that it has nothing in is an empty map."""
    driver, is_shareable, attributes, capacity = seen
    domains = [one or other for one, other in _DOMAIN.findall(expression)]
    return {
        "driver": driver,
        "allowMultipleAllocations": is_shareable,
        "attributes": _by_domain(attributes, driver, domains, _attribute),
        "capacity": _by_domain(capacity, driver, domains, _amount),
    }


def _by_domain(
    values: Iterable[tuple[str, Any]], driver: str, domains: list[str], convert: Callable[[Any], Any]
) -> JSON:
    found: JSON = {domain: {} for domain in domains}
    for name, value in values:
        domain, slash, short = name.rpartition("/")
        found.setdefault(domain if slash else driver, {})[short] = convert(value)
    return found


def _attribute(stated: AttributeValue) -> Any:
    from volcano.api.cel.values import made
    from volcano.api.cel.versions import SEMVER, parse_version

    kind, value = stated
    if isinstance(value, tuple):
        return [_attribute((kind, each)) for each in value]
    return made(SEMVER, parse_version(str(value)).text) if kind == "version" else value


def _amount(stated: Any) -> Any:
    from volcano.api.cel.functions import QUANTITY
    from volcano.api.cel.values import made

    return made(QUANTITY, str(parse_quantity(stated)))
