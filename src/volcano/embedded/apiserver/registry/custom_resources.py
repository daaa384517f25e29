"""CustomResourceDefinitions → served resources: rows of the registry, and the CRD's own status.

The schema itself (compiling, defaults, pruning, validation) is apiserver.schemas.structural.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from volcano.api.meta import JSON
from volcano.api.scheme import ResourceType
from volcano.embedded.apiserver.registry.resources import CRDS, Registry, Served
from volcano.embedded.apiserver.schemas.crd.structural import compile_schema
from volcano.embedded.apiserver.store.contract import DELETED, Change, Store

_PRESERVING: Final[JSON] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def served_rows(crd: JSON) -> list[Served]:
    """One row for each served version."""
    spec = crd["spec"]
    storage = next((v["name"] for v in spec["versions"] if v.get("storage")), spec["versions"][0]["name"])
    ends = bool(crd["metadata"].get("deletionTimestamp"))
    return [_row(spec, version, storage, ends=ends) for version in spec["versions"] if version.get("served")]


def _row(spec: JSON, version: JSON, storage: str, *, ends: bool) -> Served:
    names = spec["names"]
    subresources = version.get("subresources") or {}
    row = ResourceType(
        group=spec["group"],
        version=version["name"],
        kind=names["kind"],
        plural=names["plural"],
        namespaced=spec.get("scope") == "Namespaced",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=tuple(name for name in ("status", "scale") if subresources.get(name) is not None),
        singular=names.get("singular") or names["kind"].lower(),
    )
    openapi = (version.get("schema") or {}).get("openAPIV3Schema") or _PRESERVING
    if spec.get("preserveUnknownFields"):
        openapi = {**openapi, "x-kubernetes-preserve-unknown-fields": True}
    columns = version.get("additionalPrinterColumns")
    warning = ""
    if version.get("deprecated"):
        warning = version.get("deprecationWarning") or f"{row.api_version} {row.kind} is deprecated"
    return Served(
        type=row,
        storage=row.qualified,
        selectable=tuple(f["jsonPath"].lstrip(".") for f in version.get("selectableFields") or ()),
        is_custom=True,
        schema=compile_schema(openapi),
        openapi=openapi,
        columns=tuple(columns) if columns is not None else None,
        scale=subresources.get("scale"),
        storage_version=storage,
        list_kind=names.get("listKind") or f"{names['kind']}List",
        deprecation=warning,
        is_terminating=ends,
    )


def set_status(crd: JSON, registry: Registry, now: str) -> None:
    """Accept the names, or say which are taken; established once they are accepted."""
    names = crd["spec"]["names"]
    names.setdefault("singular", str(names.get("kind", "")).lower())
    names.setdefault("listKind", f"{names.get('kind', '')}List")
    taken = registry.names_taken(crd)
    status = crd.setdefault("status", {})
    conditions = {c.get("type"): c for c in status.get("conditions") or [] if isinstance(c, dict)}
    if taken:
        what = ", ".join(f'"{name}" is already in use' for name in taken.values())
        _condition(conditions, "NamesAccepted", "False", "Conflict", what, now)
        established = conditions.get("Established", {}).get("status") == "True"
        if not established:
            _condition(conditions, "Established", "False", "NotAccepted", "not all names are accepted", now)
    else:
        status["acceptedNames"] = dict(names)
        _condition(conditions, "NamesAccepted", "True", "NoConflicts", "no conflicts found", now)
        _condition(
            conditions, "Established", "True", "InitialNamesAccepted", "the initial names have been accepted", now
        )
    status.setdefault("acceptedNames", {"plural": "", "kind": ""})
    status["conditions"] = list(conditions.values())
    stored = [v["name"] for v in crd["spec"]["versions"] if v.get("storage")]
    status["storedVersions"] = sorted({*(status.get("storedVersions") or ()), *stored})


def _condition(conditions: dict[Any, JSON], kind: str, status: str, reason: str, message: str, now: str) -> None:
    before = conditions.get(kind)
    since = before["lastTransitionTime"] if before and before.get("status") == status else now
    conditions[kind] = {
        "type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since,
    }  # fmt: skip


def is_established(crd: JSON) -> bool:
    conditions = (crd.get("status") or {}).get("conditions") or []
    return any(c.get("type") == "Established" and c.get("status") == "True" for c in conditions)


class DefinitionFollower:
    """Keeps the registry true to the stored CRDs."""

    def __init__(self, store: Store, registry: Registry) -> None:
        self._registry = registry
        for stored in store.scan(CRDS):
            self._take(msgspec.json.decode(stored.raw))
        store.subscribe(self._follow)

    def _follow(self, changes: Sequence[Change]) -> None:
        for change in changes:
            if change.stored.key.resource != CRDS:
                continue
            if change.kind == DELETED:
                self._registry.remove(change.stored.key.name)
            elif change.previous is None or _makes_a_difference(change):
                self._take(msgspec.json.decode(change.stored.raw))

    def _take(self, crd: JSON) -> None:
        if is_established(crd):
            self._registry.establish(crd["metadata"]["name"], served_rows(crd))


def _makes_a_difference(change: Change) -> bool:
    assert change.previous is not None
    new, old = msgspec.json.decode(change.stored.raw), msgspec.json.decode(change.previous.raw)
    if new["metadata"].get("deletionTimestamp") != old["metadata"].get("deletionTimestamp"):
        return True
    return bool(new.get("spec") != old.get("spec") or is_established(new) != is_established(old))
