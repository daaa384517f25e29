"""Write docs/reference/metrics.md: every metric with its type, labels and help, as the components register them.

python tools/generate_metrics.py           write the page
python tools/generate_metrics.py --check   fail if the page is not up to date
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from generated_page import write_or_check
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from volcano.controllers.service.job_metrics import ControllerMetrics
from volcano.embedded.agent.streams.node_usage import ContainerUsage, PodUsage, cadvisor_page
from volcano.embedded.apiserver.pages.telemetry import Telemetry
from volcano.embedded.apiserver.registry.watch_hub import WatchHub
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.history.measuring import UseByNamespace
from volcano.history.metrics import HistoryMetrics
from volcano.scheduler.service.metrics import Metrics

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "metrics.md"
INTRO = """\
# Metrics

Generated from the components' registries by `tools/generate_metrics.py`. Every component serves them at `/metrics`, in
Prometheus' format. With `volcano up` they are also at
`/api/v1/namespaces/volcano-system/services/NAME/proxy/metrics` of the API server. A histogram `x` has the series
`x_bucket`, `x_count` and `x_sum`.
"""
Row = tuple[str, str, tuple[str, ...], str]


def rows(registry: CollectorRegistry) -> list[Row]:
    """The metrics of a registry, as they are declared: what has labels has no series before it is used."""
    return sorted(row for collector in registry._collector_to_names for row in declared(collector))


def declared(collector: Any) -> Iterator[Row]:
    if hasattr(collector, "_labelnames"):
        yield _row(collector._name, collector._type, collector._labelnames, collector._documentation)
        return
    for family in collector.collect():
        yield _row(family.name, family.type, family._labelnames, family.documentation)


def _row(name: str, kind: str, labels: Iterable[str], text: str) -> Row:
    return name + ("_total" if kind == "counter" else ""), kind, tuple(labels), text


def of_containers() -> list[Row]:
    """The metrics of a node, read from the page of a node with one container."""
    pod = PodUsage("default", "pod", "uid", "node", {"main": ContainerUsage(1, 1, 1)})
    families = text_string_to_metric_families(cadvisor_page([pod]).decode())
    return [_row(each.name, each.type, each.samples[0].labels, each.documentation) for each in families]


def parts() -> list[tuple[str, str, list[Row]]]:
    """Title, where it is served, and the metrics."""
    store = MemoryStore()
    unused: Any = SimpleNamespace(use=UseByNamespace())
    return [
        ("Scheduler", "`volcano scheduler`, port 8080; Service `volcano-scheduler`", rows(Metrics().registry)),
        (
            "Controllers",
            "`volcano controller-manager`, port 8081; Service `volcano-controllers-service`",
            rows(ControllerMetrics().registry),
        ),
        (
            "History",
            "`volcano history`; in the embedded system among those of the controllers",
            rows(HistoryMetrics(unused).registry),
        ),
        ("API server (embedded)", "`/metrics` of the API server", rows(Telemetry(store, WatchHub(store)).registry)),
        ("Nodes (embedded)", "`/api/v1/nodes/NAME/proxy/metrics/cadvisor` of the API server", of_containers()),
    ]


def page() -> str:
    lines = [INTRO]
    for title, place, found in parts():
        lines += [f"## {title}", "", f"At {place}.", "", "| metric | type | labels | meaning |", "|---|---|---|---|"]
        for name, kind, labels, text in found:
            lines.append(f"| `{name}` | {kind} | {', '.join(f'`{each}`' for each in labels)} | {text} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, page()))
