"""managedFields after an update, computed on the entries as they are stored: only what the change touches is rewritten.

Most writes are updates of some fields by one of few managers. Reading all entries into trees and writing them back, as
schemas.apply.merge does in general, costs several times the rest of such a write. Both give the same entries.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from volcano.api.meta import JSON
from volcano.api.times import timestamp_or_none
from volcano.embedded.apiserver.schemas.apply.field_sets import MEMBER, SELF, Tree, to_fields
from volcano.embedded.apiserver.schemas.apply.managed_fields import APPLY, MAX_UPDATERS, UPDATE, Owner, owner_of

MAX_TIMES: Final = 4096


def entries_after(
    entries: list[JSON], *, touched: Tree, taken: Tree, owner: Owner, version: str, time: str
) -> list[JSON] | None:
    """The entries without the touched fields, and with the taken ones as the owner's.

    None when that needs the general way: entries that this project did not write, or more updaters than are kept.
    """
    kept: list[JSON] = []
    owners: set[Owner] = set()
    mine: JSON | None = None
    for entry in entries:
        found = _owner(entry)
        if found is None or found in owners:
            return None
        owners.add(found)
        before = entry["fieldsV1"]
        fields = _minus(before, touched)
        if found == owner:
            mine = {**entry, "fieldsV1": fields}
        elif fields:
            kept.append(entry if fields == before else {**entry, "fieldsV1": fields})
    if taken:
        kept.append(_owned(mine, taken, owner, version, time))
    elif mine is not None and mine["fieldsV1"]:
        kept.append(mine)
    if sum(entry["operation"] == UPDATE for entry in kept) > MAX_UPDATERS:
        return None
    return sorted(kept, key=_order)


def _owner(entry: Any) -> Owner | None:
    """The owner of an entry in the form that this project stores."""
    if not isinstance(entry, dict) or entry.get("fieldsType") != "FieldsV1":
        return None
    operation, manager, version = entry.get("operation"), entry.get("manager"), entry.get("apiVersion")
    if operation not in (APPLY, UPDATE) or not isinstance(manager, str) or not isinstance(version, str):
        return None
    if not isinstance(entry.get("fieldsV1"), dict) or not entry["fieldsV1"]:
        return None
    return owner_of(manager, operation, version, entry.get("subresource") or "")


def _owned(mine: JSON | None, taken: Tree, owner: Owner, version: str, time: str) -> JSON:
    held = mine["fieldsV1"] if mine is not None else {}
    entry: JSON = {
        "apiVersion": version,
        "fieldsType": "FieldsV1",
        "fieldsV1": _plus(held, taken),
        "manager": owner.manager,
        "operation": owner.operation,
    }
    if owner.subresource:
        entry["subresource"] = owner.subresource
    entry["time"] = time
    return entry


def _order(entry: JSON) -> tuple[Any, ...]:
    seconds = _seconds(entry.get("time"))
    return (entry["operation"], seconds, entry["manager"], entry["apiVersion"], entry.get("subresource", ""))


@lru_cache(MAX_TIMES)
def _seconds(text: Any) -> int:
    moment = timestamp_or_none(text)
    return int(moment.timestamp()) if moment is not None else 0


# In FieldsV1 a path with nothing below it is an empty object, where a tree has MEMBER.
def _minus(fields: JSON, gone: Tree) -> JSON:
    answer: JSON = {}
    for key, branch in fields.items():
        theirs = gone.get(key)
        if theirs is None:
            answer[key] = branch
        elif key != SELF:
            rest = _minus(branch or MEMBER, theirs)
            if rest:
                answer[key] = {} if rest == MEMBER else rest
    return answer


def _plus(fields: JSON, more: Tree) -> JSON:
    answer = dict(fields)
    for key, branch in more.items():
        mine = answer.get(key)
        if mine is None:
            answer[key] = {} if key == SELF or branch == MEMBER else to_fields(branch)
        elif key != SELF:
            both = _plus(mine or MEMBER, branch)
            answer[key] = {} if both == MEMBER else both
    return answer
