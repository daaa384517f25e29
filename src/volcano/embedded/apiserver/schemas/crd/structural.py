"""Structural schemas: compile a CRD's openAPIV3Schema once, then default, prune and validate objects by it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import msgspec

from volcano.api.errors import FieldError
from volcano.api.meta import JSON
from volcano.embedded.apiserver.schemas.crd.checks import Checked, compile_check
from volcano.embedded.apiserver.schemas.crd.definition_validation import validate_crd as validate_crd
from volcano.embedded.apiserver.schemas.crd.definition_validation import validate_crd_update as validate_crd_update
from volcano.embedded.apiserver.schemas.crd.junctions import Errors
from volcano.embedded.apiserver.schemas.crd.pruning import META_FIELDS, Filler, Pruner, compile_filler, compile_pruner
from volcano.embedded.apiserver.schemas.crd.ratcheting import without_unchanged
from volcano.embedded.apiserver.schemas.crd.rules import ValidationRules, compile_rules
from volcano.embedded.apiserver.schemas.type_nodes import custom_node

BLOCKING: Final = frozenset(("FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid"))
"""After one of these, rules are not evaluated: they may assume what the schema demands."""
MAX_ERRORS: Final = 256
MAX_CACHED_SCHEMAS: Final = 32


class StructuralSchema:
    """What one version of a custom kind may look like. Made by `compile_schema`, shared freely."""

    __slots__ = ("_check", "_filler", "_pruner", "_rules", "node", "openapi")

    def __init__(
        self,
        openapi: JSON,
        *,
        check: Checked,
        pruner: Pruner | None,
        filler: Filler | None,
        rules: ValidationRules | None,
    ) -> None:
        self.openapi = openapi
        self.node = custom_node(openapi)
        self._check, self._pruner, self._filler, self._rules = check, pruner, filler, rules

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
    openapi: JSON = msgspec.json.decode(encoded)
    root = {**openapi, "type": openapi.get("type") or "object"}
    properties = {name: child for name, child in (root.get("properties") or {}).items() if name not in META_FIELDS}
    names = {name: {"x-kubernetes-preserve-unknown-fields": True} for name in META_FIELDS}
    return StructuralSchema(
        openapi,
        check=compile_check(root),
        pruner=compile_pruner({**root, "properties": {**names, **properties}}),
        filler=compile_filler({**root, "properties": properties}),
        rules=compile_rules(root),
    )
