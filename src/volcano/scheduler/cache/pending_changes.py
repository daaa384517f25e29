"""PendingChanges: objects changed since the last cycle, and binds and evictions that were sent and are not seen yet.

Only the event loop touches it. A cycle, which runs in another thread, gets a Batch (`take`) and returns what it saw of
the assumptions (`Confirmed`). A bind or eviction that was sent is *assumed*: it counts as done until the API server
shows it (`confirm`) or it failed (`forget`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from volcano.api import core
from volcano.api.meta import JSON, Key, Resource
from volcano.machinery.world import Change, Mirror
from volcano.scheduler.cache.followed import FOLLOWED, is_urgent, matters, wakes
from volcano.scheduler.model import NodeUsage


@dataclass(slots=True)
class Batch:
    """What the next cycle has to take in: the newest state of each changed object, None when it is deleted."""

    objects: dict[tuple[type[Resource], Key], Resource | None] = field(default_factory=dict)
    assumed: dict[str, str] = field(default_factory=dict)  # pod uid → node
    evicting: frozenset[str] = frozenset()
    usage: dict[str, NodeUsage] = field(default_factory=dict)
    allocations: dict[Key, JSON] = field(default_factory=dict)  # of ResourceClaims, sent and not seen yet
    annotations: dict[str, Mapping[str, str]] = field(default_factory=dict)  # pod uid → what it is bound with


@dataclass(slots=True, frozen=True)
class Confirmed:
    """Pods (by uid) whose assumed bind or eviction the API server shows, or that were deleted."""

    bound: frozenset[str] = frozenset()
    evicted: frozenset[str] = frozenset()


class PendingChanges:
    def __init__(self) -> None:
        self._objects: dict[tuple[type[Resource], Key], Resource | None] = {}
        self._assumed: dict[str, str] = {}
        self._evicting: set[str] = set()
        self._usage: dict[str, NodeUsage] = {}
        self._annotations: dict[str, Mapping[str, str]] = {}
        self._devices: dict[str, Mapping[Key, JSON]] = {}  # pod uid → claim → the allocation that is being written

    # -- changes -------------------------------------------------------------------------------------------------
    def follow(
        self, mirror: Mirror, on_change: Callable[[bool], None], kinds: Iterable[type[Resource]] = FOLLOWED
    ) -> None:
        """Collect all that the mirror holds and every later change that matters to the scheduler.

        `on_change` is called when a cycle should follow: with True at once, with False after a short delay.
        """

        def collect(change: Change[Any]) -> None:
            if matters(change):
                resource = change.object
                self._objects[type(resource), resource.key] = change.new
                if wakes(change):
                    on_change(is_urgent(change))

        for kind in kinds:
            mirror.listen(kind, collect)

    def reload(self, mirror: Mirror, kinds: Iterable[type[Resource]] = FOLLOWED) -> None:
        """Hand over every object again, after the snapshot was thrown away."""
        for kind in kinds:
            for resource in mirror.all(kind):
                self._objects[kind, resource.key] = resource

    def set_usage(self, usage: Mapping[str, NodeUsage]) -> None:
        """Measured load of nodes, by name."""
        self._usage.update(usage)

    @property
    def has_objects(self) -> bool:
        return bool(self._objects)

    def take(self) -> Batch:
        """Everything collected since the last time, with the current assumptions."""
        batch = self.assumptions()
        batch.objects, self._objects = self._objects, {}
        return batch

    def assumptions(self) -> Batch:
        """The current assumptions, without any changed object."""
        allocations = {key: made for each in self._devices.values() for key, made in each.items()}
        told = dict(self._annotations)
        return Batch({}, dict(self._assumed), frozenset(self._evicting), dict(self._usage), allocations, told)

    # -- assumptions ---------------------------------------------------------------------------------------------
    def assume(
        self,
        bound: Mapping[str, str],
        evicted: Iterable[str],
        devices: Mapping[str, Mapping[Key, JSON]] | None = None,
        annotations: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        """These binds (pod uid → node), evictions and allocations (pod uid → claim →) are about to be sent.

        `annotations`: what pods are told with their binds; it says which cards they take.
        """
        self._assumed.update(bound)
        self._annotations.update(annotations or {})
        self._devices.update(devices or {})
        self._evicting.update(evicted)

    def confirm(self, confirmed: Confirmed) -> None:
        for uid in confirmed.bound:
            self._assumed.pop(uid, None)
            self._devices.pop(uid, None)
            self._annotations.pop(uid, None)
        self._evicting -= confirmed.evicted

    def forget(self, uid: str, pod: core.Pod | None) -> None:
        """A bind or eviction failed: the pod counts again as the API server shows it."""
        self._assumed.pop(uid, None)
        self._devices.pop(uid, None)
        self._annotations.pop(uid, None)
        self._evicting.discard(uid)
        if pod is not None:
            self._objects.setdefault((core.Pod, pod.key), pod)
