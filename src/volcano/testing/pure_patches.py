"""A strategic merge by a few known keys, for PureWorld. The real one, by schema, is the API server's."""

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
