"""The CEL evaluator (the package cel_expr_python) behind three functions.

Values are bound as Kubernetes binds them: times are timestamps, field names that are not identifiers are escaped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec
from cel_expr_python import cel as _engine
from cel_expr_python.ext import ext_bindings, ext_encoders, ext_math, ext_optional, ext_strings

from volcano.api.cel.cost import RuleShape, shape_of
from volcano.api.cel.functions import FUNCTIONS
from volcano.api.cel.growth import TextGrowth, text_growth
from volcano.api.formats import is_date
from volcano.api.meta import JSON

MAX_EXPRESSION_CHARACTERS: Final = 16 * 1024
_RESERVED: Final = frozenset(
    (
        "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import",
        "let", "loop", "package", "namespace", "return", "var", "void", "while",
    )
)  # fmt: skip
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_REFERENCE: Final = re.compile(r"\b(?:self|oldSelf)(?P<path>(?:\.[A-Za-z_]\w*)*)\b(?![.\[?])", re.ASCII)
_TIMES: Final = {"date-time": "timestamp", "date": "timestamp", "duration": "duration"}
_STATUS: Final = re.compile(r"^(UNKNOWN|OUT_OF_RANGE|INVALID_ARGUMENT|NOT_FOUND|INTERNAL|FAILED_PRECONDITION): ")
_OLD_SELF: Final = re.compile(r"\boldSelf\b")
_ESCAPES: Final = (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__"))


class Program(msgspec.Struct, frozen=True):
    """A compiled expression, or the compiler's error."""

    source: str
    expression: Any
    uses_old_self: bool
    error: str = ""
    growth: TextGrowth = TextGrowth()
    shape: RuleShape = RuleShape()


@lru_cache(maxsize=4)
def environment(*names: str) -> Any:
    """The environment that compiles expressions over these variables, with the functions that Kubernetes has."""
    extensions = [
        ext_optional.ExtOptional(),
        ext_strings.ExtStrings(),
        ext_math.ExtMath(),
        ext_encoders.ExtEncoders(),
        ext_bindings.ExtBindings(),
        _engine.CelExtension("kubernetes", _declarations()),
    ]
    return _engine.NewEnv(variables=dict.fromkeys(names, _engine.Type.DYN), extensions=extensions)


def _declarations() -> list[Any]:
    overloads: dict[str, list[Any]] = {}
    for function in FUNCTIONS:
        kinds = [getattr(_engine.Type, name) for name in function.parameters]
        label = "_".join((function.name.replace(".", "_"), *function.parameters)).lower()
        result = getattr(_engine.Type, function.result)
        overload = _engine.Overload(f"k8s_{label}", result, kinds, function.is_member, function.does)
        overloads.setdefault(function.name, []).append(overload)
    return [_engine.FunctionDecl(name, found) for name, found in overloads.items()]


def compile_program(source: str, schema: Mapping[str, Any] | None = None) -> Program:
    """Compile a rule about values of a schema."""
    return _compiled(_with_times(source, schema or {}) if len(source) <= MAX_EXPRESSION_CHARACTERS else source)


def _with_times(source: str, schema: Mapping[str, Any]) -> str:
    """The rule with conversions around its times: the engine accepts only texts for them."""

    def marked(found: re.Match[str]) -> str:
        place: Any = schema
        for name in found["path"].split(".")[1:]:
            properties = place.get("properties") if isinstance(place, dict) else None
            place = properties.get(name) if isinstance(properties, dict) else None
        maker = _TIMES.get(str(place.get("format"))) if isinstance(place, dict) else None
        is_called = source[found.end() :].lstrip().startswith("(")
        is_asked_for = source[: found.start()].rstrip().endswith("has(")
        return found[0] if maker is None or is_called or is_asked_for else f"{maker}({found[0]})"

    return _REFERENCE.sub(marked, source)


@lru_cache(maxsize=2048)
def _compiled(source: str) -> Program:
    if len(source) > MAX_EXPRESSION_CHARACTERS:
        return Program("", None, False, "the expression is too long")
    try:
        expression = environment("self", "oldSelf").compile(source)
    except Exception as error:  # the engine raises its own kinds, none of them public
        return Program(source, None, False, " ".join(str(error).split())[:500])
    uses_old_self = _OLD_SELF.search(source) is not None
    return Program(source, expression, uses_old_self, growth=text_growth(source), shape=shape_of(source))


def evaluate(program: Program, value: Any, old: Any, schema: JSON, *, optional_old: bool = False) -> bool | str:
    """True, False, or the error's text."""
    found = _run(program, value, old, schema, optional_old)
    if isinstance(found, _Failure):
        return found.text
    return found is True


def evaluate_text(program: Program, value: Any, old: Any, schema: JSON) -> str | None:
    """The message that an expression computes; None when it fails or its result is not a message."""
    found = _run(program, value, old, schema, False)
    if not isinstance(found, str):
        return None
    text = found.strip()
    return text if text and "\n" not in text else None


class _Failure(msgspec.Struct, frozen=True):
    text: str


def _run(program: Program, value: Any, old: Any, schema: JSON, optional_old: bool) -> Any:
    if program.growth != TextGrowth() and not program.growth.allows(len(msgspec.json.encode((value, old)))):
        return _Failure("no further evaluation: the rule could make texts of more than the cost budget allows")
    names: dict[str, Any] = {"self": bound(value, schema)}
    if program.uses_old_self and not optional_old:
        names["oldSelf"] = bound(old, schema)
    try:
        result = program.expression.eval(data=names)
        if is_error(result):
            return _Failure(_error_text(str(result.value())))
        return result.plain_value()
    except Exception as error:  # the engine raises its own kinds, none of them public
        return _Failure(_error_text(str(error)))


def is_error(result: Any) -> bool:
    """Whether an evaluation failed."""
    return bool(result.type() == _engine.Type.ERROR)


def _error_text(text: str) -> str:
    """The error without the engine's status code."""
    return _STATUS.sub("", " ".join(text.split()))[:500]


def bound(value: Any, schema: Mapping[str, Any]) -> Any:
    """A value as rules see it: numbers as doubles, days as times, field names as identifiers."""
    if isinstance(value, dict):
        properties = schema.get("properties") or {}
        more = schema.get("additionalProperties")
        other = more if isinstance(more, dict) else {}
        return {
            (escaped(name) if name in properties else name): bound(item, properties.get(name) or other)
            for name, item in value.items()
        }
    if isinstance(value, list):
        items = schema.get("items")
        inner = items if isinstance(items, dict) else {}
        return [bound(item, inner) for item in value]
    if isinstance(value, str) and schema.get("format") == "date" and is_date(value):
        return f"{value}T00:00:00Z"
    if schema.get("type") == "number" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


def escaped(name: str) -> str:
    """A field's name where a rule can write it: `namespace` is `__namespace__`, `a.b` is `a__dot__b`."""
    if name in _RESERVED:
        return f"__{name}__"
    if _IDENTIFIER.fullmatch(name) and "__" not in name:
        return name
    for part, escape in _ESCAPES:
        name = name.replace(part, escape)
    return name
