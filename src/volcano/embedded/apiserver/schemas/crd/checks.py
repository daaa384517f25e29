"""A structural schema compiled to a checking walker whose messages are those of kube-apiserver.

Each node becomes a closure over its own keywords, so that walking an object costs per value, not per keyword.
Pruning and defaults are in crd.pruning, rules in CEL in crd.rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any, Final

import msgspec

from volcano.api import field_errors as say
from volcano.api.errors import FieldError
from volcano.api.field_errors import Path, path_text
from volcano.api.formats import format_check
from volcano.api.go_text import go_number, quoted
from volcano.api.meta import JSON
from volcano.api.patterns import PatternError, compile_pattern
from volcano.embedded.apiserver.schemas.crd.junctions import Check, Errors, all_of, any_of, none_of, one_of

MAX_DEPTH: Final = 128

PYTHON_TYPES: Final[Mapping[str, type]] = {
    "string": str, "integer": int, "number": float, "boolean": bool, "array": list, "object": dict,
}  # fmt: skip
TYPE_NAMES: Final[Mapping[type, str]] = {kind: name for name, kind in PYTHON_TYPES.items()} | {type(None): "null"}
MIN_INT64, MAX_INT64 = -(2**63), 2**63 - 1
MAX_INTEGER: Final = 2**1000  # larger ones cannot be converted to a float
RANGES: Final[Mapping[Any, tuple[float, float]]] = {"int32": (-(2**31), 2**31 - 1), "int64": (MIN_INT64, MAX_INT64)}


class TooDeep(ValueError):
    """A schema is nested deeper than this server supports."""


def is_int_or_string(schema: JSON) -> bool:
    return schema.get("x-kubernetes-int-or-string") is True


# -- checking -------------------------------------------------------------------------------------------------
class Checked(msgspec.Struct, frozen=True):
    """A compiled schema: the type whose values go straight to `inner`, and the check of any other value."""

    plain: type | None
    inner: Check | None
    full: Check


def compile_check(schema: JSON, depth: int = 0) -> Checked:
    if depth > MAX_DEPTH:
        raise TooDeep(f"schema is nested deeper than {MAX_DEPTH} levels")
    types = types_of(schema)
    contents = {
        str: _string_check(schema),
        int: _number_check(schema),
        float: _number_check(schema),
        list: _array_check(schema, depth),
        dict: _object_check(schema, depth),
    }
    shared = _checks_of_any_type(schema, depth)
    plain = PYTHON_TYPES.get(types[0]) if len(types) == 1 else None
    inner = _sequence([contents.get(plain), *shared]) if plain is not None else None
    return Checked(plain, inner, _full_check(schema, types, contents=contents, shared=shared))


def types_of(schema: JSON) -> tuple[str, ...]:
    """The types a value may have; none named means any."""
    if is_int_or_string(schema):
        return ("integer", "string")
    return (str(schema["type"]),) if schema.get("type") else ()


def _full_check(
    schema: JSON, types: tuple[str, ...], *, contents: Mapping[type, Check | None], shared: list[Check]
) -> Check:
    """The check of any value. An enum, a format and the like are checked even when the type is wrong."""
    nullable = schema.get("nullable") is True
    either = bool(schema.get("anyOf")) and is_int_or_string(schema)

    def check(value: Any, path: Path, errors: Errors) -> None:
        if value is None:
            if types and not nullable:
                errors.append((path, _wrong_type(path, schema, "null")))
            if schema.get("enum"):
                errors.append((path, say.not_supported(path, None, schema["enum"])))
            return
        if types and not _fits(value, types):
            found = TYPE_NAMES[type(value)]
            errors.append((path, _wrong_type(path, schema, found)))
            if either:
                errors.append((path, say.pathless(f'"{path_text(path)}" must validate at least one schema (anyOf)')))
                errors.append((path, _wrong_type(path, {"type": "integer"}, found)))
                if found == "number":
                    text = f"Checked value must be of type integer (default format) in {path_text(path)}"
                    errors.append((path, say.pathless(text)))
        content = contents.get(type(value))
        if content is not None:
            content(value, path, errors)
        for other in shared:
            other(value, path, errors)

    return check


def _fits(value: Any, types: tuple[str, ...]) -> bool:
    found = TYPE_NAMES[type(value)]
    if found in types:
        return found != "integer" or MIN_INT64 <= value <= MAX_INT64
    if found == "integer":
        return "number" in types
    return found == "number" and "integer" in types and float(value).is_integer() and abs(value) < 2**53


def _wrong_type(path: Path, schema: JSON, found: str) -> FieldError:
    wanted = ",".join(types_of(schema))
    if _knows_format(schema) and found not in ("string", "array", "null"):  # then both sides are named by format
        wanted, found = schema["format"], {"number": "float64", "integer": "int64"}.get(found, "")
    return say.type_invalid(path, found, f'{path_text(path)} in body must be of type {wanted}: "{found}"')


def _knows_format(schema: JSON) -> bool:
    name, kind = schema.get("format"), schema.get("type")
    if kind == "string":
        return isinstance(name, str) and format_check(name) is not None
    return name in (("int32", "int64") if kind == "integer" else ("float", "double") if kind == "number" else ())


def _sequence(checks: Sequence[Check | None]) -> Check | None:
    present = [check for check in checks if check is not None]
    if len(present) <= 1:
        return present[0] if present else None

    def run(value: Any, path: Path, errors: Errors) -> None:
        for check in present:
            check(value, path, errors)

    return run


def _string_check(schema: JSON) -> Check | None:
    longest, shortest = schema.get("maxLength"), schema.get("minLength")
    source = schema.get("pattern") or ""
    matches = _matcher(source) if source else None
    name = schema.get("format", "")
    fits = format_check(name) if name and schema.get("type") == "string" else None
    if longest is None and shortest is None and matches is None and fits is None:
        return None

    def check(value: str, path: Path, errors: Errors) -> None:
        if longest is not None and len(value) > longest:
            errors.append((path, say.too_long(path, longest)))
        elif shortest is not None and len(value) < shortest:
            detail = f"{path_text(path)} in body should be at least {shortest} chars long"
            errors.append((path, say.invalid(path, value, detail)))
        elif matches is not None and not matches(value):
            detail = f"{path_text(path)} in body should match '{source}'"
            errors.append((path, say.invalid(path, value, detail)))
        if fits is not None and not fits(value):
            detail = f"{path_text(path)} in body must be of type {name}: {quoted(value)}"
            errors.append((path, say.type_invalid(path, value, detail)))

    return check


def _matcher(source: str) -> Callable[[str], bool]:
    """Whether a text matches. Nothing matches an invalid pattern, which only a definition stored long ago can have."""
    try:
        return compile_pattern(source).matches
    except PatternError:
        return lambda _text: False


def _number_check(schema: JSON) -> Check | None:
    low, high, step = schema.get("minimum"), schema.get("maximum"), schema.get("multipleOf")
    below, above = schema.get("exclusiveMinimum") is True, schema.get("exclusiveMaximum") is True
    size = schema.get("format") if schema.get("format") in RANGES else "int64"
    least, most = RANGES[size] if schema.get("type") == "integer" else (-inf, inf)
    floor = low if low is not None and low > least else least
    ceiling = high if high is not None and high < most else most
    if floor == -inf and ceiling == inf and step is None:
        return None

    def check(value: float, path: Path, errors: Errors) -> None:
        fits = floor < value < ceiling or (floor == value and not below) or (ceiling == value and not above)
        if fits and (step is None or _is_multiple(value, step)) and (least == -inf or type(value) is int):
            return
        if type(value) is int and not MIN_INT64 <= value <= MAX_INT64:  # such a number is no integer to Kubernetes
            value = float(value) if abs(value) < MAX_INTEGER else inf
            errors.append((path, _wrong_type(path, schema, "number")))
        if least != -inf and not (float(value).is_integer() and least <= value <= most):
            spelled = f"with format {size}" if schema.get("format") in RANGES else "(default format)"
            text = f"Checked value must be of type integer {spelled} in {path_text(path)}"
            errors.append((path, say.pathless(text)))
        _check_limits(value, path, errors)

    def _check_limits(value: float, path: Path, errors: Errors) -> None:
        if step is not None and step <= 0:
            detail = f"factor MultipleOf declared for {path_text(path)} must be positive: {go_number(float(step))}"
            errors.append((path, say.invalid(path, step, detail)))
        for limit, excluded, ok, words in (
            (step, True, step is None or step <= 0 or _is_multiple(value, step), "be a multiple of"),
            (low, below, low is None or value > low or (value == low and not below), "be greater than"),
            (high, above, high is None or value < high or (value == high and not above), "be less than"),
        ):
            if not ok and limit is not None:
                words += "" if excluded else " or equal to"
                detail = f"{path_text(path)} in body should {words} {go_number(float(limit))}"
                errors.append((path, say.invalid(path, value, detail)))

    return check


def _is_multiple(value: float, step: float) -> bool:
    return step > 0 and value % step == 0


def _array_check(schema: JSON, depth: int) -> Check | None:
    items = compile_check(schema["items"], depth + 1) if isinstance(schema.get("items"), dict) else None
    fewest, limit = schema.get("minItems"), schema.get("maxItems")
    unique = _unique_check(schema)
    distinct = schema.get("uniqueItems") is True
    if items is None and fewest is None and limit is None and unique is None and not distinct:
        return None
    plain, inner, full = (items.plain, items.inner, items.full) if items else (None, None, None)

    def check(value: list[Any], path: Path, errors: Errors) -> None:
        if full is not None:
            for index, item in enumerate(value):
                if type(item) is not plain:
                    full(item, (path, index), errors)
                elif inner is not None:
                    inner(item, (path, index), errors)
        if fewest is not None and len(value) < fewest:
            detail = f"{path_text(path)} in body should have at least {fewest} items"
            errors.append((path, say.invalid(path, len(value), detail)))
        if limit is not None and len(value) > limit:
            errors.append((path, say.too_many(path, len(value), limit)))
        if unique is not None:
            unique(value, path, errors)
        if distinct and len({msgspec.json.encode(item, order="sorted") for item in value}) < len(value):
            detail = f"{path_text(path)} in body shouldn't contain duplicates"
            errors.append((path, say.invalid(path, "", detail)))

    return check


def _unique_check(schema: JSON) -> Check | None:
    """Sets and maps: no element, or no key, twice. Each repeated one is named once."""
    kind = schema.get("x-kubernetes-list-type")
    keys: Sequence[str] = schema.get("x-kubernetes-list-map-keys") or ()
    if kind not in ("set", "map"):
        return None

    def check(value: list[Any], path: Path, errors: Errors) -> None:
        if kind == "map":
            for index, item in enumerate(value):
                if item is not None and not isinstance(item, dict):
                    detail = "must be an object for an array of list-type map"
                    errors.append(((path, index), say.invalid((path, index), item, detail)))
                    return
        if len(value) < 2:
            return
        seen: dict[Any, int] = {}
        for index, item in enumerate(value):
            shown = {key: item[key] for key in keys if key in item} if kind == "map" and item is not None else item
            mark = (
                msgspec.json.encode(shown, order="sorted") if isinstance(shown, dict | list) else (type(shown), shown)
            )
            seen[mark] = seen.get(mark, 0) + 1
            if seen[mark] == 2:
                errors.append(((path, index), say.duplicate((path, index), shown)))

    return check


def _object_check(schema: JSON, depth: int) -> Check | None:
    properties = {name: compile_check(child, depth + 1) for name, child in (schema.get("properties") or {}).items()}
    table = {name: (child.plain, child.inner, child.full) for name, child in properties.items()}
    more = schema.get("additionalProperties")
    others = compile_check(more, depth + 1).full if isinstance(more, dict) else None
    closed = more is False
    demanded: Sequence[str] = schema.get("required") or ()
    fewest, limit = schema.get("minProperties"), schema.get("maxProperties")
    embedded = schema.get("x-kubernetes-embedded-resource") is True
    if not (table or others or closed or demanded or embedded or fewest is not None or limit is not None):
        return None

    def check(value: JSON, path: Path, errors: Errors) -> None:
        for name, item in value.items():
            known = table.get(name)
            if known is not None:
                if type(item) is not known[0]:
                    known[2](item, (path, name), errors)
                elif known[1] is not None:
                    known[1](item, (path, name), errors)
            elif others is not None:
                others(item, (path, name), errors)
            elif closed:
                detail = f"{path_text((path, name))} in body is a forbidden property"
                errors.append((path, say.invalid(path, name, detail)))
        for name in demanded:
            if name not in value:
                errors.append(((path, name), say.required((path, name))))
        if fewest is not None and len(value) < fewest:
            detail = f"{path_text(path)} in body should have at least {fewest} properties"
            errors.append((path, say.invalid(path, len(value), detail)))
        if limit is not None and len(value) > limit:
            errors.append((path, say.too_many(path, len(value), limit)))
        if embedded:
            _check_embedded(value, path, errors)

    return check


def _check_embedded(value: JSON, path: Path, errors: Errors) -> None:
    for name in ("apiVersion", "kind"):
        here = (path, name)
        if name not in value:
            errors.append((here, say.required(here)))
        elif not isinstance(value[name], str):
            errors.append((here, say.invalid(here, value[name], "must be a string")))
        elif not value[name]:
            errors.append((here, say.invalid(here, "", "must not be empty")))


# -- checks of any type ---------------------------------------------------------------------------------------
def _checks_of_any_type(schema: JSON, depth: int) -> list[Check]:
    checks: list[Check] = []
    if schema.get("enum"):
        checks.append(_enum_check(schema["enum"]))
    if schema.get("allOf"):
        checks.append(all_of([compile_check(part, depth + 1).full for part in schema["allOf"]]))
    if schema.get("anyOf") and not is_int_or_string(schema):
        checks.append(any_of([compile_check(part, depth + 1).full for part in schema["anyOf"]]))
    if schema.get("oneOf"):
        checks.append(one_of([compile_check(part, depth + 1).full for part in schema["oneOf"]]))
    if schema.get("not") is not None:
        checks.append(none_of(compile_check(schema["not"], depth + 1).full))
    return checks


def _enum_check(allowed: list[Any]) -> Check:
    scalars = {item for item in allowed if isinstance(item, str)}

    def check(value: Any, path: Path, errors: Errors) -> None:
        if type(value) is str and value in scalars:
            return
        if not any(type(value) is type(item) and value == item for item in allowed):
            errors.append((path, say.not_supported(path, value, allowed)))

    return check
