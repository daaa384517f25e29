"""Label and field selectors: from the wire's text or objects to something that matches.

A `Selector` is a conjunction of requirements. Node selector terms (with Gt and Lt) use the same requirements.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from volcano.api.meta import LabelSelector, LabelSelectorRequirement

MAX_SELECTOR_CHARACTERS: Final = 16 * 1024


class SelectorError(ValueError):
    """The text is not a selector; the message says where."""


class Requirement(msgspec.Struct, frozen=True):
    """One condition on one label. Operators: In NotIn Exists DoesNotExist Gt Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                return value is not None and self._compares(value)
        return False

    def _compares(self, value: str) -> bool:
        try:
            have, limit = int(value), int(self.values[0])
        except (ValueError, IndexError):
            return False
        return have > limit if self.operator == "Gt" else have < limit

    def __str__(self) -> str:
        match self.operator:
            case "In" if len(self.values) == 1:
                return f"{self.key}={self.values[0]}"
            case "NotIn" if len(self.values) == 1:
                return f"{self.key}!={self.values[0]}"
            case "Exists":
                return self.key
            case "DoesNotExist":
                return f"!{self.key}"
            case "Gt" | "Lt":
                return f"{self.key}{'>' if self.operator == 'Gt' else '<'}{self.values[0]}"
        return f"{self.key} {self.operator.lower()} ({','.join(sorted(self.values))})"


class Selector(msgspec.Struct, frozen=True):
    """All requirements must hold; without any, everything matches. NOTHING matches nothing."""

    requirements: tuple[Requirement, ...] = ()
    never: bool = False

    def matches(self, labels: Mapping[str, str]) -> bool:
        return not self.never and all(r.matches(labels) for r in self.requirements)

    def __bool__(self) -> bool:
        return self.never or bool(self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


EVERYTHING: Final = Selector()
NOTHING: Final = Selector(never=True)


def selector_from(selector: LabelSelector | Mapping[str, Any] | None) -> Selector:
    """A LabelSelector object; none at all matches nothing, an empty one everything."""
    if selector is None:
        return NOTHING
    if not isinstance(selector, LabelSelector):
        selector = msgspec.convert(selector, LabelSelector)
    exact = (Requirement(k, "In", (v,)) for k, v in sorted(selector.match_labels.items()))
    return Selector((*exact, *requirements_from(selector.match_expressions)))


def requirements_from(expressions: Iterable[LabelSelectorRequirement]) -> tuple[Requirement, ...]:
    return tuple(Requirement(e.key, e.operator, tuple(e.values)) for e in expressions)


def labels_selector(labels: Mapping[str, str]) -> Selector:
    """Exactly these labels, as in a ReplicationController's or a Service's selector."""
    return Selector(tuple(Requirement(k, "In", (v,)) for k, v in sorted(labels.items())))


_TOKEN: Final = re.compile(r"\s*(?:(?P<word>[A-Za-z0-9_./-]+)|(?P<mark>==|!=|=|!|\(|\)|,|<|>))")


def parse_label_selector(text: str) -> Selector:
    """The query form: `app=web,tier in (a,b),!legacy,version>3`."""
    if len(text) > MAX_SELECTOR_CHARACTERS:
        raise SelectorError(f"a selector of {len(text)} characters is over the limit of {MAX_SELECTOR_CHARACTERS}")
    tokens = _Tokens(text)
    requirements = []
    while tokens.peek() is not None:
        requirements.append(_requirement(tokens))
        if tokens.peek() is not None:
            tokens.expect(",")
            if tokens.peek() is None:
                raise SelectorError(f"unable to parse requirement: found '', expected: identifier in {text!r}")
    return Selector(tuple(requirements))


class _Tokens:
    def __init__(self, text: str) -> None:
        self._items: list[str] = []
        position, text = 0, text.strip()
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                raise SelectorError(f"unable to parse requirement: found {text[position]!r} at {position} in {text!r}")
            self._items.append(match["word"] or match["mark"])
            position = match.end()
            while position < len(text) and text[position].isspace():
                position += 1
        self._at = 0
        self.text = text

    def peek(self) -> str | None:
        return self._items[self._at] if self._at < len(self._items) else None

    def next(self) -> str:
        token = self.peek()
        if token is None:
            raise SelectorError(f"unable to parse requirement: {self.text!r} ends too early")
        self._at += 1
        return token

    def expect(self, mark: str) -> None:
        token = self.next()
        if token != mark:
            raise SelectorError(f"unable to parse requirement: found {token!r}, expected: {mark!r} in {self.text!r}")

    def word(self) -> str:
        token = self.next()
        if not re.fullmatch(r"[A-Za-z0-9_./-]+", token):
            raise SelectorError(f"unable to parse requirement: found {token!r}, expected: identifier in {self.text!r}")
        return token


def _requirement(tokens: _Tokens) -> Requirement:
    if tokens.peek() == "!":
        tokens.next()
        return Requirement(tokens.word(), "DoesNotExist")
    key, operator = tokens.word(), tokens.peek()
    if operator in (None, ","):
        return Requirement(key, "Exists")
    tokens.next()
    match operator:
        case "=" | "==" | "!=":
            value = "" if tokens.peek() in (None, ",") else tokens.word()
            return Requirement(key, "NotIn" if operator == "!=" else "In", (value,))
        case "in" | "notin":
            return Requirement(key, "In" if operator == "in" else "NotIn", _values(tokens))
        case "<" | ">":
            value = tokens.word()
            if not re.fullmatch(r"-?[0-9]+", value):
                raise SelectorError(f"for 'Gt', 'Lt' operators, the value must be an integer, not {value!r}")
            return Requirement(key, "Gt" if operator == ">" else "Lt", (value,))
    raise SelectorError(f"unable to parse requirement: found {operator!r}, expected: in, notin, =, ==, !=, gt, lt")


def _values(tokens: _Tokens) -> tuple[str, ...]:
    tokens.expect("(")
    values: list[str] = []
    expects_value = True
    while (token := tokens.next()) != ")":
        if token == ",":
            if expects_value:
                values.append("")
            expects_value = True
        elif expects_value:
            values.append(token)
            expects_value = False
        else:
            raise SelectorError(f"unable to parse requirement: found {token!r}, expected: ',' or ')'")
    if expects_value:
        values.append("")
    return tuple(values)


class FieldRequirement(msgspec.Struct, frozen=True):
    path: str
    value: str
    equal: bool = True


def parse_field_selector(text: str) -> tuple[FieldRequirement, ...]:
    """`metadata.name=a,spec.nodeName!=b`; only equality exists, `\\,` and `\\=` are escaped."""
    if len(text) > MAX_SELECTOR_CHARACTERS:
        raise SelectorError(f"a selector of {len(text)} characters is over the limit of {MAX_SELECTOR_CHARACTERS}")
    return tuple(_field_requirement(term) for term in _split_unescaped(text) if term)


def _field_requirement(term: str) -> FieldRequirement:
    match = re.fullmatch(r"(?P<path>[^=!]+?)(?P<operator>!=|==|=)(?P<value>.*)", term, re.S)
    if match is None:
        raise SelectorError(f"invalid selector: '{term}'; can't understand '{term}'")
    value = re.sub(r"\\([\\,=])", r"\1", match["value"])
    return FieldRequirement(match["path"].strip(), value, match["operator"] != "!=")


def _split_unescaped(text: str) -> Sequence[str]:
    return [part.strip() for part in re.split(r"(?<!\\),", text)]
