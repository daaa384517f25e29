"""colocation: write into each pod's annotations the ColocationConfiguration that selects it.

Of several the newest applies. A pod that no configuration selects any more gets an empty one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import ClassVar, Final

import msgspec

from volcano.api.core import Pod
from volcano.api.meta import JSON, Key, Resource
from volcano.api.selectors import selector_from
from volcano.api.topology import ColocationConfiguration
from volcano.machinery.controller import Controller, Wake, Waker
from volcano.machinery.plan import NOTHING, Later, Patch, Plan, ref
from volcano.machinery.world import Change, World

NAME: Final = "volcano.sh/colocation-config-name"
CONFIG: Final = "volcano.sh/colocation-config"
NO_CONFIGURATION: Final = "{}"
ALL: Final = ""  # the name in the key that stands for all pods of a namespace
RECHECK_DELAY: Final = timedelta(seconds=1)
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class ColocationController(Controller):
    """Keeps the colocation annotations of pods."""

    name: ClassVar = "colocation"

    @property
    def wakes_on(self) -> Mapping[type[Resource], Waker]:
        return {Pod: _pods, ColocationConfiguration: _configurations}

    def decide(self, key: Key, world: World, causes: tuple[Hashable, ...]) -> Plan:
        if key.name == ALL:
            pods = world.where(Pod, "namespace", key.namespace)
            return tuple(Later(RECHECK_DELAY, key=pod.key) for pod in pods if not pod.is_deleting)
        pod = world.get(Pod, key)
        if pod is None or pod.is_deleting:
            return NOTHING
        wanted = _wanted(pod, world)
        have = {name: pod.annotations[name] for name in (NAME, CONFIG) if name in pod.annotations}
        if wanted == have or (NAME not in wanted and not have):
            return NOTHING
        return (Patch(ref(pod), {"metadata": {"annotations": {NAME: wanted.get(NAME), CONFIG: wanted[CONFIG]}}}),)


def _wanted(pod: Pod, world: World) -> dict[str, str]:
    found = [
        each
        for each in world.where(ColocationConfiguration, "namespace", pod.namespace)
        if not each.is_deleting and selector_from(each.spec.selector).matches(pod.labels)
    ]
    if not found:
        return {CONFIG: NO_CONFIGURATION}
    youngest = max(found, key=lambda each: (each.metadata.creation_timestamp or EPOCH, each.name))
    return {NAME: youngest.name, CONFIG: config_of(youngest)}


def config_of(configuration: ColocationConfiguration) -> str:
    """The settings as JSON without the selector; empty ones are left out."""
    memory = configuration.spec.memory_qos
    settings: JSON = {}
    if memory is not None:
        ratios = {"highRatio": memory.high_ratio, "lowRatio": memory.low_ratio, "minRatio": memory.min_ratio}
        settings["memoryQos"] = {name: ratio for name, ratio in ratios.items() if ratio}
    return msgspec.json.encode(settings).decode()


def _pods(change: Change[Pod]) -> Iterable[Wake]:
    if change.new is not None and (change.old is None or change.old.labels != change.new.labels):
        yield Wake(change.new.key)


def _configurations(change: Change[ColocationConfiguration]) -> Iterable[Wake]:
    if change.old is None or change.new is None or change.old.spec != change.new.spec:
        yield Wake(Key(change.object.namespace, ALL))
