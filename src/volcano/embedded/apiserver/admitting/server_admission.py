"""The order of admission: built-in defaults, the plugged-in hook, mutating webhooks; later checks, webhooks, quota."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final

import msgspec

from volcano.api.meta import JSON
from volcano.api.scheme import ResourceType
from volcano.embedded.apiserver.access.authorization import Authorizer
from volcano.embedded.apiserver.admitting.endpoint_addresses import check_endpoint_addresses
from volcano.embedded.apiserver.admitting.escalation import check_escalation
from volcano.embedded.apiserver.admitting.hook import AdmissionHook
from volcano.embedded.apiserver.admitting.limit_ranges import apply_limit_ranges, check_limit_ranges
from volcano.embedded.apiserver.admitting.namespace_lifecycle import check_deletion, check_namespace
from volcano.embedded.apiserver.admitting.pod_defaults import default_tolerations, set_service_account
from volcano.embedded.apiserver.admitting.pod_security.pod_security import check_pod_security
from volcano.embedded.apiserver.admitting.priorities import check_one_default_priority, set_priority
from volcano.embedded.apiserver.admitting.quota import QuotaLedger
from volcano.embedded.apiserver.admitting.storage_class import set_storage_class
from volcano.embedded.apiserver.admitting.webhooks import Webhooks
from volcano.embedded.apiserver.store.contract import Store
from volcano.machinery.admission import CREATE, DELETE, UPDATE, Attributes

Mutator = Callable[[Store, Attributes], None]

_ON_CREATE: Final[Mapping[str, tuple[Mutator, ...]]] = {
    "pods": (apply_limit_ranges, set_service_account, default_tolerations, set_priority),
    "persistentvolumeclaims": (set_storage_class,),
    "priorityclasses.scheduling.k8s.io": (check_one_default_priority,),
}
_CHECKS: Final[Mapping[str, tuple[Mutator, ...]]] = {
    "pods": (check_limit_ranges,),
    "persistentvolumeclaims": (check_limit_ranges,),
}


class ServerAdmission:
    """Everything a write must pass. Reads are not admitted."""

    def __init__(self, store: Store, hook: AdmissionHook | None, webhooks: Webhooks, authorizer: Authorizer) -> None:
        self._store = store
        self._authorizer = authorizer
        self._hook = hook
        self._webhooks = webhooks
        self.quota = QuotaLedger(store)
        self._turns = {kind: asyncio.Lock() for kind in (hook.compared if hook is not None else ())}

    def fills_in(self, resource: ResourceType) -> bool:
        """Whether new objects of this kind may be changed in place; other changes give another object."""
        return self._hook is not None and resource.qualified in _ON_CREATE

    @property
    def keeps_shapes(self) -> bool:
        """Whether what is stored was defaulted after admission, and no webhook could add unknown fields to it."""
        return self._hook is not None and not self._webhooks.any_mutating

    async def mutate(self, attributes: Attributes) -> tuple[JSON | None, list[str]]:
        """The object to go on with (None for deletions), and warnings for the client."""
        if attributes.operation == CREATE:
            check_namespace(self._store, attributes)
            if not attributes.subresource:
                for mutate in _ON_CREATE.get(attributes.resource.qualified, ()):
                    mutate(self._store, attributes)
        elif attributes.operation == DELETE:
            check_deletion(attributes)
        obj, warnings = attributes.object, list[str]()
        if self._hook is not None:
            obj, warnings = await self._hook.mutate(attributes)
        if self._webhooks.any_mutating:
            obj, more = await self._webhooks.mutate(msgspec.structs.replace(attributes, object=obj))
            warnings = [*warnings, *more]
        return obj, warnings

    def compares(self, resource: ResourceType) -> bool:
        """Whether objects of this kind are written one at a time; `turn` would only cost time for others."""
        return resource.qualified in self._turns

    @contextlib.asynccontextmanager
    async def turn(self, attributes: Attributes) -> AsyncIterator[None]:
        """Around the commit: a kind whose objects are compared is checked again, now that no other is written."""
        lock = self._turns.get(attributes.resource.qualified)
        if lock is None or self._hook is None or attributes.subresource:
            yield
            return
        async with lock:
            await self._hook.validate(attributes)
            yield

    async def validate(self, attributes: Attributes) -> list[str]:
        """Warnings for the client; the object stays as it is."""
        is_resource_write = attributes.operation in (CREATE, UPDATE) and attributes.subresource in ("", "resize")
        if is_resource_write:
            for check in _CHECKS.get(attributes.resource.qualified, ()):
                check(self._store, attributes)
            check_escalation(self._authorizer, attributes)
            check_endpoint_addresses(self._authorizer, attributes)
        warnings = check_pod_security(self._store, attributes)
        if self._hook is not None:
            warnings = [*warnings, *await self._hook.validate(attributes)]
        if self._webhooks.any_validating:
            warnings = [*warnings, *await self._webhooks.validate(attributes)]
        if is_resource_write:
            self.quota.check(attributes)
        return warnings
