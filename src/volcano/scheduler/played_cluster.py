"""PlayedCluster: objects that exist only in memory, and the real cache and cycle deciding about them in virtual time.

The simulator plays workloads with it, and the scheduler its live objects; both decide when jobs arrive and end. One
cycle, and what a start and a new phase change in pods and PodGroups, are here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from volcano.api import core
from volcano.api.jobs.reservations import RESERVATION_ANNOTATION, StartReservation, encode_whole
from volcano.api.meta import Key, Resource
from volcano.api.scheduling import PodGroup
from volcano.scheduler.actions import ACTIONS, Action
from volcano.scheduler.cache import Batch, Cache, CacheSettings
from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.framework.config import SchedulerConfig
from volcano.scheduler.framework.decisions import Decisions
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.loop import cycle
from volcano.scheduler.model import Chance
from volcano.scheduler.plugins import PLUGINS


class PlayedCluster:
    def __init__(
        self,
        config: SchedulerConfig,
        settings: CacheSettings | None = None,
        *,
        plugins: Mapping[str, type[Plugin]] = PLUGINS,
        actions: Mapping[str, Action] = ACTIONS,
    ) -> None:
        self.config, self._plugins, self._actions = config, plugins, actions
        self._cache = Cache(settings or CacheSettings())
        self.objects: dict[tuple[type[Resource], Key], Resource] = {}  # as they are now
        self._changed: dict[tuple[type[Resource], Key], Resource | None] = {}
        self.cycles = 0

    @property
    def has_changes(self) -> bool:
        """Whether the next cycle sees anything that the last one did not."""
        return bool(self._changed)

    @property
    def snapshot(self) -> Snapshot:
        """As of the last cycle."""
        return self._cache.snapshot

    def put(self, resource: Resource) -> None:
        place = (type(resource), resource.key)
        self.objects[place] = self._changed[place] = resource

    def put_all(self, resources: Iterable[Resource]) -> None:
        for resource in resources:
            self.put(resource)

    def drop(self, resource: Resource) -> None:
        place = (type(resource), resource.key)
        self._changed[place] = None
        self.objects.pop(place, None)

    def refresh(
        self,
        now: datetime,
        assumed: Mapping[str, str] | None = None,
        evicting: frozenset[str] = frozenset(),
        annotations: Mapping[str, Mapping[str, str]] | None = None,
    ) -> Snapshot:
        """The snapshot with all changes in it; `annotations`: what pods are being bound with."""
        batch = Batch(self._changed, dict(assumed or {}), evicting, annotations=dict(annotations or {}))
        self._changed = {}
        return self._cache.refresh(batch, now, f"cycle-{self.cycles}")

    def decide(self, now: datetime, chance: Chance) -> Decisions:
        """One cycle. Nothing of it happens until the caller puts what follows from it."""
        snapshot = self.refresh(now)
        return cycle(snapshot, self.config, chance, plugins=self._plugins, actions=self._actions, messages=False)


def started_pod(pod: core.Pod, node: str, now: datetime, annotations: Mapping[str, str] | None = None) -> core.Pod:
    """The pod as it is once it runs on a node, with the annotations that it was bound with (which cards it has …)."""
    meta = pod.metadata
    if annotations:
        meta = msgspec.structs.replace(meta, annotations={**meta.annotations, **annotations})
    return msgspec.structs.replace(
        pod,
        metadata=meta,
        spec=msgspec.structs.replace(pod.spec, node_name=node),
        status=msgspec.structs.replace(pod.status, phase="Running", start_time=now),
    )


def updated_group(group: PodGroup, phase: str, reservation: StartReservation | None) -> PodGroup | None:
    """The PodGroup with its phase and its reservation; None when it has both already."""
    text = "" if reservation is None else encode_whole(reservation)
    if phase == group.status.phase and text == group.annotations.get(RESERVATION_ANNOTATION, ""):
        return None
    annotations = {key: value for key, value in group.annotations.items() if key != RESERVATION_ANNOTATION}
    if text:
        annotations[RESERVATION_ANNOTATION] = text
    return msgspec.structs.replace(
        group,
        metadata=msgspec.structs.replace(group.metadata, annotations=annotations),
        status=msgspec.structs.replace(group.status, phase=phase),
    )
