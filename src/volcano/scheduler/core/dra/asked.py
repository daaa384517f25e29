"""What a ResourceClaim asks for, read from its spec once: requests, their alternatives, constraints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from volcano.api.core import Toleration
from volcano.api.meta import JSON
from volcano.api.quantity import QuantityError, parse_quantity

ALL: Final = "All"
EXACT: Final = "ExactCount"
MAX_DEVICES_PER_CLAIM: Final = 32


class UnreadableClaim(ValueError):
    """The spec asks for something that this scheduler does not know."""


class DeviceAsk(msgspec.Struct, frozen=True):
    """A request, or one of its alternatives (then `parent` is the request's name)."""

    name: str
    parent: str
    class_name: str
    selectors: tuple[str, ...] = ()
    takes_all: bool = False
    count: int = 1
    is_admin: bool = False
    tolerations: tuple[JSON, ...] = ()
    tolerated: tuple[Toleration, ...] = ()
    """The same tolerations, read."""
    capacity: Mapping[str, int] = {}
    """Capacity → billionths."""

    @property
    def full_name(self) -> str:
        """As results and constraints name it."""
        return f"{self.parent}/{self.name}" if self.parent else self.name

    @property
    def request(self) -> str:
        return self.parent or self.name


class ConstraintAsk(msgspec.Struct, frozen=True):
    """Devices of these requests (all if there are none) must agree, or differ, in an attribute."""

    attribute: str
    requests: frozenset[str]
    must_differ: bool = False

    def concerns(self, ask: DeviceAsk) -> bool:
        return not self.requests or ask.request in self.requests or ask.full_name in self.requests


class ClaimAsk(msgspec.Struct, frozen=True):
    """All that a claim asks for."""

    requests: tuple[tuple[DeviceAsk, ...], ...]
    """Each with its alternatives, the preferred one first."""
    constraints: tuple[ConstraintAsk, ...] = ()
    config: tuple[JSON, ...] = ()


def read_claim(spec: Mapping[str, Any] | None) -> ClaimAsk:
    """UnreadableClaim when the spec cannot be understood."""
    devices = (spec or {}).get("devices") or {}
    try:
        requests = tuple(tuple(_alternatives(request)) for request in devices.get("requests") or ())
        constraints = tuple(_constraint(stated) for stated in devices.get("constraints") or ())
    except (TypeError, AttributeError, msgspec.ValidationError) as error:
        raise UnreadableClaim(str(error)) from error
    return ClaimAsk(requests, constraints, tuple(devices.get("config") or ()))


def _alternatives(request: JSON) -> Iterator[DeviceAsk]:
    name = str(request.get("name") or "")
    if request.get("firstAvailable"):
        for stated in request["firstAvailable"]:
            yield _ask(stated, str(stated.get("name") or ""), name)
    elif request.get("exactly"):
        yield _ask(request["exactly"], name, "")
    else:
        raise UnreadableClaim(f"request {name}: it has neither exactly nor firstAvailable")


def _ask(stated: JSON, name: str, parent: str) -> DeviceAsk:
    mode = stated.get("allocationMode") or EXACT
    if mode not in (ALL, EXACT):
        raise UnreadableClaim(f"request {name}: unsupported count mode {mode}")
    selectors = []
    for number, selector in enumerate(stated.get("selectors") or ()):
        expression = (selector.get("cel") or {}).get("expression")
        if not expression:
            raise UnreadableClaim(f"request {name}, selector #{number}: CEL expression empty")
        selectors.append(str(expression))
    asked = (stated.get("capacity") or {}).get("requests") or {}
    try:
        capacity = {key: parse_quantity(value).nanos for key, value in asked.items()}
    except QuantityError as error:
        raise UnreadableClaim(f"request {name}: {error}") from error
    return DeviceAsk(
        name,
        parent,
        str(stated.get("deviceClassName") or ""),
        tuple(selectors),
        takes_all=mode == ALL,
        count=int(stated.get("count") or 1),
        is_admin=bool(stated.get("adminAccess")) and not parent,
        tolerations=tuple(stated.get("tolerations") or ()),
        tolerated=tuple(msgspec.convert(each, Toleration) for each in stated.get("tolerations") or ()),
        capacity=capacity,
    )


def _constraint(stated: JSON) -> ConstraintAsk:
    requests = frozenset(stated.get("requests") or ())
    if stated.get("matchAttribute"):
        return ConstraintAsk(stated["matchAttribute"], requests)
    if stated.get("distinctAttribute"):
        return ConstraintAsk(stated["distinctAttribute"], requests, must_differ=True)
    raise UnreadableClaim("a constraint names neither matchAttribute nor distinctAttribute")
