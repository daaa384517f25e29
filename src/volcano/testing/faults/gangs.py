"""Gangs are bound whole or not at all: who was bound in part, and whether the others follow at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from volcano.api.core import Pod
from volcano.api.meta import Key
from volcano.api.scheduling import GROUP_NAME_ANNOTATION, PodGroup

WHOLE_SECONDS: Final = 5.0
"""Within this time after the first bind of a gang its minimum is bound: all binds are sent together."""


class PartlyBound(msgspec.Struct):
    since: float
    group_uid: str


class GangBinds:
    """Told of every change of a pod while nothing goes wrong."""

    def __init__(self, violated: Callable[[str], None]) -> None:
        self._violated = violated
        self._partly: dict[Key, PartlyBound] = {}

    def look(self, group: PodGroup | None, pod: Pod, pods: Iterable[Pod], *, is_bound_now: bool, now: float) -> None:
        key = Key(pod.namespace, pod.annotations.get(GROUP_NAME_ANNOTATION, ""))
        partly = self._partly.get(key)
        if group is None or (partly is not None and partly.group_uid != group.uid) or pod.is_deleting:
            self._partly.pop(key, None)  # the gang is gone, or loses a pod that it had
            return
        if partly is None and not is_bound_now:
            return
        members = [each for each in pods if each.annotations.get(GROUP_NAME_ANNOTATION) == group.name]
        if sum(bool(each.spec.node_name) for each in members) >= group.spec.min_member:
            self._partly.pop(key, None)
        elif partly is None:
            self._partly[key] = PartlyBound(now, group.uid)

    def forget(self, key: Key) -> None:
        self._partly.pop(key, None)

    def check(self, now: float) -> None:
        """After every commit."""
        for key, partly in list(self._partly.items()):
            if now - partly.since > WHOLE_SECONDS:
                self._violated(f"gang {key} was bound in part at {partly.since:.3f}, and the others were not")
                del self._partly[key]
