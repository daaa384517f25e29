"""CustomResourceDefinitions → rows of the registry, kept up to date as definitions come, change and go.

The definitions themselves are kinds.definitions; their schemas are schemas.crd.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from volcano.api.meta import JSON
from volcano.api.scheme import ResourceType
from volcano.embedded.apiserver.kinds.custom_resources import CustomResource
from volcano.embedded.apiserver.kinds.definitions import DEFINITIONS, is_established
from volcano.embedded.apiserver.registry.resources import ResourceRegistry, Served
from volcano.embedded.apiserver.schemas.crd.structural import compile_schema
from volcano.embedded.apiserver.store.contract import DELETED, LoggedChange, Store

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
        strategy=CustomResource(
            row,
            compile_schema(openapi),
            storage_version=storage,
            conversion=_conversion(spec),
            selectable_fields=[f["jsonPath"].lstrip(".") for f in version.get("selectableFields") or ()],
        ),
        is_custom=True,
        openapi=openapi,
        columns=tuple(columns) if columns is not None else None,
        scale=subresources.get("scale"),
        storage_version=storage,
        list_kind=names.get("listKind") or f"{names['kind']}List",
        deprecation=warning,
        is_terminating=ends,
    )


def _conversion(spec: JSON) -> JSON | None:
    """The clientConfig of the webhook that converts between the versions, if one does."""
    conversion = spec.get("conversion") or {}
    if conversion.get("strategy") != "Webhook":
        return None
    found: JSON = (conversion.get("webhook") or {}).get("clientConfig") or {}
    return found


class DefinitionFollower:
    """Keeps the registry in step with the stored CRDs."""

    def __init__(self, store: Store, registry: ResourceRegistry) -> None:
        self._registry = registry
        for stored in store.scan(DEFINITIONS):
            self._take(msgspec.json.decode(stored.raw))
        store.subscribe(self._follow)

    def _follow(self, changes: Sequence[LoggedChange]) -> None:
        for change in changes:
            if change.stored.key.resource != DEFINITIONS:
                continue
            if change.kind == DELETED:
                self._registry.remove(change.stored.key.name)
            elif change.previous is None or _makes_a_difference(change):
                self._take(msgspec.json.decode(change.stored.raw))

    def _take(self, crd: JSON) -> None:
        if is_established(crd):
            self._registry.establish(crd["metadata"]["name"], served_rows(crd))


def _makes_a_difference(change: LoggedChange) -> bool:
    assert change.previous is not None
    new, old = msgspec.json.decode(change.stored.raw), msgspec.json.decode(change.previous.raw)
    if new["metadata"].get("deletionTimestamp") != old["metadata"].get("deletionTimestamp"):
        return True
    return bool(new.get("spec") != old.get("spec") or is_established(new) != is_established(old))
