"""managedFields of new objects: objects that have the same fields get the same entries, which are computed once.

Values do not matter for them, except in lists, whose elements are named by their content. What differs between objects
of one sort is the time, and the uids of their owners: these are replaced by placeholders and put back afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

import msgspec

from volcano.api.meta import JSON
from volcano.api.times import timestamp
from volcano.embedded.apiserver.schemas.apply.merge import Schema, track_update
from volcano.embedded.apiserver.schemas.crd.structural import StructuralSchema

MAX_SORTS: Final = 1024
_PLACEHOLDER: Final = "placeholder.of.an.owner.%d"
_TIME: Final = datetime.fromisoformat("2026-01-01T00:00:00+00:00")
_ENTRIES: dict[object, bytes] = {}


def track_new(obj: JSON, *, manager: str, schema: Schema, now: datetime) -> JSON:
    """The new object with managedFields that name its manager: what `track_update` gives without an old object."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or isinstance(schema, dict):
        return track_update(None, obj, manager=manager, schema=schema, now=now)
    bare = {field: value for field, value in metadata.items() if field != "managedFields"}
    owners, uids = without_uids(bare.get("ownerReferences"))
    alike = {**obj, "metadata": {**bare, "ownerReferences": owners} if uids else bare}
    sort = (manager, schema if isinstance(schema, StructuralSchema | str) else None, _fields_of(alike))

    def compute() -> list[JSON]:
        tracked = track_update(None, alike, manager=manager, schema=schema, now=_TIME)
        found: list[JSON] = tracked["metadata"].get("managedFields") or []
        return found

    entries = kept_entries(sort, compute, uids, now)
    return {**obj, "metadata": {**bare, "managedFields": entries} if entries else bare}


def without_uids(owners: Any) -> tuple[Any, list[str]]:
    """Owner references with placeholders instead of their uids, and the uids; none where they cannot be put back."""
    if not isinstance(owners, list) or not all(isinstance(owner, dict) for owner in owners):
        return owners, []
    uids = [owner.get("uid") for owner in owners]
    if len(set(map(str, uids))) < len(uids) or not all(isinstance(uid, str) and _is_plain(uid) for uid in uids):
        return owners, []
    return [{**owner, "uid": _PLACEHOLDER % number} for number, owner in enumerate(owners)], uids


def _is_plain(uid: str) -> bool:
    return uid.isascii() and uid.replace("-", "a").isalnum()


def kept_entries(sort: object, compute: Callable[[], list[JSON]], uids: list[str], now: datetime) -> list[JSON]:
    """The entries of objects of one sort, with the uids of the owners of this one and with its time."""
    kept = _ENTRIES.get(sort)
    if kept is None:
        if len(_ENTRIES) >= MAX_SORTS:
            _ENTRIES.clear()
        kept = _ENTRIES[sort] = msgspec.json.encode(compute())
    for number, uid in enumerate(uids):
        kept = kept.replace((_PLACEHOLDER % number).encode(), uid.encode())
    entries: list[JSON] = msgspec.json.decode(kept)
    moment = timestamp(now)
    for entry in entries:
        entry["time"] = moment
    return entries


def _fields_of(value: Any) -> Any:
    """What an object's entries depend on: its fields in their order, which of them are null, the content of lists."""
    if type(value) is dict:
        return tuple([(name, _fields_of(item)) for name, item in value.items()])
    if type(value) is list:
        return msgspec.json.encode(value)
    return value is None
