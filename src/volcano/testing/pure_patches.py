"""The patches of the API, small and pure, for PureWorld. The real ones are the API server's."""

from __future__ import annotations

import copy
from typing import Any, Final

MERGE_KEYS: Final = {
    "conditions": "type",
    "ownerReferences": "uid",
    "containers": "name",
    "volumes": "name",
    "taints": "key",
    "tolerations": "key",
}


def merge_patched(target: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    answer = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            answer.pop(key, None)
        else:
            answer[key] = merge_patched(answer.get(key), value)
    return answer


def strategic_patched(target: Any, patch: Any, field: str = "") -> Any:
    """As a merge patch, with lists of known fields merged by their key."""
    if isinstance(patch, list) and isinstance(target, list) and (key := MERGE_KEYS.get(field)):
        merged = {item.get(key): item for item in target}
        for item in patch:
            merged[item.get(key)] = strategic_patched(merged.get(item.get(key)), item)
        return list(merged.values())
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    answer = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            answer.pop(name, None)
        else:
            answer[name] = strategic_patched(answer.get(name), value, name)
    return answer


def json_patched(target: Any, operations: list[dict[str, Any]]) -> Any:
    """RFC 6902: add, replace, remove and test. A path that is not there is a LookupError."""
    answer = copy.deepcopy(target)
    for operation in operations:
        *parents, last = [_unescaped(part) for part in operation["path"].split("/")[1:]]
        holder = answer
        for part in parents:
            holder = holder[int(part)] if isinstance(holder, list) else holder[part]
        _operate(holder, last, operation)
    return answer


def _operate(holder: Any, last: str, operation: dict[str, Any]) -> None:
    kind = operation["op"]
    at: Any = last if isinstance(holder, dict) else len(holder) if last == "-" else int(last)
    if kind == "test":
        if holder[at] != operation["value"]:
            raise LookupError(f"test failed at {operation['path']}")
    elif kind == "remove":
        del holder[at]
    elif kind == "add" and isinstance(holder, list):
        holder.insert(at, copy.deepcopy(operation["value"]))
    elif kind in ("add", "replace"):
        if kind == "replace":
            holder[at]
        holder[at] = copy.deepcopy(operation["value"])
    else:
        raise LookupError(f"unknown operation {kind}")


def _unescaped(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")
