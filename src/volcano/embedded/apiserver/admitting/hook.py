"""AdmissionHook: where the composition root plugs in rules of its own (Volcano's).

Both methods refuse by raising an ApiError, usually Forbidden or Invalid.
"""

from __future__ import annotations

from typing import Protocol

from volcano.api.meta import JSON
from volcano.machinery.admission import Attributes


class AdmissionHook(Protocol):
    @property
    def compared(self) -> frozenset[str]:
        """Kinds whose objects the rules compare with others of the same kind: they are written one at a time."""
        ...

    async def mutate(self, attributes: Attributes) -> tuple[JSON | None, list[str]]:
        """Before the schema is checked: the object to go on with (None for deletions), and warnings for the client."""
        ...

    async def validate(self, attributes: Attributes) -> list[str]:
        """After the schema was checked: warnings for the client."""
        ...
