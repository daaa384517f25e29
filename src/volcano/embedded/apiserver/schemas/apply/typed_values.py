"""Values with their types: which fields a value has, how two differ, merging, and removing fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from volcano.api.meta import JSON
from volcano.embedded.apiserver.schemas.apply.field_sets import MEMBER, SELF, Tree, key_element, union, value_element
from volcano.embedded.apiserver.schemas.type_nodes import ANY, LIST, MAP, SCALAR, UNTYPED, TypeNode

ABSENT: Final = object()
MAX_DEPTH: Final = 128


class TypedError(ValueError):
    """A value that does not fit its type: an element without its key, an element twice, an unknown field."""


def shape_of(value: Any, node: TypeNode) -> str:
    """How a value is treated: as its type says, or, without a type, as the value itself suggests."""
    if node.shape != ANY and not (isinstance(value, dict) and node.shape != MAP):
        return node.shape
    return MAP if isinstance(value, dict) else LIST if isinstance(value, list) else SCALAR


def element_of(item: Any, node: TypeNode) -> str:
    """The path element of a list's item."""
    if node.list_type == "set":
        return value_element(item)
    if not isinstance(item, dict):
        raise TypedError("associative list with keys may not have non-map elements")
    keys: JSON = {}
    for key in node.keys:
        value = item.get(key)
        if value is None:
            value = node.defaults.get(key)
        if value is None:
            raise TypedError(
                f'associative list with keys has an element that omits key field "{key}" '
                "(and doesn't have default value)"
            )
        keys[key] = value
    return key_element(keys)


def _is_whole(value: Any, node: TypeNode, shape: str) -> bool:
    if shape == MAP:
        return node.atomic
    return shape != LIST or node.list_type == "atomic" or node.shape == ANY


# -- the set of a value's fields ------------------------------------------------------------------------------
def fields_of(value: Any, node: TypeNode, depth: int = 0) -> Tree:
    """The paths of all leaves and of all elements of lists and maps."""
    if depth > MAX_DEPTH:
        raise TypedError(f"nested deeper than {MAX_DEPTH} levels")
    shape = shape_of(value, node)
    if shape == SCALAR or _is_whole(value, node, shape):
        return dict(MEMBER)
    tree: Tree = {}
    if shape == MAP and isinstance(value, dict):
        for name, item in value.items():
            branch = fields_of(item, node.child(name), depth + 1) if item is not None else {}
            if item is None or item == {} or not node.has_field(name):
                branch = {**branch, SELF: {}}
            if branch:
                tree[f"f:{name}"] = branch
    elif shape == LIST and isinstance(value, list):
        inner = node.item
        for item in value:
            tree[element_of(item, node)] = {**fields_of(item, inner, depth + 1), SELF: {}}
    return tree


# -- differences ----------------------------------------------------------------------------------------------
class Comparison(msgspec.Struct, frozen=True):
    """Fields added, changed and removed."""

    added: Tree
    modified: Tree
    removed: Tree


SAME: Final = Comparison({}, {}, {})
_MODIFIED: Final = Comparison({}, MEMBER, {})


def compare(old: Any, new: Any, node: TypeNode, depth: int = 0) -> Comparison:
    """From the old value to the new one; either may be ABSENT."""
    if depth > MAX_DEPTH:
        raise TypedError(f"nested deeper than {MAX_DEPTH} levels")
    if old is ABSENT:
        return Comparison(every_path(new, node, depth), {}, {})
    if new is ABSENT:
        return Comparison({}, {}, every_path(old, node, depth))
    if old == new:
        return SAME
    if node.shape == SCALAR and not isinstance(old, dict) and not isinstance(new, dict):
        return _MODIFIED
    shape = shape_of(new if old is None else old, node)
    if old is not None and new is not None and shape_of(new, node) != shape:
        return _compare_unlike(old, new, node, depth)
    if shape == SCALAR or _is_whole(old if new is None else new, node, shape) or not (_content(old) or _content(new)):
        return _MODIFIED
    if shape == MAP:
        parts = _compare_maps(_as_map(old), _as_map(new), node, depth)
    else:
        parts = _compare_lists(_as_list(old), _as_list(new), node, depth)
    return Comparison(*parts)


