"""What the containers of a node use, read from /proc, as /stats/summary and /metrics/cadvisor show it.

CPU is a counter, so a rate needs two readings: the one of an earlier request, or one that is taken first. Nothing is
read without a request. A node's use is that of its pods: several nodes of one agent share the machine.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import msgspec
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from volcano.api.meta import JSON
from volcano.api.times import timestamp
from volcano.embedded.agent.processes.container_shim import descendants
from volcano.machinery.clock import Clock

MIN_WINDOW_SECONDS: Final = 1.0
MAX_WINDOW_SECONDS: Final = 120.0
NANOSECONDS: Final = 10**9
_TICK_NANOSECONDS: Final = NANOSECONDS // os.sysconf("SC_CLK_TCK")
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_FIRST_FIELD_AFTER_NAME: Final = 3  # of /proc/PID/stat
_CPU_FIELDS: Final = slice(14 - _FIRST_FIELD_AFTER_NAME, 18 - _FIRST_FIELD_AFTER_NAME)  # own, and of reaped children
_RESIDENT_FIELD: Final = 24 - _FIRST_FIELD_AFTER_NAME


class UsageReading(NamedTuple):
    """The counters of a container's processes at one moment."""

    seconds: float
    cpu_nanoseconds: int
    memory_bytes: int


class ContainerUsage(msgspec.Struct, frozen=True):
    """What one container uses now."""

    cpu_nanocores: int
    cpu_nanoseconds: int
    memory_bytes: int


class PodUsage(msgspec.Struct, frozen=True):
    """A pod and its containers' use."""

    namespace: str
    name: str
    uid: str
    node: str
    containers: Mapping[str, ContainerUsage]


def read_processes(pid: int) -> tuple[int, int]:
    """CPU nanoseconds and resident bytes of a process and all below it; those that end meanwhile count no more."""
    cpu = memory = 0
    for process in (pid, *descendants(pid)):
        try:
            with open(f"/proc/{process}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        cpu += sum(map(int, fields[_CPU_FIELDS])) * _TICK_NANOSECONDS
        memory += int(fields[_RESIDENT_FIELD]) * _PAGE_BYTES
    return cpu, memory


class UsageMeter:
    """Measures containers by the process that each was started with."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._before: dict[str, UsageReading] = {}

    async def measure(self, processes: Mapping[str, int]) -> dict[str, ContainerUsage]:
        """Container id → use. Waits for a second reading where there is no earlier one."""
        now = await self._read(processes)
        before = {c: self._before[c] for c, reading in now.items() if self._is_usable(c, reading)}
        if len(before) < len(now):
            before = now | before
            await self._clock.sleep(timedelta(seconds=MIN_WINDOW_SECONDS))
            now = await self._read(processes)
        moment = self._clock.monotonic()
        recent = {c: r for c, r in self._before.items() if moment - r.seconds <= MAX_WINDOW_SECONDS}
        self._before = recent | now
        return {c: _usage(before[c], reading) for c, reading in now.items()}

    def _is_usable(self, container: str, now: UsageReading) -> bool:
        before = self._before.get(container)
        if before is None:
            return False
        return MIN_WINDOW_SECONDS <= now.seconds - before.seconds <= MAX_WINDOW_SECONDS

    async def _read(self, processes: Mapping[str, int]) -> dict[str, UsageReading]:
        seconds = self._clock.monotonic()
        counters = await self._clock.run(lambda: {c: read_processes(pid) for c, pid in processes.items()})
        return {container: UsageReading(seconds, *counted) for container, counted in counters.items()}


def _usage(before: UsageReading, now: UsageReading) -> ContainerUsage:
    elapsed = max(now.seconds - before.seconds, MIN_WINDOW_SECONDS / 2)
    spent = max(0, now.cpu_nanoseconds - before.cpu_nanoseconds)
    return ContainerUsage(int(spent / elapsed), now.cpu_nanoseconds, now.memory_bytes)


def total(usages: Iterable[ContainerUsage]) -> ContainerUsage:
    listed = list(usages)
    return ContainerUsage(
        sum(each.cpu_nanocores for each in listed),
        sum(each.cpu_nanoseconds for each in listed),
        sum(each.memory_bytes for each in listed),
    )


# -- the two forms -------------------------------------------------------------------------------------------------
def summary(node: str, pods: Iterable[PodUsage], now: datetime) -> JSON:
    """The document of /stats/summary."""
    listed, moment = list(pods), timestamp(now)
    return {
        "node": {"nodeName": node, **_stats(total(u for pod in listed for u in pod.containers.values()), moment)},
        "pods": [
            {
                "podRef": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
                **_stats(total(pod.containers.values()), moment),
                "containers": [{"name": name, **_stats(usage, moment)} for name, usage in pod.containers.items()],
            }
            for pod in listed
        ],
    }


def _stats(usage: ContainerUsage, moment: str) -> JSON:
    memory = usage.memory_bytes
    return {
        "cpu": {
            "time": moment,
            "usageNanoCores": usage.cpu_nanocores,
            "usageCoreNanoSeconds": usage.cpu_nanoseconds,
        },
        "memory": {"time": moment, "usageBytes": memory, "workingSetBytes": memory, "rssBytes": memory},
    }


def cadvisor_page(pods: Iterable[PodUsage]) -> bytes:
    """The page of /metrics/cadvisor, with the names that cAdvisor gives these figures."""
    registry = CollectorRegistry()
    registry.register(_ContainerFigures(list(pods)))
    return generate_latest(registry)


class _ContainerFigures(Collector):
    def __init__(self, pods: list[PodUsage]) -> None:
        self._pods = pods

    def collect(self) -> Iterable[Metric]:
        labels = ("namespace", "pod", "container")
        cpu = CounterMetricFamily(
            "container_cpu_usage_seconds", "CPU time that the container's processes have used.", labels=labels
        )
        memory = GaugeMetricFamily(
            "container_memory_working_set_bytes", "Resident memory of the container's processes.", labels=labels
        )
        for pod in self._pods:
            for name, usage in pod.containers.items():
                cpu.add_metric((pod.namespace, pod.name, name), usage.cpu_nanoseconds / NANOSECONDS)
                memory.add_metric((pod.namespace, pod.name, name), usage.memory_bytes)
        yield cpu
        yield memory
