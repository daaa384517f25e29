"""Device selectors: CEL expressions about one device, compiled once and evaluated once per description."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from volcano.api.meta import JSON
from volcano.api.quantity import parse_quantity
from volcano.scheduler.core.dra.pools import PublishedDevice

_DOMAIN: Final = re.compile(r"""\.(?:attributes|capacity)\s*\[\s*(?:"([^"]+)"|'([^']+)')\s*\]""")
MAX_REMEMBERED: Final = 100_000


class SelectorFailed(Exception):
    """An expression does not compile, or cannot be evaluated for a device."""


def is_selected(expression: str, device: PublishedDevice) -> bool:
    """SelectorFailed when the expression cannot be evaluated."""
    found = _evaluated(expression, device.described)
    if isinstance(found, str):
        raise SelectorFailed(found)
    return found


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
def _evaluated(expression: str, described: bytes) -> bool | str:
    """What the expression says of a description, or why it says nothing."""
    from volcano.api.cel.evaluator import is_error

    program, problem = _compiled(expression)
    if program is None:
        return problem
    try:
        result = program.eval(data={"device": _bound(expression, described)})
        if is_error(result):
            return f"CEL runtime error: {str(result.value())[:500]}"
        return result.plain_value() is True
    except Exception as error:  # the engine raises its own kinds, none of them public
        return f"CEL runtime error: {str(error)[:500]}"


def _bound(expression: str, described: bytes) -> JSON:
    """A device as expressions see it; a domain that it has nothing in is an empty map."""
    driver, is_shareable, attributes, capacity = msgspec.json.decode(described)
    domains = [one or other for one, other in _DOMAIN.findall(expression)]
    return {
        "driver": driver,
        "allowMultipleAllocations": is_shareable,
        "attributes": _by_domain(attributes, driver, domains, _attribute),
        "capacity": _by_domain(capacity, driver, domains, _amount),
    }


def _by_domain(values: Mapping[str, Any], driver: str, domains: list[str], convert: Callable[[JSON], Any]) -> JSON:
    found: JSON = {domain: {} for domain in domains}
    for name, value in values.items():
        domain, slash, short = name.rpartition("/")
        found.setdefault(domain if slash else driver, {})[short] = convert(value)
    return found


def _attribute(stated: JSON) -> Any:
    from volcano.api.cel.values import made
    from volcano.api.cel.versions import SEMVER, parse_version

    for kind in ("int", "bool", "string"):
        if stated.get(kind) is not None:
            return stated[kind]
    return made(SEMVER, parse_version(str(stated.get("version"))).text)


def _amount(stated: JSON) -> Any:
    from volcano.api.cel.functions import QUANTITY
    from volcano.api.cel.values import made

    return made(QUANTITY, str(parse_quantity(stated["value"])))
