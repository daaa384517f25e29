"""The server's metrics, under the names that kube-apiserver uses, and the /metrics page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from volcano.embedded.apiserver.registry.watch_hub import WatchHub
from volcano.embedded.apiserver.store.contract import Store
from volcano.embedded.apiserver.wire.requests import RequestTarget

_DURATION_BUCKETS_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Telemetry:
    def __init__(self, store: Store, hub: WatchHub, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        labels = ("verb", "group", "version", "resource", "subresource", "code")
        self._requests = Counter(
            "apiserver_request_total",
            "Requests answered, by what they asked and the code.",
            labels,
            registry=self.registry,
        )
        self._seconds = Histogram(
            "apiserver_request_duration_seconds", "How long answering took; watches are not counted.",
            ("verb", "group", "resource"), buckets=_DURATION_BUCKETS_SECONDS, registry=self.registry,
        )  # fmt: skip
        self.in_flight = Gauge(
            "apiserver_current_inflight_requests", "Requests being answered.", ("request_kind",), registry=self.registry
        )
        # The series by their labels: the client library checks and copies the labels whenever it is asked for one.
        self._counters: dict[tuple[str, ...], Counter] = {}
        self._histograms: dict[tuple[str, ...], Histogram] = {}
        self._series: dict[tuple[str, str, str, str, str, int], tuple[Counter, Histogram | None]] = {}
        self.registry.register(_StoreCollector(store, hub))

    def observe(self, target: RequestTarget | None, code: int, seconds: float) -> None:
        if target is None:
            self._counter("GET", "", "", "", "", str(code)).inc()
            return
        same = (target.verb, target.group, target.version, target.resource, target.subresource, code)
        found = self._series.get(same)
        if found is None:
            found = self._series[same] = self._find_series(target, code)
        counter, histogram = found
        counter.inc()
        if histogram is not None:
            histogram.observe(seconds)

    def _find_series(self, target: RequestTarget, code: int) -> tuple[Counter, Histogram | None]:
        verb = target.verb.upper()
        counter = self._counter(verb, target.group, target.version, target.resource, target.subresource, str(code))
        if verb == "WATCH":
            return counter, None
        labels = (verb, target.group, target.resource)
        if (histogram := self._histograms.get(labels)) is None:
            histogram = self._histograms[labels] = self._seconds.labels(*labels)
        return counter, histogram

    def _counter(self, *labels: str) -> Counter:
        if (counter := self._counters.get(labels)) is None:
            counter = self._counters[labels] = self._requests.labels(*labels)
        return counter

    def page(self) -> bytes:
        return generate_latest(self.registry)


class _StoreCollector(Collector):
    """Computed on every scrape: the number of objects, the newest revision, the open watches."""

    def __init__(self, store: Store, hub: WatchHub) -> None:
        self._store = store
        self._hub = hub

    def collect(self) -> Iterator[GaugeMetricFamily]:
        objects = GaugeMetricFamily("apiserver_storage_objects", "Stored objects.", labels=["resource"])
        for resource in self._store.resources():
            objects.add_metric([resource], self._store.count(resource))
        yield objects
        yield GaugeMetricFamily("apiserver_storage_revision", "The newest revision.", value=self._store.revision)
        yield GaugeMetricFamily("apiserver_longrunning_requests", "Watches open.", value=self._hub.watchers)
