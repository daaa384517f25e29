"""PodMeter: what pods use, asked of metrics.k8s.io at each sample and counted for the time since the sample before."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from volcano.api.errors import ApiError
from volcano.api.meta import JSON, Key
from volcano.api.pods.amounts import added, amounts_of
from volcano.api.quantity import Quantity
from volcano.api.scheme import POD_METRICS
from volcano.history.batch import Measured
from volcano.history.fold import ObservedPod
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock

log = logging.getLogger(__name__)

PAUSE_WITHOUT_METRICS: Final = timedelta(minutes=10)
MAX_COUNTED: Final = timedelta(minutes=15)
"""One sample stands for at most this long; after a longer time nothing is known."""
MAX_NAMESPACES: Final = 500
OTHERS: Final = "(others)"
_MIB: Final = 2**20
_NOTHING: Final = Quantity(0)


class PodMeter:
    """Counts from the second sample on: the first says nothing about the time before it."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._last: datetime | None = None
        self._next: datetime | None = None

    async def measure(self, pods: Mapping[Key, str]) -> list[Measured]:
        """Of the pods with these UIDs; nothing where use is not measured."""
        now = self._clock.now()
        if self._next is not None and now < self._next:
            return []
        try:
            found = await self._client.list_json(POD_METRICS)
        except (ApiError, OSError, TimeoutError, msgspec.DecodeError, RecursionError) as error:
            log.info("history: what pods use is not known: %s", error)
            self._next, self._last = now + PAUSE_WITHOUT_METRICS, None
            return []
        passed = now - self._last if self._last is not None else timedelta(0)
        self._last, self._next = now, None
        if not timedelta(0) < passed <= MAX_COUNTED:
            return []
        return list(counted(found.get("items") or (), pods, passed))


class MeasuredUse(msgspec.Struct):
    """What measured pods requested and used since the start, in core-seconds and byte-seconds."""

    requested_cpu: float = 0.0
    used_cpu: float = 0.0
    requested_memory: float = 0.0
    used_memory: float = 0.0


class UseByNamespace:
    """Sums of measured pods, for Prometheus; namespaces beyond the limit count together."""

    def __init__(self) -> None:
        self.sums: dict[str, MeasuredUse] = {}

    def add(self, measured: Measured, pod: ObservedPod) -> None:
        namespace = pod.key.namespace
        if namespace not in self.sums and len(self.sums) >= MAX_NAMESPACES:
            namespace = OTHERS
        use = self.sums.setdefault(namespace, MeasuredUse())
        seconds = measured.milliseconds / 1000
        use.requested_cpu += seconds * pod.requests.get("cpu", _NOTHING).milli / 1000
        use.used_cpu += measured.cpu_milli_seconds / 1000
        use.requested_memory += seconds * pod.requests.get("memory", _NOTHING).value
        use.used_memory += measured.memory_mib_seconds * _MIB


def counted(items: Any, pods: Mapping[Key, str], passed: timedelta) -> Iterator[Measured]:
    """Each PodMetrics as an amount of work. Pure."""
    milliseconds = passed // timedelta(milliseconds=1)
    for item in items:
        metadata: JSON = item.get("metadata") or {}
        uid = pods.get(Key(str(metadata.get("namespace")), str(metadata.get("name"))))
        if uid is None:
            continue
        used = added(*(amounts_of(each.get("usage")) for each in item.get("containers") or ()))
        cpu, memory = used.get("cpu", _NOTHING).milli, used.get("memory", _NOTHING).value // _MIB
        yield Measured(uid, milliseconds, cpu * milliseconds // 1000, memory * milliseconds // 1000)
