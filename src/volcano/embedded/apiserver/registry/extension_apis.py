"""ExtensionApis: the API groups that other servers answer, from the APIServices that name a Service.

It follows the store; what a server offers (its discovery document) is noted here by upkeep.api_service_status.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from volcano.api.meta import JSON
from volcano.embedded.apiserver.kinds.api_services import API_SERVICES
from volcano.embedded.apiserver.registry.resources import version_rank
from volcano.embedded.apiserver.store.contract import DELETED, LoggedChange, Store, Stored


class ExtensionApi(msgspec.Struct, frozen=True):
    """One version of a group that a Service answers."""

    name: str
    group: str
    version: str
    service: Mapping[str, object]
    ca_bundle: str = ""
    is_checked: bool = True
    """Whether the server's certificate is verified."""


class ExtensionApis:
    """Group and version → the Service that answers it."""

    def __init__(self, store: Store) -> None:
        self._by_name: dict[str, ExtensionApi] = {}
        self._by_version: dict[tuple[str, str], ExtensionApi] = {}
        self._resources: dict[tuple[str, str], Sequence[JSON]] = {}
        for stored in store.scan(API_SERVICES):
            self._put(stored)
        store.subscribe(self._follow)

    def find(self, group: str, version: str) -> ExtensionApi | None:
        return self._by_version.get((group, version))

    def all(self) -> Sequence[ExtensionApi]:
        return list(self._by_name.values())

    def groups(self) -> Mapping[str, list[str]]:
        """The versions of each group, the preferred one first."""
        found: dict[str, list[str]] = {}
        for group, version in self._by_version:
            found.setdefault(group, []).append(version)
        return {group: sorted(versions, key=version_rank) for group, versions in found.items()}

    def resources(self, group: str, version: str) -> Sequence[JSON] | None:
        """The resources that the server listed last; None while it has not answered."""
        return self._resources.get((group, version))

    def note_resources(self, api: ExtensionApi, resources: Sequence[JSON] | None) -> None:
        """Note what a server offers, or that it does not answer."""
        if resources is None:
            self._resources.pop((api.group, api.version), None)
        elif self._by_name.get(api.name) == api:
            self._resources[api.group, api.version] = resources

    def _follow(self, changes: Sequence[LoggedChange]) -> None:
        for change in changes:
            if change.stored.key.resource == API_SERVICES:
                if change.kind == DELETED:
                    self._remove(change.stored.key.name)
                else:
                    self._put(change.stored)

    def _put(self, stored: Stored) -> None:
        name, spec = stored.key.name, msgspec.json.decode(stored.raw).get("spec") or {}
        api = None
        if spec.get("service"):
            api = ExtensionApi(
                name,
                str(spec.get("group") or ""),
                str(spec.get("version") or ""),
                spec["service"],
                ca_bundle=str(spec.get("caBundle") or ""),
                is_checked=not spec.get("insecureSkipTLSVerify"),
            )
        if api != self._by_name.get(name):
            self._remove(name)
            if api is not None:
                self._by_name[name] = self._by_version[api.group, api.version] = api

    def _remove(self, name: str) -> None:
        api = self._by_name.pop(name, None)
        if api is not None:
            self._by_version.pop((api.group, api.version), None)
            self._resources.pop((api.group, api.version), None)
