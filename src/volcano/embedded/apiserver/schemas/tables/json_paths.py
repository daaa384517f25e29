"""The JSONPath of printer columns: `.status.state`, `.items[0].name`, `['a.b']`, `.list[?(@.type=="Ready")].status`.

A path is compiled once; finding with it never fails: what does not exist is not found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final, TypeAlias

Step: TypeAlias = Callable[[Any], Iterator[Any]]
MAX_PATH_CHARACTERS: Final = 4096
MAX_FOUND_VALUES: Final = 1000
_FILTER: Final = re.compile(r"@((?:\.[\w-]+|\['[^']*'\])*)\s*(?:(==|!=|<=|>=|<|>)\s*(.+))?", re.ASCII)


class PathError(ValueError):
    """The text is not a supported path."""


@lru_cache(maxsize=2048)
def compile_path(text: str) -> tuple[Step, ...]:
    """The steps of a path; PathError when it is not supported."""
    if len(text) > MAX_PATH_CHARACTERS:
        raise PathError("the path is too long")
    text = text.strip().removeprefix("{").removesuffix("}").removeprefix("$")
    steps: list[Step] = []
    index = 0
    while index < len(text):
        if text[index] == "[":
            end = _closing(text, index)
            steps.append(_bracket(text[index + 1 : end].strip()))
            index = end + 1
        else:
            if text[index] == ".":
                index += 1
            start = index
            while index < len(text) and text[index] not in ".[":
                index += 2 if text[index] == "\\" else 1
            name = text[start:index].replace("\\.", ".")
            if name == "*":
                steps.append(_all)
            elif name:
                steps.append(_child(name))
    return tuple(steps)


def find(value: Any, steps: tuple[Step, ...]) -> list[Any]:
    """All values at a path."""
    found = [value]
    for step in steps:
        found = [item for parent in found for item in step(parent)][:MAX_FOUND_VALUES]
    return found


def _closing(text: str, start: int) -> int:
    quote, depth = "", 0
    for index in range(start, len(text)):
        char = text[index]
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char == "[":
            depth += 1
        elif char == "]":
            depth -= 1
            if not depth:
                return index
    raise PathError(f"{text!r} has an unclosed bracket")


def _bracket(inner: str) -> Step:
    if inner in ("*", ""):
        return _all
    if inner[0] in "'\"" and len(inner) > 1 and inner[-1] == inner[0]:
        return _child(inner[1:-1])
    if inner.startswith("?(") and inner.endswith(")"):
        return _filter(inner[2:-1].strip())
    if re.fullmatch(r"-?\d+", inner, re.ASCII):
        return _element(int(inner[:12]))
    if re.fullmatch(r"-?\d*:-?\d*", inner, re.ASCII):
        first, last = (int(part[:12]) if part else None for part in inner.split(":"))
        return lambda value: iter(value[first:last]) if isinstance(value, list) else iter(())
    raise PathError(f"[{inner}] is not understood")


def _all(value: Any) -> Iterator[Any]:
    return iter(value if isinstance(value, list) else value.values() if isinstance(value, dict) else ())


def _child(name: str) -> Step:
    return lambda value: iter((value[name],)) if isinstance(value, dict) and name in value else iter(())


def _element(index: int) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= index < len(value):
            yield value[index]

    return step


def _filter(condition: str) -> Step:
    match = _FILTER.fullmatch(condition)
    if match is None:
        raise PathError(f"the filter {condition!r} is not understood")
    path, operator = compile_path(match[1]), match[2]
    wanted = _literal(match[3].strip()) if operator else None

    def holds(item: Any) -> bool:
        found = find(item, path)
        if not operator:
            return bool(found)
        return bool(found) and _compares(found[0], operator, wanted)

    return lambda value: (item for item in _all(value) if holds(item))


def _literal(text: str) -> Any:
    if text[0] in "'\"" and len(text) > 1 and text[-1] == text[0]:
        return text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    try:
        return float(text) if "." in text else int(text[:20])
    except ValueError:
        raise PathError(f"{text!r} is no value") from None


def _compares(found: Any, operator: str, wanted: Any) -> bool:
    if operator == "==":
        return bool(type(found) is type(wanted) and found == wanted)
    if operator == "!=":
        return bool(found != wanted)
    if isinstance(found, bool) or isinstance(wanted, bool):
        return False
    if not (isinstance(found, int | float) and isinstance(wanted, int | float)) and type(found) is not type(wanted):
        return False
    if not isinstance(found, int | float | str):
        return False
    return bool(
        {"<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b}[
            operator
        ](found, wanted)
    )
