"""The recorder's own metrics: rows written, the room they take, changes that wait to be written."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Gauge

from volcano.history.recorder import HistoryRecorder
from volcano.machinery.metric_families import SUBSYSTEM


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

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(name, text, subsystem=SUBSYSTEM, registry=self.registry)
