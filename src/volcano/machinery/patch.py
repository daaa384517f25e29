"""JSON patch (RFC 6902) and merge patch (RFC 7386) as pure functions of plain JSON values.

Neither changes what it is given. Nesting is bounded, and so is what `copy` operations may add, since each can double
a document. Strategic merge and server-side apply need schemas and live in apiserver.schemas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from volcano.api.copies import copied

MAX_DEPTH: Final = 256
MAX_COPIED: Final = 3 * 1024 * 1024
"""Roughly the bytes that all `copy` operations of one patch may add."""
MAX_INDEX_DIGITS: Final = 9
"""A list in a document of bounded size has fewer elements; Python refuses to read very long numbers."""


class PatchError(ValueError):
    """The patch cannot be applied to this object; the message says which operation and why."""


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7386: objects merge, null removes, anything else replaces."""
    return _merged(target, patch, 0)


def _merged(target: Any, patch: Any, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise PatchError(f"the patch is nested deeper than {MAX_DEPTH} levels")
    if not isinstance(patch, dict):
        return _copied(patch)
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key), value, depth + 1)
    return merged


def merge_diff(old: Any, new: Any) -> Any:
    """The smallest merge patch that makes `old` into `new`, as far as one can: merge patches cannot store nulls."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return _copied(new)
    patch: dict[str, Any] = dict.fromkeys(key for key in old if key not in new)
    for key, value in new.items():
        if key not in old:
            patch[key] = _copied(value)
        elif not _same(old[key], value):
            patch[key] = merge_diff(old[key], value)
    return patch


def _copied(value: Any) -> Any:
    try:
        return copied(value)
    except RecursionError:
        raise PatchError(f"the value is nested deeper than {MAX_DEPTH} levels") from None


def _weight(value: Any) -> int:
    """About the bytes of a value, counted without recursion."""
    total, open_values = 0, [value]
    while open_values:
        found = open_values.pop()
        total += 8 + (len(found) if isinstance(found, str) else 0)
        if isinstance(found, dict):
            open_values.extend(found.values())
            total += sum(map(len, found))
        elif isinstance(found, list):
            open_values.extend(found)
        if total > MAX_COPIED:
            break
    return total


def json_patch(target: Any, operations: Sequence[Mapping[str, Any]]) -> Any:
    """RFC 6902 as kube-apiserver applies it: all operations in order, or PatchError.

    It differs from the RFC where a member is missing: `replace` adds it, and `test` takes it for null.
    """
    document = [_copied(target)]  # boxed, so that "" addresses something replaceable
    added = 0
    for operation in operations:
        if not isinstance(operation, dict):
            raise PatchError(f"an operation must be an object, not {operation!r}")
        if operation.get("op") == "copy":
            added += _weight(_find(document, _pointer(operation, "from")))
            if added > MAX_COPIED:
                raise PatchError(f"the copy operations of a patch may add {MAX_COPIED} bytes, and these add more")
        kind = operation.get("op")
        apply = _OPERATIONS.get(kind) if isinstance(kind, str) else None
        if apply is None:
            raise PatchError(f"unexpected kind of operation: {kind!r}")
        apply(document, operation)
    return document[0]


def _pointer(operation: Mapping[str, Any], field: str = "path") -> list[str]:
    text = operation.get(field)
    if not isinstance(text, str):
        raise PatchError(f"operation {operation.get('op')!r} has no {field}")
    if text and not text.startswith("/"):
        raise PatchError(f"{field} {text!r} does not start with '/'")
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]] if text else []


def _value(operation: Mapping[str, Any]) -> Any:
    if "value" not in operation:
        raise PatchError(f"operation {operation.get('op')!r} on {operation.get('path')!r} has no value")
    return _copied(operation["value"])


def _index(part: str, length: int, *, appends: bool = False) -> int:
    if appends and part == "-":
        return length
    digits = part.removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or (part.startswith("0") and part != "0"):
        raise PatchError(f"{part!r} is not an index")
    if len(digits) > MAX_INDEX_DIGITS:
        raise PatchError(f"index {part[:20]} is out of range")
    index = int(part) + (length if part.startswith("-") else 0)
    if not 0 <= index < length + appends:
        raise PatchError(f"index {part} is out of range")
    return index


def _parent(document: list[Any], path: list[str]) -> Any:
    place: Any = document[0]
    for part in path[:-1]:
        place = _step(place, part, path)
    return place


def _step(place: Any, part: str, path: list[str]) -> Any:
    if isinstance(place, dict) and part in place:
        return place[part]
    if isinstance(place, list):
        return place[_index(part, len(place))]
    raise PatchError(f"path /{'/'.join(path)} does not exist")


def _find(document: list[Any], path: list[str]) -> Any:
    return _step(_parent(document, path), path[-1], path) if path else document[0]


def _put(document: list[Any], path: list[str], value: Any) -> None:
    if not path:
        document[0] = value
        return
    parent = _parent(document, path)
    if isinstance(parent, dict):
        parent[path[-1]] = value
    elif isinstance(parent, list):
        parent.insert(_index(path[-1], len(parent), appends=True), value)
    else:
        raise PatchError(f"path /{'/'.join(path)} does not exist")


def _take(document: list[Any], path: list[str]) -> Any:
    if not path:
        raise PatchError("the whole object cannot be removed")
    parent, last = _parent(document, path), path[-1]
    found = _step(parent, last, path)
    if isinstance(parent, dict):
        del parent[last]
    else:
        del parent[_index(last, len(parent))]
    return found


def _add(document: list[Any], operation: Mapping[str, Any]) -> None:
    _put(document, _pointer(operation), _value(operation))


def _remove(document: list[Any], operation: Mapping[str, Any]) -> None:
    _take(document, _pointer(operation))


def _replace(document: list[Any], operation: Mapping[str, Any]) -> None:
    path, value = _pointer(operation), _value(operation)
    if not path:
        document[0] = value
        return
    parent = _parent(document, path)
    if isinstance(parent, dict):
        parent[path[-1]] = value
    else:
        _step(parent, path[-1], path)
        parent[_index(path[-1], len(parent))] = value


def _move(document: list[Any], operation: Mapping[str, Any]) -> None:
    source, path = _pointer(operation, "from"), _pointer(operation)
    if path[: len(source)] == source and path != source:
        raise PatchError("a value cannot be moved into itself")
    _put(document, path, _take(document, source))


def _copy(document: list[Any], operation: Mapping[str, Any]) -> None:
    _put(document, _pointer(operation), _copied(_find(document, _pointer(operation, "from"))))


def _test(document: list[Any], operation: Mapping[str, Any]) -> None:
    path = _pointer(operation)
    parent = _parent(document, path)
    is_missing = bool(path) and isinstance(parent, dict) and path[-1] not in parent
    if not _same(None if is_missing else _find(document, path), operation.get("value")):
        raise PatchError(f"testing value /{'/'.join(path)} failed")


def _same(left: Any, right: Any) -> bool:
    """Equal as JSON: true is not 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return bool(left == right)


_OPERATIONS: Final[Mapping[str, Callable[[list[Any], Mapping[str, Any]], None]]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}
