"""Validation rules in CEL (x-kubernetes-validations), found in a schema and evaluated on objects.

Every rule is evaluated. A rule that does not compile is refused with its definition (crd.schema_validation); if such a
definition is stored all the same, every value that the rule is about is refused with the compiler's message.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import msgspec

from volcano.api import field_errors as say
from volcano.api.cel import evaluator as cel
from volcano.api.cel.cost import ValueSizes
from volcano.api.errors import FieldError
from volcano.api.field_errors import Path, path_text
from volcano.api.meta import JSON
from volcano.embedded.apiserver.schemas.crd.checks import MAX_DEPTH, TooDeep

MAX_EVALUATIONS: Final = 20_000
"""Rule evaluations for one object; Kubernetes bounds their cost likewise."""
MAX_COST: Final = 50_000_000
"""Parts and characters that all rules of one object may look at (api.cel.cost): a second or a few."""


class Run(msgspec.Struct):
    """One evaluation of an object: what was found, and how much may still be evaluated."""

    errors: list[FieldError]
    budget: int = MAX_EVALUATIONS
    cost_left: int = MAX_COST
    is_exhausted: bool = False


Walker: TypeAlias = Callable[[Any, Any, Path, Run], None]


class ValidationRule(msgspec.Struct, frozen=True):
    """One compiled rule and what is reported when it does not hold."""

    source: str
    message: str
    reason: str
    field_path: str
    kind: str
    schema: JSON
    program: cel.Program
    message_program: cel.Program | None
    optional_old: bool


class ValidationRules(msgspec.Struct, frozen=True):
    """All rules of a schema."""

    walk: Walker

    def evaluate(self, obj: Any, old: Any, path: Path) -> list[FieldError]:
        run = Run([])
        self.walk(obj, old, path, run)
        return run.errors


def compile_rules(schema: JSON) -> ValidationRules | None:
    """None when the schema has no rules at all."""
    walk = _compile(schema, 0)
    return ValidationRules(walk) if walk is not None else None


def _compile(schema: JSON, depth: int) -> Walker | None:
    if depth > MAX_DEPTH:
        raise TooDeep(f"schema is nested deeper than {MAX_DEPTH} levels")
    rules = [_compile_rule(source, schema) for source in schema.get("x-kubernetes-validations") or ()]
    children = {
        name: walker
        for name, child in (schema.get("properties") or {}).items()
        if (walker := _compile(child, depth + 1)) is not None
    }
    more, items = schema.get("additionalProperties"), schema.get("items")
    other = _compile(more, depth + 1) if isinstance(more, dict) else None
    inner = _compile(items, depth + 1) if isinstance(items, dict) else None
    if not (rules or children or other or inner):
        return None
    keys = schema.get("x-kubernetes-list-map-keys") if schema.get("x-kubernetes-list-type") == "map" else None

    def walk(value: Any, old: Any, path: Path, run: Run) -> None:
        if value is None:
            return
        if rules and not run.is_exhausted:
            sizes = ValueSizes()
            sizes.add(value)
            if old is not None:
                sizes.add(old)
            for rule in rules:
                _evaluate(rule, value, old, path, run, sizes)
        if isinstance(value, dict):
            before = old if isinstance(old, dict) else {}
            for name, item in value.items():
                child = children.get(name, other)
                if child is not None:
                    child(item, before.get(name), (path, name), run)
        elif isinstance(value, list) and inner is not None:
            counterparts = _by_key(old, keys)
            for index, item in enumerate(value):
                inner(item, counterparts.get(_key(item, keys)), (path, index), run)

    return walk


def _key(item: Any, keys: list[str] | None) -> Any:
    return (
        tuple(msgspec.json.encode(item.get(name), order="sorted") for name in keys)
        if keys and isinstance(item, dict)
        else None
    )


def _by_key(old: Any, keys: list[str] | None) -> dict[Any, Any]:
    if not keys or not isinstance(old, list):
        return {}
    return {_key(item, keys): item for item in old if isinstance(item, dict)}


def _compile_rule(source: JSON, schema: JSON) -> ValidationRule:
    text, message_text = str(source.get("rule", "")), source.get("messageExpression")
    return ValidationRule(
        source=text,
        message=str(source.get("message") or "").strip(),
        reason=str(source.get("reason") or "FieldValueInvalid"),
        field_path=str(source.get("fieldPath") or "").lstrip("."),
        kind=str(schema.get("type") or ""),
        schema=schema,
        program=cel.compile_program(text, schema),
        message_program=cel.compile_program(str(message_text), schema) if message_text else None,
        optional_old=source.get("optionalOldSelf") is True,
    )


def _evaluate(rule: ValidationRule, value: Any, old: Any, path: Path, run: Run, sizes: ValueSizes) -> None:
    if rule.program.uses_old_self and old is None and not rule.optional_old:
        return
    if run.is_exhausted:
        return
    run.budget -= 1
    run.cost_left -= rule.program.shape.cost(sizes)
    if run.budget < 0 or run.cost_left < 0:
        run.is_exhausted = True
        detail = "validation failed due to running out of cost budget, no further validation rules will be run"
        run.errors.append(say.invalid(path, rule.kind, detail))
        return
    if rule.program.error:
        run.errors.append(say.invalid(path, rule.kind, f"rule compile error: {rule.program.error}"))
        return
    outcome = cel.evaluate(rule.program, value, old, rule.schema, optional_old=rule.optional_old)
    if outcome is True:
        return
    if isinstance(outcome, str):
        run.errors.append(say.invalid(path, rule.kind, f"{outcome} evaluating rule: {rule.message or rule.source}"))
        return
    message = ""
    if rule.message_program is not None and not rule.message_program.error:
        message = cel.evaluate_text(rule.message_program, value, old, rule.schema) or ""
    run.errors.append(_refusal(rule, value, path, message or rule.message or f"failed rule: {rule.source}"))


def _refusal(rule: ValidationRule, value: Any, path: Path, detail: str) -> FieldError:
    where: Path = (path, rule.field_path) if rule.field_path else path
    if rule.reason == "FieldValueRequired":
        return say.required(where, detail)
    if rule.reason == "FieldValueForbidden":
        return say.forbidden(where, detail)
    if rule.reason == "FieldValueDuplicate":
        return say.duplicate(where, value)
    if rule.kind in ("object", "array"):  # a whole object is not printed
        return FieldError(path_text(where), f"Invalid value: {detail}")
    return say.invalid(where, value, detail)
