"""Sets of field paths as trees, in the shape managedFields stores them (FieldsV1).

A tree maps path elements ("f:spec", 'k:{"name":"a"}', 'v:"x"') to trees. The key "." in a tree means that the path
itself is in the set. Trees are values: the functions here never change what they are given.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import msgspec

from volcano.api.field_errors import shown

Tree: TypeAlias = dict[str, Any]
SELF: Final = "."
MEMBER: Final[Tree] = {SELF: {}}
MAX_DEPTH: Final = 128


class BadFields(ValueError):
    """The text is not a set of fields."""


def union(one: Tree, other: Tree) -> Tree:
    if not one or not other:
        return one or other
    answer = dict(one)
    for key, branch in other.items():
        mine = answer.get(key)
        answer[key] = branch if mine is None else union(mine, branch) if key != SELF else branch
    return answer


def difference(one: Tree, other: Tree) -> Tree:
    """Paths of the first that are not in the second."""
    if not one or not other:
        return one
    answer: Tree = {}
    for key, branch in one.items():
        theirs = other.get(key)
        if theirs is None:
            answer[key] = branch
        elif key != SELF and (rest := difference(branch, theirs)):
            answer[key] = rest
    return answer


def intersection(one: Tree, other: Tree) -> Tree:
    answer: Tree = {}
    for key, branch in one.items():
        theirs = other.get(key)
        if theirs is None:
            continue
        if key == SELF:
            answer[key] = branch
        elif both := intersection(branch, theirs):
            answer[key] = both
    return answer


def paths(tree: Tree, prefix: str = "") -> Iterator[str]:
    """All paths as messages write them, shallow ones first: `.spec.containers[name="a"].image`."""
    branches = sorted((key, branch) for key, branch in tree.items() if key != SELF)
    for key, branch in branches:
        if SELF in branch:
            yield prefix + element_text(key)
    for key, branch in branches:
        yield from paths(branch, prefix + element_text(key))


def element_text(element: str) -> str:
    kind, _, rest = element.partition(":")
    if kind == "f":
        return f".{rest}"
    value = msgspec.json.decode(rest)
    if kind == "k":
        return "[" + ",".join(f"{name}={_scalar(item)}" for name, item in sorted(value.items())) + "]"
    return f"[={_scalar(value)}]" if kind == "v" else f"[{value}]"


def _scalar(value: Any) -> str:
    return shown(value)


def key_element(keys: dict[str, Any]) -> str:
    return "k:" + msgspec.json.encode(keys, order="sorted").decode()


def value_element(value: Any) -> str:
    return "v:" + msgspec.json.encode(value, order="sorted").decode()


def to_fields(tree: Tree) -> Tree:
    """The tree as FieldsV1 writes it: a path with nothing below it is an empty object."""
    return {key: {} if branch == MEMBER or key == SELF else to_fields(branch) for key, branch in tree.items()}


def from_fields(fields: Any, depth: int = 0) -> Tree:
    """The tree that FieldsV1 describes; BadFields when it is not a set of fields."""
    if not isinstance(fields, dict) or depth > MAX_DEPTH:
        raise BadFields("fieldsV1 must be nested objects")
    tree: Tree = {}
    for key, branch in fields.items():
        if key == SELF:
            tree[SELF] = {}
        elif key[:2] in ("f:", "k:", "v:", "i:"):
            _check_element(key)
            tree[key] = from_fields(branch, depth + 1) or dict(MEMBER)
        else:
            raise BadFields(f"fieldsV1 has no path elements like {key!r}")
    return tree


def _check_element(element: str) -> None:
    if element[0] == "f":
        return
    try:
        value = msgspec.json.decode(element[2:])
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadFields(f"fieldsV1 has a broken path element: {element!r}") from error
    if element[0] == "k" and not isinstance(value, dict):
        raise BadFields(f"fieldsV1 has a broken path element: {element!r}")