def every_path(value: Any, node: TypeNode, depth: int = 0) -> Tree:
    """The paths of a value and of everything in it, which are added and removed together."""
    if depth > MAX_DEPTH:
        raise TypedError(f"nested deeper than {MAX_DEPTH} levels")
    if not value or type(value) is str or not isinstance(value, dict | list):
        return MEMBER
    if _is_whole(value, node, shape_of(value, node)):
        return MEMBER
    tree: Tree = {}
    if isinstance(value, dict):
        for name, item in value.items():
            tree[f"f:{name}"] = every_path(item, node.child(name), depth + 1)
    else:
        inner = node.item
        for key, items in _by_element(value, node).items():
            tree[key] = every_path(items[0], inner, depth + 1) if len(items) == 1 else MEMBER
    tree[SELF] = {}
    return tree


def _compare_unlike(old: Any, new: Any, node: TypeNode, depth: int) -> Comparison:
    """An object that became a plain value, or the other way round."""
    gone = compare(old, ABSENT, node, depth + 1) if isinstance(old, dict) else SAME
    come = compare(ABSENT, new, node, depth + 1) if isinstance(new, dict) else SAME
    removed = {key: branch for key, branch in gone.removed.items() if key != SELF}
    added = {key: branch for key, branch in come.added.items() if key != SELF}
    return Comparison(added, dict(MEMBER), removed)


def _content(value: Any) -> bool:
    return isinstance(value, dict | list) and bool(value)


def _as_map(value: Any) -> JSON:
    return value if isinstance(value, dict) else {}


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _compare_maps(old: JSON, new: JSON, node: TypeNode, depth: int) -> tuple[Tree, Tree, Tree]:
    parts: tuple[Tree, Tree, Tree] = ({}, {}, {})
    for name, before in old.items():
        after = new.get(name, ABSENT)
        if before is not after and before != after:
            _collect(parts, f"f:{name}", compare(before, after, node.child(name), depth + 1))
    added = parts[0]
    for name, after in new.items():
        if name not in old:
            added[f"f:{name}"] = every_path(after, node.child(name), depth + 1)
    return parts


def _collect(parts: tuple[Tree, Tree, Tree], key: str, found: Comparison) -> None:
    if found.added:
        parts[0][key] = found.added
    if found.modified:
        parts[1][key] = found.modified
    if found.removed:
        parts[2][key] = found.removed


def _compare_lists(old: list[Any], new: list[Any], node: TypeNode, depth: int) -> tuple[Tree, Tree, Tree]:
    parts: tuple[Tree, Tree, Tree] = ({}, {}, {})
    before, after, inner = _by_element(old, node), _by_element(new, node), node.item
    for key in (*before, *(key for key in after if key not in before)):
        olds, news = before.get(key, []), after.get(key, [])
        if len(olds) <= 1 and len(news) <= 1:
            here = compare(olds[0] if olds else ABSENT, news[0] if news else ABSENT, inner, depth + 1)
            _collect(parts, key, here)
        elif len(olds) > 1 and len(news) > 1:
            _collect(parts, key, _MODIFIED if olds != news else SAME)
        elif len(olds) > 1:  # what stood there twice is now there once, or gone
            added = compare(ABSENT, news[0], inner, depth + 1).added if news else {}
            _collect(parts, key, Comparison(added, {}, MEMBER))
        else:
            removed = compare(olds[0], ABSENT, inner, depth + 1).removed if olds else {}
            _collect(parts, key, Comparison(MEMBER, {}, removed))
    return parts


def _by_element(items: list[Any], node: TypeNode) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for item in items:
        found.setdefault(element_of(item, node), []).append(item)
    return found


# -- merging --------------------------------------------------------------------------------------------------
def merged(live: Any, applied: Any, node: TypeNode, depth: int = 0) -> Any:
    """The live value merged with the applied one."""
    if depth > MAX_DEPTH:
        raise TypedError(f"nested deeper than {MAX_DEPTH} levels")
    if live is ABSENT or live is None or applied is ABSENT or applied is None:
        return live if applied is ABSENT or applied is None else applied
    shape = shape_of(applied, node)
    if shape != shape_of(live, node) or shape == SCALAR or _is_whole(applied, node, shape):
        return applied
    if shape == MAP and isinstance(live, dict) and isinstance(applied, dict):
        answer = dict(live)
        for name, item in applied.items():
            answer[name] = merged(live.get(name, ABSENT), item, node.child(name), depth + 1)
        return answer
    if shape == LIST and isinstance(live, list) and isinstance(applied, list):
        return _merged_lists(live, applied, node, depth)
    return applied


