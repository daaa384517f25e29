"""Volcano's admission inside the embedded API server: the chain of volcano.admission behind the server's hook.

Other objects are read straight from the store, so that a verdict never rests on something stale.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeVar

from volcano.api.decode import Unreadable, decode
from volcano.api.errors import BadRequest
from volcano.api.meta import JSON, Key, Resource
from volcano.api.scheme import ResourceType, resource_type
from volcano.embedded.apiserver.store.contract import ObjectKey, Store, Stored
from volcano.machinery.admission import Attributes
from volcano.machinery.plan import Record
from volcano.machinery.world import EVERY_KIND

if TYPE_CHECKING:
    from volcano.admission.chain import AdmissionChain, ReviewOutcome

R = TypeVar("R", bound=Resource)
MAX_CACHED_OBJECTS: Final = 20_000
OWN_GROUPS: Final = ".volcano.sh"


class StoreReader:
    """The store as rules see it. Objects are decoded once per revision."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._decoded: dict[tuple[type[Resource], ObjectKey], tuple[int, Any]] = {}

    def get(self, kind: type[R], key: Key) -> R | None:
        stored = self._store.find(ObjectKey(resource_type(kind).qualified, key.namespace, key.name))
        return self._decode(kind, stored) if stored is not None else None

    def all(self, kind: type[R]) -> list[R]:
        found = (self._decode(kind, stored) for stored in self._store.scan(resource_type(kind).qualified))
        return [resource for resource in found if resource is not None]

    def where(self, kind: type[R], index: str, value: str) -> list[R]:
        from volcano.admission.review import INDEXES

        rule = {**EVERY_KIND, **INDEXES.get(kind, {})}[index]
        return [resource for resource in self.all(kind) if value in rule(resource)]

    def _decode(self, kind: type[R], stored: Stored) -> R | None:
        known = self._decoded.get((kind, stored.key))
        if known is not None and known[0] == stored.revision:
            found: R | None = known[1]
            return found
        try:
            resource: R | None = decode(kind, stored.raw)
        except Unreadable:
            resource = None  # stored by someone with other ideas of the kind: as good as not there
        if len(self._decoded) >= MAX_CACHED_OBJECTS:
            self._decoded.clear()
        self._decoded[kind, stored.key] = (stored.revision, resource)
        return resource


class VolcanoAdmission:
    """Volcano's rules as the embedded server's AdmissionHook."""

    compared = frozenset({"queues.scheduling.volcano.sh"})
    """The parents of two queues that are written at the same time could be each other's."""

    def __init__(
        self,
        store: Store,
        *,
        scheduler_names: tuple[str, ...] = ("volcano",),
        gates_pods: bool = False,
        record: Callable[[Record], None] | None = None,
    ) -> None:
        self._scheduler_names, self._gates_pods = scheduler_names, gates_pods
        self._reader = StoreReader(store)
        self.record = record
        """Takes the Warning events about refused objects, once there is somebody to write them."""

    @cached_property
    def _chain(self) -> AdmissionChain:
        """Imported with the first write that rules are about: a server that starts writes many objects before."""
        from volcano.admission.chain import ALL_PATHS, AdmissionChain
        from volcano.admission.review import Settings

        settings = Settings(scheduler_names=self._scheduler_names, gates_pods=self._gates_pods)
        return AdmissionChain(settings, enabled=ALL_PATHS, in_process=True)

    async def mutate(self, attributes: Attributes) -> tuple[JSON | None, list[str]]:
        if not may_concern(attributes.resource):
            return None, []
        outcome = self._chain.mutate(attributes, self._reader)
        self._check(attributes, outcome)
        return outcome.object, list(outcome.warnings)

    async def validate(self, attributes: Attributes) -> list[str]:
        if not may_concern(attributes.resource):
            return []
        outcome = self._chain.validate(attributes, self._reader)
        self._check(attributes, outcome)
        return list(outcome.warnings)

    def _check(self, attributes: Attributes, outcome: ReviewOutcome) -> None:
        """Raise a refusal, worded as the API server words a webhook's; its events are recorded first."""
        if outcome.is_allowed:
            return
        if self.record is not None and not attributes.dry_run:
            from volcano.admission.refusal_events import event_about

            for notice in outcome.notices:
                self.record(event_about(attributes, notice))
        raise BadRequest(outcome.message)


def may_concern(resource: ResourceType) -> bool:
    """Whether there may be rules about a resource: about pods and Volcano's own kinds."""
    return resource.group.endswith(OWN_GROUPS) or (resource.group, resource.plural) == ("", "pods")
