"""Empties namespaces that are being deleted, and creates what every namespace has: a service account, the root
certificate.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from datetime import timedelta
from typing import ClassVar, Final

from volcano.api.core import ConfigMap, Namespace, ServiceAccount
from volcano.api.meta import Key, Resource
from volcano.api.partial import PartialObject
from volcano.api.scheme import resource_type
from volcano.machinery.controller import Controller, Wake, Waker, by
from volcano.machinery.plan import NOTHING, Create, Delete, Later, Patch, Plan, Ref, Together, ref
from volcano.machinery.world import Change, World

MAX_DELETES_PER_PLAN: Final = 500
RECHECK_INTERVAL: Final = timedelta(seconds=5)
KUBERNETES_FINALIZER: Final = "kubernetes"


class NamespaceController(Controller):
    """Deletes the contents of namespaces that are being deleted, then removes their finalizer."""

    name: ClassVar = "namespace"

    @property
    def wakes_on(self) -> Mapping[type[Resource], Waker]:
        return {Namespace: _deleted, PartialObject: _contents}

    def decide(self, key: Key, world: World, causes: tuple[Hashable, ...]) -> Plan:
        namespace = world.get(Namespace, key)
        if namespace is None or not namespace.is_deleting:
            return NOTHING
        contents = world.where(PartialObject, "namespace", namespace.name)
        if contents:
            doomed = [each for each in contents if not each.is_deleting and each.resource.kind != "Event"]
            doomed += [each for each in contents if not each.is_deleting and each.resource.kind == "Event"]
            deletes = tuple(_delete(each) for each in doomed[:MAX_DELETES_PER_PLAN])
            return (*((Together(deletes),) if deletes else ()), Later(RECHECK_INTERVAL))
        finalizers = [each for each in (namespace.spec or {}).get("finalizers") or () if each != KUBERNETES_FINALIZER]
        if finalizers == ((namespace.spec or {}).get("finalizers") or []):
            return NOTHING
        return (Patch(ref(namespace, fresh=True), {"spec": {"finalizers": finalizers}}, subresource="finalize"),)


def _deleted(change: Change[Namespace]) -> Iterable[Wake]:
    if change.new is not None and change.new.is_deleting:
        yield Wake(change.new.key)


def _contents(change: Change[PartialObject]) -> Iterable[Wake]:
    """A deleted object may have been the last one; a new one must be deleted too."""
    if change.object.namespace and (change.old is None or change.new is None):
        yield Wake(Key("", change.object.namespace))


def _delete(partial: PartialObject) -> Delete:
    return Delete(Ref(partial.resource, partial.object_key, partial.uid), propagation="Background")


class ServiceAccountController(Controller):
    """Every namespace has the service account `default`."""

    name: ClassVar = "service-account"

    def __init__(self, *, names: Iterable[str] = ("default",)) -> None:
        self._names = tuple(names)

    @property
    def wakes_on(self) -> Mapping[type[Resource], Waker]:
        return {Namespace: by(lambda namespace: Key("", namespace.name)), ServiceAccount: _missing_account}

    def decide(self, key: Key, world: World, causes: tuple[Hashable, ...]) -> Plan:
        namespace = world.get(Namespace, key)
        if namespace is None or namespace.is_deleting:
            return NOTHING
        return tuple(
            Create(resource_type(ServiceAccount), {"metadata": {"name": name, "namespace": namespace.name}})
            for name in self._names
            if world.get(ServiceAccount, Key(namespace.name, name)) is None
        )


def _missing_account(change: Change[ServiceAccount]) -> Iterable[Wake]:
    if change.new is None:
        yield Wake(Key("", change.object.namespace))


class RootCertificateController(Controller):
    """Every namespace has the ConfigMap `kube-root-ca.crt`, by which pods verify the API server."""

    name: ClassVar = "root-certificate"
    CONFIG_MAP: ClassVar = "kube-root-ca.crt"

    def __init__(self, *, certificate: str) -> None:
        self._certificate = certificate

    @property
    def wakes_on(self) -> Mapping[type[Resource], Waker]:
        return {Namespace: by(lambda namespace: Key("", namespace.name)), ConfigMap: self._config_maps}

    def _config_maps(self, change: Change[ConfigMap]) -> Iterable[Wake]:
        if change.object.name == self.CONFIG_MAP:
            yield Wake(Key("", change.object.namespace))

    def decide(self, key: Key, world: World, causes: tuple[Hashable, ...]) -> Plan:
        namespace = world.get(Namespace, key)
        if namespace is None or namespace.is_deleting:
            return NOTHING
        have = world.get(ConfigMap, Key(namespace.name, self.CONFIG_MAP))
        wanted = {"ca.crt": self._certificate}
        if have is None:
            metadata = {"name": self.CONFIG_MAP, "namespace": namespace.name}
            return (Create(resource_type(ConfigMap), {"metadata": metadata, "data": wanted}),)
        return (Patch(ref(have), {"data": wanted}),) if (have.data or {}) != wanted else NOTHING
