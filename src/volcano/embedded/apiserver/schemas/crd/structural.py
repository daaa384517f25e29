"""Structural schemas: compile a CRD's openAPIV3Schema once, then default, prune and validate objects by it."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from volcano.api.errors import FieldError
from volcano.api.meta import JSON
from volcano.embedded.apiserver.schemas.type_nodes import TypeNode, custom_node

if TYPE_CHECKING:
    from volcano.embedded.apiserver.schemas.crd.checks import Checked
    from volcano.embedded.apiserver.schemas.crd.junctions import Errors
    from volcano.embedded.apiserver.schemas.crd.pruning import Filler, Pruner
    from volcano.embedded.apiserver.schemas.crd.rules import ValidationRules

BLOCKING: Final = frozenset(("FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid"))
"""After one of these, rules are not evaluated: they may assume what the schema demands."""
MAX_ERRORS: Final = 256
MAX_CACHED_SCHEMAS: Final = 32


class StructuralSchema:
    """What one version of a custom kind may look like. Made by `compile_schema`, shared freely.

    It is compiled with the first object that it is asked about: a server has many definitions, and uses few of them
    soon after its start.
    """

    def __init__(self, openapi: JSON) -> None:
        self.openapi = openapi

    @cached_property
    def node(self) -> TypeNode:
        return custom_node(self.openapi)

    @cached_property
    def _root(self) -> JSON:
        return {**self.openapi, "type": self.openapi.get("type") or "object"}

    @cached_property
    def _properties(self) -> JSON:
        """All but those that every object has."""
        from volcano.embedded.apiserver.schemas.crd.pruning import META_FIELDS

        properties = self._root.get("properties") or {}
        return {name: child for name, child in properties.items() if name not in META_FIELDS}

    @cached_property
    def _check(self) -> Checked:
        from volcano.embedded.apiserver.schemas.crd.checks import compile_check

        return compile_check(self._root)

    @cached_property
    def _pruner(self) -> Pruner | None:
        from volcano.embedded.apiserver.schemas.crd.pruning import META_FIELDS, compile_pruner

        names = {name: {"x-kubernetes-preserve-unknown-fields": True} for name in META_FIELDS}
        return compile_pruner({**self._root, "properties": {**names, **self._properties}})

    @cached_property
    def _filler(self) -> Filler | None:
        from volcano.embedded.apiserver.schemas.crd.pruning import compile_filler

        return compile_filler({**self._root, "properties": self._properties})

    @cached_property
    def _rules(self) -> ValidationRules | None:
        if b'"x-kubernetes-validations"' not in msgspec.json.encode(self.openapi):
            return None  # most have none, and importing what evaluates them takes long
        from volcano.embedded.apiserver.schemas.crd.rules import compile_rules

        return compile_rules(self._root)

    def default(self, obj: Any) -> None:
        """Fill in defaults, in place."""
        if self._filler is not None:
            self._filler(obj)

    def prune(self, obj: Any) -> list[str]:
        """Drop unknown fields and meaningless nulls, in place; returns the paths of the fields."""
        removed: list[str] = []
        if self._pruner is not None:
            self._pruner(obj, None, removed)
        return sorted(removed)

    def validate(self, obj: Any, *, path: str = "", old: Any = None) -> list[FieldError]:
        """All that is wrong with an object. Errors about values that the old object already had are dropped."""
        errors: Errors = []
        self._check.full(obj, path or None, errors)
        if errors and old is not None:
            from volcano.embedded.apiserver.schemas.crd.ratcheting import without_unchanged

            errors = without_unchanged(errors, obj, old, self.openapi)
        answer = [error for _, error in errors[:MAX_ERRORS]]
        if self._rules is not None and not any(error.reason in BLOCKING for error in answer):
            answer += self._rules.evaluate(obj, old, path or None)
        return answer


def compile_schema(openapi: JSON) -> StructuralSchema:
    """Compile a CRD's schema. Equal ones are compiled once: most writes of a definition leave its schema as it was."""
    return _compile_encoded(msgspec.json.encode(openapi))


@lru_cache(maxsize=MAX_CACHED_SCHEMAS)
def _compile_encoded(encoded: bytes) -> StructuralSchema:
    return StructuralSchema(msgspec.json.decode(encoded))
