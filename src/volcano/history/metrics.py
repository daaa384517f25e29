"""The recorder's own metrics: rows written, the room they take, changes that wait to be written."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Gauge

from volcano.history.database import Database
from volcano.history.problems import DatabaseProblem
from volcano.history.recorder import HistoryRecorder
from volcano.machinery.metric_families import SUBSYSTEM


class HistoryMetrics:
    """Computed on every scrape."""

    def __init__(self, recorder: HistoryRecorder, database: Database) -> None:
        self.registry = CollectorRegistry()
        self._database = database
        rows = self._gauge("history_rows_written", "Rows that were written since the start.")
        rows.set_function(lambda: recorder.written_rows)
        waiting = self._gauge("history_waiting_changes", "Changes that were read and are not yet written.")
        waiting.set_function(lambda: recorder.waiting_changes)
        size = self._gauge("history_size_bytes", "The room that the history takes in its database.")
        size.set_function(self._size)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(name, text, subsystem=SUBSYSTEM, registry=self.registry)

    def _size(self) -> float:
        try:
            return float(self._database.size_bytes())
        except DatabaseProblem:
            return float("nan")
