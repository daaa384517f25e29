"""The recorder's metrics: rows written, the room they take, changes that wait; and what measured pods use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.core import CounterMetricFamily

from volcano.history.recorder import HistoryRecorder
from volcano.machinery.metric_families import SUBSYSTEM

USE: Final = {
    "requested_cpu": (
        "measured_requested_cpu_seconds",
        "Core-seconds that pods requested while their use was measured.",
    ),
    "used_cpu": ("measured_used_cpu_seconds", "Core-seconds that pods used."),
    "requested_memory": (
        "measured_requested_memory_byte_seconds",
        "Byte-seconds of memory that pods requested while their use was measured.",
    ),
    "used_memory": ("measured_used_memory_byte_seconds", "Byte-seconds of memory that pods used."),
}
"""Fields of MeasuredUse with the name and the text of their series. Used by requested is the efficiency."""


class UseCollector:
    """What pods requested and used, by namespace; nothing where use is not measured."""

    def __init__(self, recorder: HistoryRecorder) -> None:
        self._recorder = recorder

    def collect(self) -> Iterator[CounterMetricFamily]:
        for field, (name, text) in USE.items():
            family = CounterMetricFamily(f"{SUBSYSTEM}_{name}", text, labels=["namespace"])
            for namespace, use in sorted(self._recorder.use.sums.items()):
                family.add_metric([namespace], getattr(use, field))
            yield family


class HistoryMetrics:
    """Read from the recorder on every scrape. In the embedded system they are in the registry of the controllers."""

    def __init__(self, recorder: HistoryRecorder, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry if registry is not None else CollectorRegistry()
        rows = self._gauge("history_rows_written", "Rows that were written since the start.")
        rows.set_function(lambda: recorder.written_rows)
        waiting = self._gauge("history_waiting_changes", "Changes that were read and are not yet written.")
        waiting.set_function(lambda: recorder.waiting_changes)
        size = self._gauge("history_size_bytes", "The room that the history takes in its database.")
        size.set_function(lambda: recorder.size_bytes)
        self.registry.register(UseCollector(recorder))

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(name, text, subsystem=SUBSYSTEM, registry=self.registry)