def _merged_lists(live: list[Any], applied: list[Any], node: TypeNode, depth: int) -> list[Any]:
    """Elements of both. Applied ones come in their order; the others stay behind the one they followed."""
    left = [(element_of(item, node), item) for item in live]
    right = [(element_of(item, node), item) for item in applied]
    mine, theirs = dict(reversed(left)), dict(right)
    if len(theirs) < len(right):
        found = Counter(key for key, _ in right)
        twice = next(key for key, count in found.items() if count > 1)
        raise TypedError(f"duplicate entries for key {twice}")
    shared = iter([key for key, _ in right if key in mine])
    following = next(shared, None)
    answer: list[Any] = []
    done: set[str] = set()
    at, to = 0, 0
    while at < len(left) or to < len(right):
        if at < len(left):
            key, item = left[at]
            if to < len(right) and key != right[to][0] and key in theirs and following is not None and key != following:
                at += 1  # it comes later, where the applied order has it
                continue
            if key not in theirs:
                answer.append(item)
                at += 1
                continue
            if key in done:
                at += 1
        if to < len(right):
            key, item = right[to]
            if at < len(left) and left[at][0] == key:
                at += 1
            answer.append(merged(mine.get(key, ABSENT), item, node.item, depth + 1))
            done.add(key)
            to += 1
            if following == key:
                following = next(shared, None)
    return answer


# -- taking fields away ---------------------------------------------------------------------------------------
def without(value: Any, gone: Tree, node: TypeNode) -> Any:
    """The value without the fields of a set. A container that becomes empty stays, since another manager owns it."""
    if isinstance(value, dict) and not node.atomic:
        answer = {}
        for name, item in value.items():
            branch = gone.get(f"f:{name}")
            if branch is not None and SELF in branch:
                continue
            answer[name] = without(item, branch, node.child(name)) if branch else item
        return answer
    if isinstance(value, list) and node.shape == LIST and node.list_type != "atomic":
        items = []
        for item in value:
            branch = gone.get(element_of(item, node))
            if branch is not None and SELF in branch:
                continue
            items.append(without(item, branch, node.item) if branch else item)
        return items
    return value


def with_named_fields(tree: Tree, node: TypeNode) -> Tree:
    """The set and, above its paths, all fields that types name: who owns a.b.c of named fields owns a.b as well."""
    answer: Tree = {}
    for key, branch in tree.items():
        if key == SELF:
            answer[key] = branch
        elif key.startswith("f:"):
            name = key[2:]
            inner = with_named_fields(branch, node.child(name))
            answer[key] = {**inner, SELF: {}} if node.has_field(name) else inner
        else:
            answer[key] = with_named_fields(branch, node.item if node.shape == LIST else UNTYPED)
    return answer


# -- is an applied object of its type? ------------------------------------------------------------------------
def misfits(value: Any, node: TypeNode, path: str = "", depth: int = 0) -> Iterator[str]:
    """Why an object cannot be applied, as the API server words it."""
    if depth > MAX_DEPTH:
        yield f"{path}: nested deeper than {MAX_DEPTH} levels"
        return
    if value is None or node.shape == ANY:
        return
    if node.shape == MAP:
        if not isinstance(value, dict):
            yield f"{path}: expected map, got {_found(value)}"
            return
        for name, item in value.items():
            if not node.knows(name):
                yield f"{path}.{name}: field not declared in schema"
            else:
                yield from misfits(item, node.child(name), f"{path}.{name}", depth + 1)
    elif node.shape == LIST:
        yield from _misfits_in_list(value, node, path, depth)
    elif isinstance(value, dict | list):
        yield f"{path}: expected scalar, got {_found(value)}"


def _misfits_in_list(value: Any, node: TypeNode, path: str, depth: int) -> Iterator[str]:
    if not isinstance(value, list):
        yield f"{path}: expected list, got {_found(value)}"
        return
    seen: set[str] = set()
    for index, item in enumerate(value):
        place = f"{path}[{index}]"
        if node.list_type != "atomic":
            try:
                element = element_of(item, node)
            except TypedError as error:
                yield f"{path}: element {index}: {error}"
                continue
            if element in seen:
                yield f"{path}: duplicate entries for key {element[2:]}"
            seen.add(element)
        yield from misfits(item, node.item, place, depth + 1)


def _found(value: Any) -> str:
    return "map" if isinstance(value, dict) else "list" if isinstance(value, list) else "scalar"


def all_of(trees: list[Tree]) -> Tree:
    answer: Tree = {}
    for tree in trees:
        answer = union(answer, tree)
    return answer
