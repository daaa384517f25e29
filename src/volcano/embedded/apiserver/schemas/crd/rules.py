"""Validation rules in CEL (x-kubernetes-validations), found in a schema and evaluated on objects.

The evaluator is the optional package cel_expr_python. Without it a schema with rules carries a warning, and only the
rules of HyperNode, which are also written in Python, are checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from volcano.api import field_errors as say
from volcano.api.errors import FieldError
from volcano.api.field_errors import Path, path_text
from volcano.api.meta import JSON
from volcano.api.topology import SELECTOR_RULES
from volcano.embedded.apiserver.schemas.cel import evaluator as cel
from volcano.embedded.apiserver.schemas.crd.checks import MAX_DEPTH, TooDeep

MAX_EVALUATIONS: Final = 20_000
"""Rule evaluations for one object; Kubernetes bounds their cost likewise."""

_CHOICES: Final = ("exactMatch", "regexMatch", "labelMatch")
NATIVE: Final[Mapping[str, Callable[[Any], bool]]] = {
    SELECTOR_RULES[0]["rule"]: lambda selector: any(name in selector for name in _CHOICES),
    SELECTOR_RULES[1]["rule"]: lambda selector: sum(name in selector for name in _CHOICES) <= 1,
}
"""Rules that need no evaluator."""


class Run(msgspec.Struct):
    """One evaluation of an object: what was found, and how much may still be evaluated."""

    errors: list[FieldError]
    budget: int = MAX_EVALUATIONS


Walker: TypeAlias = Callable[[Any, Any, Path, Run], None]


class Rule(msgspec.Struct, frozen=True):
    """One rule, ready to be asked; `native` or `program` is set."""

    source: str
    message: str
    reason: str
    field_path: str
    kind: str
    schema: JSON
    native: Callable[[Any], bool] | None
    program: cel.Program | None
    message_program: cel.Program | None
    optional_old: bool

    @property
    def is_transition(self) -> bool:
        return self.program is not None and self.program.uses_old_self


class Rules(msgspec.Struct, frozen=True):
    """All rules of a schema."""

    walk: Walker | None
    warnings: tuple[str, ...]

    def evaluate(self, obj: Any, old: Any, path: Path) -> list[FieldError]:
        run = Run([])
        if self.walk is not None:
            self.walk(obj, old, path, run)
        return run.errors


def compile_rules(schema: JSON) -> Rules | None:
    """None when the schema has no rules at all."""
    warnings: list[str] = []
    walk = _compile(schema, None, warnings, 0)
    return Rules(walk, tuple(dict.fromkeys(warnings))) if walk is not None or warnings else None


def _compile(schema: JSON, place: Path, warnings: list[str], depth: int) -> Walker | None:
    if depth > MAX_DEPTH:
        raise TooDeep(f"schema is nested deeper than {MAX_DEPTH} levels")
    rules = [
        rule
        for source in schema.get("x-kubernetes-validations") or ()
        if (rule := _compile_rule(source, schema, place, warnings)) is not None
    ]
    children = {
        name: walker
        for name, child in (schema.get("properties") or {}).items()
        if (walker := _compile(child, (place, name), warnings, depth + 1)) is not None
    }
    more, items = schema.get("additionalProperties"), schema.get("items")
    other = _compile(more, (place, "*"), warnings, depth + 1) if isinstance(more, dict) else None
    inner = _compile(items, (place, "*"), warnings, depth + 1) if isinstance(items, dict) else None
    if not (rules or children or other or inner):
        return None
    keys = schema.get("x-kubernetes-list-map-keys") if schema.get("x-kubernetes-list-type") == "map" else None

    def walk(value: Any, old: Any, path: Path, run: Run) -> None:
        if value is None:
            return
        for rule in rules:
            _ask(rule, value, old, path, run)
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


def _compile_rule(source: JSON, schema: JSON, place: Path, warnings: list[str]) -> Rule | None:
    text = str(source.get("rule", ""))
    native = NATIVE.get(text)
    program = message_program = None
    if native is None:
        if not cel.AVAILABLE:
            warnings.append(
                f"{path_text(place) or 'the schema'} has validation rules (CEL), which are not checked: "
                "install the extra volcano[cel]"
            )
            return None
        program = cel.compile_program(text, schema)
        if source.get("messageExpression"):
            message_program = cel.compile_program(str(source["messageExpression"]), schema)
        if program.error:
            warnings.append(f"{path_text(place) or 'the schema'}: rule {text!r} is not checked: {program.error}")
            return None
    return Rule(
        source=text,
        message=str(source.get("message") or "").strip(),
        reason=str(source.get("reason") or "FieldValueInvalid"),
        field_path=str(source.get("fieldPath") or "").lstrip("."),
        kind=str(schema.get("type") or ""),
        schema=schema,
        native=native,
        program=program,
        message_program=message_program,
        optional_old=source.get("optionalOldSelf") is True,
    )


def _ask(rule: Rule, value: Any, old: Any, path: Path, run: Run) -> None:
    if rule.is_transition and old is None and not rule.optional_old:
        return
    run.budget -= 1
    if run.budget < 0:
        if run.budget == -1:
            detail = "validation failed due to running out of cost budget, no further validation rules will be run"
            run.errors.append(say.invalid(path, rule.kind, detail))
        return
    if rule.native is not None:
        if not isinstance(value, dict) or rule.native(value):
            return
        run.errors.append(_refusal(rule, value, path, rule.message))
        return
    assert rule.program is not None
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


def _refusal(rule: Rule, value: Any, path: Path, detail: str) -> FieldError:
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
