"""Which resources are served: the rows of api.scheme.BUILT_IN, and one for each version of an established CRD.

A `Served` row says where objects are kept, what can be selected on, and (for custom resources) the compiled schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Protocol

import msgspec

from volcano.api.errors import FieldError
from volcano.api.meta import JSON
from volcano.api.scheme import BUILT_IN, ResourceType
from volcano.embedded.apiserver.store.contract import Index, Stored

CRDS: Final = "customresourcedefinitions.apiextensions.k8s.io"

_EVENT_FIELDS: Final = (
    "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
    "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath",
    "reason", "reportingComponent", "source", "type",
)  # fmt: skip

SELECTABLE: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("", "pods"): (
        "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
        "status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName",
    ),
    ("", "events"): _EVENT_FIELDS,
    ("events.k8s.io", "events"): _EVENT_FIELDS,
    ("", "nodes"): ("spec.unschedulable",),
    ("", "secrets"): ("type",),
    ("", "namespaces"): ("status.phase",),
    ("", "services"): ("spec.clusterIP", "spec.type"),
    ("", "replicationcontrollers"): ("status.replicas",),
    ("apps", "replicasets"): ("status.replicas",),
    ("batch", "jobs"): ("status.successful",),
    ("resource.k8s.io", "resourceslices"): ("spec.nodeName", "spec.driver"),
}  # fmt: skip

_BOOLEANS: Final = frozenset({"spec.hostNetwork", "spec.unschedulable"})
_NUMBERS: Final = frozenset({"status.replicas", "status.successful"})


class Schema(Protocol):
    """What resources need of a compiled structural schema (apiserver.schemas.structural)."""

    def default(self, obj: JSON) -> Any: ...

    def prune(self, obj: JSON) -> Any: ...

    def validate(self, obj: JSON, old: JSON | None = None) -> Iterable[FieldError]: ...


class Served(msgspec.Struct, frozen=True):
    """One resource at one version."""

    type: ResourceType
    storage: str
    selectable: tuple[str, ...] = ()
    is_custom: bool = False
    schema: Any = None  # a structural schema; None for built-in kinds
    openapi: JSON | None = None
    columns: tuple[JSON, ...] | None = None
    scale: JSON | None = None
    storage_version: str = ""
    list_kind: str = ""
    deprecation: str = ""
    is_terminating: bool = False

    @property
    def has_generation(self) -> bool:
        return self.type.qualified not in UNGENERATED

    def index_of(self, stored: Stored) -> Index:
        if stored.index is None:
            stored.index = self.index(msgspec.json.decode(stored.raw))
        return stored.index

    def index(self, obj: JSON) -> Index:
        """What selectors can see of an object."""
        metadata = obj.get("metadata") or {}
        fields = {path: _field(obj, path) for path in self.selectable}
        return Index(metadata.get("labels") or {}, fields)


UNGENERATED: Final = frozenset(
    {
        "namespaces", "nodes", "configmaps", "secrets", "events", "events.events.k8s.io", "endpoints",
        "serviceaccounts",
        "limitranges", "resourcequotas", "persistentvolumes", "persistentvolumeclaims", "podtemplates", "services",
        "leases.coordination.k8s.io", "roles.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io",
        "clusterroles.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io",
        "controllerrevisions.apps", "storageclasses.storage.k8s.io", "csinodes.storage.k8s.io",
        "volumeattachments.storage.k8s.io", "csistoragecapacities.storage.k8s.io",
    }
)  # fmt: skip


@lru_cache(maxsize=1024)
def _steps(path: str) -> tuple[str, ...]:
    return tuple(path.split("."))


def _field(obj: JSON, path: str) -> str:
    value: Any = obj
    for part in _steps(path):
        value = value.get(part) if isinstance(value, dict) else None
    if path == "source" and isinstance(value, dict):
        return str(value.get("component") or obj.get("reportingComponent") or "")
    if path == "status.podIPs" and isinstance(value, list):
        return str(value[0].get("ip", "")) if value and isinstance(value[0], dict) else ""
    if value is None:
        return "false" if path in _BOOLEANS else ("0" if path in _NUMBERS else "")
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


class Registry:
    """The table of what is served now. CRDs come and go; built-in rows stay."""

    def __init__(self, built_in: Sequence[ResourceType] = BUILT_IN) -> None:
        self._served: dict[tuple[str, str, str], Served] = {}
        self._of_crd: dict[str, tuple[Served, ...]] = {}
        self.generation = 0
        for row in built_in:
            self._served[row.group, row.version, row.plural] = _built_in(row)

    def find(self, group: str, version: str, plural: str) -> Served | None:
        return self._served.get((group, version, plural))

    def of_kind(self, group: str, version: str, kind: str) -> Served | None:
        return next(
            (s for s in self._served.values() if (s.type.group, s.type.version, s.type.kind) == (group, version, kind)),
            None,
        )

    def stored_as(self, storage: str) -> Served | None:
        """The row by which stored objects of a resource are read."""
        rows = [s for s in self._served.values() if s.storage == storage]
        return next(
            (s for s in rows if s.type.version == s.storage_version or not s.is_custom), rows[0] if rows else None
        )

    def all(self) -> Sequence[Served]:
        return list(self._served.values())

    def groups(self) -> Mapping[str, list[str]]:
        """Group to its versions, in the order they became known."""
        found: dict[str, list[str]] = {}
        for group, version, _ in self._served:
            versions = found.setdefault(group, [])
            if version not in versions:
                versions.append(version)
        return {group: sorted(versions, key=version_rank) for group, versions in found.items()}

    def establish(self, crd_name: str, rows: Sequence[Served]) -> None:
        """Serve a CRD's versions instead of those it had before."""
        self.remove(crd_name)
        self._of_crd[crd_name] = tuple(rows)
        for row in rows:
            self._served[row.type.group, row.type.version, row.type.plural] = row
        self.generation += 1

    def remove(self, crd_name: str) -> None:
        for row in self._of_crd.pop(crd_name, ()):
            self._served.pop((row.type.group, row.type.version, row.type.plural), None)
        self.generation += 1

    def names_taken(self, crd: JSON) -> dict[str, str]:
        """Which of a CRD's names another resource of its group already has: name → what it is."""
        spec = crd.get("spec") or {}
        names = spec.get("names") or {}
        mine = (crd.get("metadata") or {}).get("name")
        own = {id(row) for row in self._of_crd.get(str(mine), ())}
        taken: dict[str, str] = {}
        for row in self._served.values():
            if row.type.group != spec.get("group") or id(row) in own:
                continue
            theirs = {row.type.plural, row.type.singular or row.type.kind.lower(), *row.type.short_names}
            for what in ("plural", "singular"):
                if names.get(what) in theirs:
                    taken[what] = names[what]
            if set(names.get("shortNames") or ()) & theirs:
                taken["shortNames"] = ", ".join(sorted(set(names["shortNames"]) & theirs))
            if names.get("kind") in (row.type.kind, row.list_kind):
                taken["kind"] = names["kind"]
        return taken


def _built_in(row: ResourceType) -> Served:
    storage = "events" if row.plural == "events" else row.qualified
    return Served(
        row,
        storage,
        SELECTABLE.get((row.group, row.plural), ()),
        storage_version=row.version,
        list_kind=f"{row.kind}List",
    )


_VERSION: Final = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")


def version_rank(version: str) -> tuple[int, int, int, str]:
    """Kubernetes' order of versions: v2, v1, v1beta2, v1beta1, v1alpha1, then anything else by name."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (3, 0, 0, version)
    major, stage, minor = int(match[1]), match[2], int(match[3] or 0)
    return ({None: 0, "beta": 1, "alpha": 2}[stage], -major, -minor, version)
