"""The scheduler's metrics under Volcano's names, and gauges that are removed with what they measure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from volcano.machinery.metric_families import SUBSYSTEM, exponential_buckets
from volcano.scheduler.service.metric_help import HELP

JOB: Final = ("job_name", "queue", "job_namespace")
QUEUE: Final = ("queue_name",)
_QUEUE_AMOUNTS: Final = ("allocated", "request", "deserved", "capacity", "real_capacity", "inqueue")

GAUGES: Final[Mapping[str, tuple[str, ...]]] = {
    "e2e_job_scheduling_duration": JOB,
    "e2e_job_scheduling_start_time": JOB,
    "e2e_job_scheduling_last_time": JOB,
    "pod_preemption_victims": (),
    "unschedule_task_count": ("job_id",),
    "unschedule_job_count": (),
    "configuration_refused": (),
    "job_share": ("job_ns", "job_id"),
    "namespace_share": ("namespace_name",),
    "namespace_weight": ("namespace_name",),
    "namespace_weighted_share": ("namespace_name",),
    **{f"queue_{amount}_milli_cpu": QUEUE for amount in _QUEUE_AMOUNTS},
    **{f"queue_{amount}_memory_bytes": QUEUE for amount in _QUEUE_AMOUNTS},
    **{f"queue_{amount}_scalar_resources": (*QUEUE, "resource") for amount in _QUEUE_AMOUNTS},
    "queue_share": QUEUE,
    "queue_weight": QUEUE,
    "queue_overused": QUEUE,
}
COUNTERS: Final[Mapping[str, tuple[str, ...]]] = {
    "schedule_attempts_total": ("result",),
    "eviction_transactions_total": ("action",),
    "estimate_extensions_total": ("queue",),
}
RISING: Final[Mapping[str, tuple[str, ...]]] = {"total_preemption_attempts": (), "job_retry_counts": ("job_id",)}
"""Counters whose names do not end as the format requires; kept as gauges that only rise, under their names."""


HISTOGRAMS: Final[Mapping[str, tuple[tuple[str, ...], tuple[float, ...]]]] = {
    "e2e_scheduling_latency_milliseconds": ((), exponential_buckets(1, 5000, 20)),
    "open_session_duration_milliseconds": ((), exponential_buckets(1, 5000, 20)),
    "e2e_job_scheduling_latency_milliseconds": ((), exponential_buckets(100, 120000, 30)),
    "plugin_scheduling_latency_milliseconds": (("plugin", "OnSession"), exponential_buckets(0.1, 100, 15)),
    "action_scheduling_latency_milliseconds": (("action",), exponential_buckets(1, 2000, 20)),
    "task_scheduling_latency_milliseconds": (("stage",), exponential_buckets(50, 60000, 30)),
    "scheduling_stage_duration_milliseconds": (("stage",), exponential_buckets(0.1, 500, 20)),
}
OF_QUEUES: Final = frozenset(name for name, labels in GAUGES.items() if labels[:1] == QUEUE)


class Metrics:
    """All of them in one registry, which belongs to one component."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        made = {**GAUGES, **RISING}
        self._gauges = {name: self._gauge(name, labels) for name, labels in made.items()}
        self._counters = {
            name: Counter(name, HELP[name], labels, subsystem=SUBSYSTEM, registry=self.registry)
            for name, labels in COUNTERS.items()
        }
        self._histograms = {
            name: Histogram(name, HELP[name], labels, subsystem=SUBSYSTEM, registry=self.registry, buckets=buckets)
            for name, (labels, buckets) in HISTOGRAMS.items()
        }
        self._set: dict[str, set[tuple[str, ...]]] = {}
        self._values: dict[tuple[str, tuple[str, ...]], float] = {}  # what each gauge was set to last

    def _gauge(self, name: str, labels: tuple[str, ...]) -> Gauge:
        return Gauge(name, HELP[name], labels, subsystem=SUBSYSTEM, registry=self.registry)

    def observe(self, name: str, milliseconds: float, *labels: str) -> None:
        histogram = self._histograms[name]
        (histogram.labels(*labels) if labels else histogram).observe(max(milliseconds, 0.0))

    def set(self, name: str, value: float, *labels: str) -> None:
        gauge = self._gauges.get(name)
        if gauge is not None and self._values.get((name, labels)) != value:
            self._values[(name, labels)] = value
            (gauge.labels(*labels) if labels else gauge).set(value)
            self._set.setdefault(name, set()).add(labels)

    def count(self, name: str, by: float, *labels: str) -> None:
        if name in self._counters:
            counter = self._counters[name]
            (counter.labels(*labels) if labels else counter).inc(by)
        elif name in self._gauges:
            gauge = self._gauges[name]
            (gauge.labels(*labels) if labels else gauge).inc(by)
            self._set.setdefault(name, set()).add(labels)

    def set_queues(self, gauges: Mapping[tuple[str, tuple[str, ...]], float], queues: Iterable[str]) -> None:
        """All gauges of a cycle: series of deleted queues are dropped, a resource no longer named becomes zero."""
        living = set(queues)
        for name in OF_QUEUES:
            for labels in list(self._set.get(name, ())):
                if labels[0] not in living:
                    self._forget(name, labels)
                elif len(labels) > 1 and (name, labels) not in gauges:
                    self.set(name, 0.0, *labels)
        for (name, labels), value in gauges.items():
            self.set(name, value, *labels)

    def forget_jobs(self, gone_jobs: Collection[tuple[str, str]]) -> None:
        """Drop the series of deleted jobs, given by namespace and name."""
        names = {name for _, name in gone_jobs}
        for metric, labels_of in (*GAUGES.items(), *RISING.items()):
            for labels in list(self._set.get(metric, ())):
                place = dict(zip(labels_of, labels, strict=True))
                gone = "job_id" in place and place["job_id"] in names
                gone = gone or ("job_name" in place and (place["job_namespace"], place["job_name"]) in gone_jobs)
                if gone:
                    self._forget(metric, labels)

    def _forget(self, name: str, labels: tuple[str, ...]) -> None:
        self._set[name].discard(labels)
        self._values.pop((name, labels), None)
        self._gauges[name].remove(*labels)
