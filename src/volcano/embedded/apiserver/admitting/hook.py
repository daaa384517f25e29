"""Where admission is plugged in: what it is told, and what it answers.

`admit` is called twice for each write: with phase `mutate` before schema validation (its object is the one that goes
on), and with phase `validate` after it (its object is ignored). It refuses by raising an ApiError, usually Forbidden
or Invalid.
"""

from __future__ import annotations

from typing import Final, Literal, Protocol

import msgspec

from volcano.api.meta import JSON
from volcano.api.scheme import ResourceType
from volcano.machinery.transport import User

CREATE: Final = "CREATE"
UPDATE: Final = "UPDATE"
DELETE: Final = "DELETE"
CONNECT: Final = "CONNECT"


class Attributes(msgspec.Struct, frozen=True):
    """One write on its way to the store. `object` may be changed in place or replaced by `mutate`."""

    operation: str
    resource: ResourceType
    name: str
    namespace: str
    object: JSON | None
    old: JSON | None
    user: User
    subresource: str = ""
    dry_run: bool = False
    phase: Literal["mutate", "validate"] = "mutate"
    options: JSON = {}


class Admission(Protocol):
    async def admit(self, attributes: Attributes) -> tuple[JSON | None, list[str]]:
        """The object to go on with (None for deletions), and warnings for the client."""
        ...


class AdmitEverything:
    """No admission at all."""

    async def admit(self, attributes: Attributes) -> tuple[JSON | None, list[str]]:
        return attributes.object, []
