"""Regular expressions that cannot be made to run for ever: an automaton walked once over the text, as RE2 does.

Python's engine backtracks, and the author of a schema or a client can make it do so for hours. `risk_of` says how a
pattern's time may grow with the text; where that is too much, `Automaton` answers instead: slower, but in time that
only grows with the length of the text times the size of the pattern.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from importlib import import_module
from math import inf
from typing import Any, Final, TypeAlias

Test: TypeAlias = Callable[[str], bool]

MAX_STATES: Final = 4000
_UNBOUNDED: Final = 64
"""A repeat that may go on longer than this counts as without end."""
_parser: Final[Any] = import_module("re._parser")  # the engine's own parser, so that both read a pattern alike
_REPEATS: Final = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_CATEGORIES: Final[dict[str, Test]] = {
    "CATEGORY_DIGIT": lambda char: "0" <= char <= "9",
    "CATEGORY_SPACE": lambda char: char in " \t\n\r\f\v",
    "CATEGORY_WORD": lambda char: char == "_" or (char.isascii() and char.isalnum()),
}


class TooComplex(ValueError):
    """The pattern needs what an automaton of bounded size cannot have."""


def risk_of(pattern: str) -> float:
    """The power with which a search's time may grow in Python's engine; infinite where repeats nest badly."""
    try:
        return _risk(_parser.parse(pattern, re.ASCII))
    except (re.error, RecursionError, OverflowError):
        return inf


def _risk(items: Iterable[Any]) -> float:
    power: float = 1
    for kind, argument in items:
        name = str(kind)
        if name in _REPEATS:
            _, most, body = argument
            inner = _risk(body)
            if most > _UNBOUNDED:
                safe = _is_of_one_length(body) or (_starts_apart(list(body)) and _has_one_way(body))
                power += inner if safe else inf
            else:
                power += (inner - 1) * most + (0 if _is_of_one_length(body) else most - 1)
        elif name == "SUBPATTERN":
            power += _risk(argument[3]) - 1
        elif name == "ATOMIC_GROUP":
            power += _risk(argument) - 1
        elif name == "BRANCH":
            power += max(_risk(branch) for branch in argument[1]) - 1
        elif name not in ("LITERAL", "NOT_LITERAL", "ANY", "IN", "AT"):
            return inf
    return power


def _is_of_one_length(items: Iterable[Any]) -> bool:
    """Whether there is only one way to take a round of a repeat."""
    for kind, argument in items:
        name = str(kind)
        if name in _REPEATS:
            if argument[0] != argument[1] or not _is_of_one_length(argument[2]):
                return False
        elif name == "SUBPATTERN":
            if not _is_of_one_length(argument[3]):
                return False
        elif name not in ("LITERAL", "NOT_LITERAL", "ANY", "IN"):
            return False
    return True


def _has_one_way(items: Iterable[Any]) -> bool:
    """Whether a given text can be a round in one way only: at most one part of it varies in length."""
    varying = 0
    for kind, argument in items:
        name = str(kind)
        if name == "SUBPATTERN" and not _is_of_one_length(argument[3]):
            if not _has_one_way(argument[3]):
                return False
            varying += 1
        elif name in _REPEATS and not _is_of_one_length([(kind, argument)]):
            least, most, body = argument
            optional = (least, most) == (0, 1) and body.getwidth()[0] > 0 and _has_one_way(body)
            if not optional and not (_is_of_one_length(body) and body.getwidth()[0] > 0):
                return False
            varying += 1
        elif name == "BRANCH" or name not in ("LITERAL", "NOT_LITERAL", "ANY", "IN", "SUBPATTERN", *_REPEATS):
            return False
    return varying <= 1


def _starts_apart(body: list[Any]) -> bool:
    """Whether each round of a repeat begins with a character that nothing else in it can take."""
    while len(body) == 1 and str(body[0][0]) == "SUBPATTERN":
        body = list(body[0][1][3])
    if not body or str(body[0][0]) != "LITERAL":
        return False
    first = chr(body[0][1])
    return not any(_takes(item, first) for item in body[1:])


def _takes(item: Any, char: str) -> bool:
    kind, argument = item
    name = str(kind)
    if name in _REPEATS:
        return any(_takes(part, char) for part in argument[2])
    if name == "SUBPATTERN":
        return any(_takes(part, char) for part in argument[3])
    if name == "BRANCH":
        return any(_takes(part, char) for branch in argument[1] for part in branch)
    if name == "AT":
        return False
    return name not in ("LITERAL", "NOT_LITERAL", "ANY", "IN") or _test(name, argument)(char)


def _test(name: str, argument: Any) -> Test:
    """What one character must be."""
    if name == "LITERAL":
        return lambda char: ord(char) == argument
    if name == "NOT_LITERAL":
        return lambda char: ord(char) != argument
    if name == "ANY":
        return lambda char: char != "\n"
    return _class_test(argument)


def _class_test(parts: list[Any]) -> Test:
    negated = bool(parts) and str(parts[0][0]) == "NEGATE"
    tests = [_class_part(str(kind), argument) for kind, argument in parts[negated:]]
    return lambda char: any(test(char) for test in tests) is not negated


def _class_part(name: str, argument: Any) -> Test:
    if name == "LITERAL":
        return lambda char: ord(char) == argument
    if name == "RANGE":
        low, high = argument
        return lambda char: low <= ord(char) <= high
    category = str(argument)
    test = _CATEGORIES.get(category.replace("NOT_", ""))
    if name != "CATEGORY" or test is None:
        raise TooComplex(f"{name} {category}")
    return test if "NOT_" not in category else lambda char: not test(char)


class Automaton:
    """States with tests, and ways between them that need no character."""

    def __init__(self, pattern: str) -> None:
        try:
            parsed = _parser.parse(pattern, re.ASCII)
        except (re.error, RecursionError, OverflowError) as error:
            raise TooComplex(str(error)) from error
        if parsed.state.flags & (re.IGNORECASE | re.MULTILINE | re.DOTALL):
            raise TooComplex("flags")
        self._tests: list[Test | None] = []
        self._next: list[int] = []
        self._ways: list[list[tuple[int, str]]] = []
        self._end = self._state()
        self._start = self._chain(list(parsed), self._end)

    @property
    def size(self) -> int:
        return len(self._ways)

    def search(self, text: str) -> bool:
        """Whether the pattern matches anywhere in the text."""
        current: set[int] = set()
        for index in range(len(text) + 1):
            self._follow(self._start, index, text, current)
            if self._end in current:
                return True
            if index == len(text):
                return False
            following: set[int] = set()
            for state in current:
                test = self._tests[state]
                if test is not None and test(text[index]):
                    self._follow(self._next[state], index + 1, text, following)
            current = following
            if self._end in current:
                return True
        return False

    def _follow(self, state: int, index: int, text: str, into: set[int]) -> None:
        waiting = [state]
        while waiting:
            found = waiting.pop()
            if found not in into:
                into.add(found)
                waiting += [other for other, where in self._ways[found] if not where or _is_at(where, index, text)]

    def _state(self, test: Test | None = None, following: int = -1) -> int:
        if len(self._ways) >= MAX_STATES:
            raise TooComplex("too many states")
        self._tests.append(test)
        self._next.append(following)
        self._ways.append([])
        return len(self._ways) - 1

    def _chain(self, items: list[Any], following: int) -> int:
        for kind, argument in reversed(items):
            following = self._one(str(kind), argument, following)
        return following

    def _one(self, name: str, argument: Any, following: int) -> int:
        if name in ("LITERAL", "NOT_LITERAL", "ANY", "IN"):
            return self._state(_test(name, argument), following)
        if name == "SUBPATTERN" and not argument[1] and not argument[2]:
            return self._chain(list(argument[3]), following)
        if name == "BRANCH":
            fork = self._state()
            self._ways[fork] = [(self._chain(list(branch), following), "") for branch in argument[1]]
            return fork
        if name == "AT":
            state = self._state()
            self._ways[state] = [(following, str(argument))]
            return state
        if name in _REPEATS[:2]:
            return self._repeat(argument, following)
        raise TooComplex(name)

    def _repeat(self, argument: Any, following: int) -> int:
        least, most, body = argument
        items = list(body)
        if most >= MAX_STATES:
            loop = self._state()
            self._ways[loop] = [(following, ""), (self._chain(items, loop), "")]
            following = loop
        else:
            for _ in range(most - least):
                fork = self._state()
                self._ways[fork] = [(following, ""), (self._chain(items, following), "")]
                following = fork
        for _ in range(least):
            following = self._chain(items, following)
        return following


def _is_at(where: str, index: int, text: str) -> bool:
    if where in ("AT_BEGINNING", "AT_BEGINNING_STRING"):
        return index == 0
    if where in ("AT_END", "AT_END_STRING"):
        return index == len(text)
    word = _CATEGORIES["CATEGORY_WORD"]
    before, after = index > 0 and word(text[index - 1]), index < len(text) and word(text[index])
    return (before != after) is (where == "AT_BOUNDARY")
