"""How large the schemas of one definition may be: parts, patterns and rules, each of which costs time to compile.

Without these limits one definition within the size of a request keeps the server busy for a minute.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from volcano.api import field_errors as say
from volcano.api.errors import FieldError
from volcano.api.field_errors import Path
from volcano.api.meta import JSON
from volcano.api.patterns import MAX_PROGRAM_INSTRUCTIONS, PatternError, compile_pattern

MAX_SCHEMA_PARTS: Final = 50_000
"""Schemas within schemas, of all versions together; the largest definitions in use have about 20,000."""
MAX_DIFFERENT_PATTERNS: Final = 1_000
MAX_PATTERN_INSTRUCTIONS: Final = 1_000_000
"""Of all different patterns after compilation; compiling so many takes about a second."""
MAX_RULES: Final = 1_000
MAX_RULE_CHARACTERS: Final = 128 * 1024
"""Of all rules and their message expressions; compiling so many takes about a second."""
_CHILDREN_BY_NAME: Final = ("properties",)
_LISTS: Final = ("allOf", "anyOf", "oneOf")
_SINGLE: Final = ("items", "additionalProperties", "not")


class SchemaLimits:
    """Counts over all schemas of one definition."""

    def __init__(self) -> None:
        self._parts = self._instructions = self._rules = self._rule_characters = 0
        self._patterns: set[str] = set()

    def error(self, schema: JSON, path: Path) -> FieldError | None:
        """The first limit that this schema exceeds, counted together with the schemas before it."""
        waiting: list[tuple[Any, Path]] = [(schema, path)]
        while waiting:
            part, place = waiting.pop()
            if not isinstance(part, dict):
                continue
            self._parts += 1
            if self._parts > MAX_SCHEMA_PARTS:
                return say.too_many(place, self._parts, MAX_SCHEMA_PARTS)
            error = self._pattern_error(part, place) or self._rules_error(part, place)
            if error is not None:
                return error
            waiting += reversed(list(_children(part, place)))
        return None

    def _pattern_error(self, part: JSON, place: Path) -> FieldError | None:
        pattern = part.get("pattern")
        if not isinstance(pattern, str) or pattern in self._patterns:
            return None
        self._patterns.add(pattern)
        if len(self._patterns) > MAX_DIFFERENT_PATTERNS:
            detail = f"a definition must not have more than {MAX_DIFFERENT_PATTERNS} different patterns"
            return say.forbidden((place, "pattern"), detail)
        try:
            self._instructions += compile_pattern(pattern).instructions
        except PatternError:
            self._instructions += MAX_PROGRAM_INSTRUCTIONS  # reported with the schema's other errors
        if self._instructions > MAX_PATTERN_INSTRUCTIONS:
            detail = "the patterns of a definition must not be larger together; fewer repetitions make them smaller"
            return say.forbidden((place, "pattern"), detail)
        return None

    def _rules_error(self, part: JSON, place: Path) -> FieldError | None:
        rules = part.get("x-kubernetes-validations")
        for index, rule in enumerate(rules if isinstance(rules, list) else ()):
            self._rules += 1
            texts = [rule.get("rule"), rule.get("messageExpression")] if isinstance(rule, dict) else []
            self._rule_characters += sum(len(text) for text in texts if isinstance(text, str))
            where: Path = ((place, "x-kubernetes-validations"), index)
            if self._rules > MAX_RULES:
                return say.forbidden(where, f"a definition must not have more than {MAX_RULES} rules")
            if self._rule_characters > MAX_RULE_CHARACTERS:
                detail = f"the rules of a definition must not have more than {MAX_RULE_CHARACTERS} characters together"
                return say.forbidden(where, detail)
        return None


def _children(part: JSON, place: Path) -> Iterator[tuple[Any, Path]]:
    for name in _CHILDREN_BY_NAME:
        children = part.get(name)
        for key, child in children.items() if isinstance(children, dict) else ():
            yield child, (place, f"{name}[{key}]")
    for name in _LISTS:
        children = part.get(name)
        for index, child in enumerate(children if isinstance(children, list) else ()):
            yield child, ((place, name), index)
    for name in _SINGLE:
        yield part.get(name), (place, name)
