"""Which resources are served: the rows of api.scheme.BUILT_IN, and one for each version of an established CRD.

What the server knows of each kind is its strategy (kinds).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from volcano.api.meta import JSON
from volcano.api.scheme import BUILT_IN, ResourceType
from volcano.embedded.apiserver.kinds.strategy import Strategy
from volcano.embedded.apiserver.kinds.strategy_table import strategy_for
from volcano.embedded.apiserver.store.contract import Index, Stored


class Served(msgspec.Struct, frozen=True):
    """One resource at one version."""

    type: ResourceType
    strategy: Strategy
    is_custom: bool = False
    openapi: JSON | None = None
    columns: tuple[JSON, ...] | None = None
    scale: JSON | None = None
    storage_version: str = ""
    list_kind: str = ""
    deprecation: str = ""
    is_terminating: bool = False

    @property
    def storage(self) -> str:
        """The name under which the store keeps the objects."""
        return self.strategy.storage

    def index_of(self, stored: Stored) -> Index:
        if stored.index is None:
            stored.index = self.index(msgspec.json.decode(stored.raw))
        return stored.index

    def index(self, obj: JSON) -> Index:
        """What selectors can see of a stored object."""
        return Index((obj.get("metadata") or {}).get("labels") or {}, self.strategy.field_texts(obj))


class ResourceRegistry:
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

    def all(self) -> Sequence[Served]:
        return list(self._served.values())

    def groups(self) -> Mapping[str, list[str]]:
        """The versions of each group, the preferred one first."""
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
        """The names of a CRD that another resource of its group already has: field → name."""
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
    return Served(row, strategy_for(row), storage_version=row.version, list_kind=f"{row.kind}List")


_VERSION: Final = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")


def version_rank(version: str) -> tuple[int, int, int, str]:
    """Kubernetes' order of versions: v2, v1, v1beta2, v1beta1, v1alpha1, then anything else by name."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (3, 0, 0, version)
    major, stage, minor = int(match[1]), match[2], int(match[3] or 0)
    return ({None: 0, "beta": 1, "alpha": 2}[stage], -major, -minor, version)
