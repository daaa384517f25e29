"""Monitoring: Prometheus rules, a Grafana dashboard and the scrape configuration of the embedded system, as values.

The same rules and panels are files in deploy/monitoring and, switched on by values, objects of the chart. Every
expression answers on a system that has run a job; a test asks a real Prometheus.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final, NamedTuple

from volcano.api.meta import JSON
from volcano.install.values import Part, Values
from volcano.install.workloads import labels

RULES_VALUE: Final = "metrics.prometheusRule.enabled"
DASHBOARD_VALUE: Final = "metrics.grafanaDashboard.enabled"
DASHBOARD_UID: Final = "volcano"
SCRAPE_INTERVAL: Final = "15s"


class Recording(NamedTuple):
    """An expression that is computed once and read by its name."""

    record: str
    expression: str


class Alert(NamedTuple):
    """What is wrong while the expression has an answer for the given time."""

    name: str
    expression: str
    lasting: str
    severity: str
    summary: str
    description: str


class Panel(NamedTuple):
    title: str
    expressions: tuple[tuple[str, str], ...]  # expression, legend
    unit: str = "short"
    kind: str = "timeseries"


RECORDINGS: Final = (
    Recording(
        "volcano:scheduled_pods:rate5m",
        'sum(rate(volcano_task_scheduling_latency_milliseconds_count{stage="Bound"}[5m]))',
    ),
    Recording(
        "volcano:cycle_milliseconds:p95_5m",
        "histogram_quantile(0.95, sum by (le) (rate(volcano_e2e_scheduling_latency_milliseconds_bucket[5m])))",
    ),
    Recording(
        "volcano:job_wait_milliseconds:p95_5m",
        "histogram_quantile(0.95, sum by (le) (rate(volcano_e2e_job_scheduling_latency_milliseconds_bucket[5m])))",
    ),
    Recording("volcano:evictions:increase1h", "sum(increase(volcano_eviction_transactions_total[1h])) or vector(0)"),
    Recording(
        "volcano:queue_waiting_milli_cpu",
        "sum by (queue_name) (volcano_queue_request_milli_cpu - volcano_queue_allocated_milli_cpu)",
    ),
    Recording("volcano:store_objects", "sum(apiserver_storage_objects)"),
)
ALERTS: Final = (
    Alert(
        "VolcanoNothingScheduled",
        "(max(volcano_unschedule_job_count) > 0) and on () "
        '(sum(increase(volcano_task_scheduling_latency_milliseconds_count{stage="Bound"}[30m])) == 0)',
        "15m",
        "warning",
        "Jobs wait and nothing is scheduled",
        "{{ $value }} jobs cannot be placed, and no pod was placed for half an hour. Ask why: vcctl explain vcjob/NAME",
    ),
    Alert(
        "VolcanoQueueStarving",
        "(volcano_queue_request_milli_cpu > volcano_queue_allocated_milli_cpu) and "
        "(volcano_queue_allocated_milli_cpu < 0.9 * volcano_queue_deserved_milli_cpu)",
        "15m",
        "warning",
        "Queue {{ $labels.queue_name }} gets less than it deserves",
        "Its jobs wait although it holds less CPU than it is entitled to. Ask why: vcctl explain queue/NAME",
    ),
    Alert(
        "VolcanoManyEvictions",
        "volcano:evictions:increase1h > 100",
        "5m",
        "warning",
        "Many evictions",
        "{{ $value }} series of evictions in the last hour; see vcctl job history for who was evicted for whom.",
    ),
    Alert(
        "VolcanoSchedulerSlow",
        "volcano:cycle_milliseconds:p95_5m > 2000",
        "10m",
        "warning",
        "Scheduling cycles are slow",
        "One in twenty cycles takes longer than {{ $value }} ms.",
    ),
    Alert(
        "VolcanoControllersSlow",
        "histogram_quantile(0.95, sum by (le) "
        "(rate(volcano_controller_job_to_pod_creation_latency_milliseconds_bucket[5m]))) > 10000",
        "10m",
        "warning",
        "Controllers are slow",
        "One in twenty pods is made later than {{ $value }} ms after its job.",
    ),
    Alert(
        "VolcanoComponentDown",
        'up{job=~"volcano.*"} == 0',
        "5m",
        "critical",
        "{{ $labels.job }} does not answer",
        "Its metrics at {{ $labels.instance }} cannot be read.",
    ),
    Alert(
        "VolcanoConfigurationRefused",
        "max(volcano_configuration_refused) > 0",
        "5m",
        "warning",
        "The scheduler's newest configuration is not in force",
        "It was refused, and an older one is used; vcctl scheduler status says why.",
    ),
    Alert(
        "VolcanoStoreGrowing",
        "(volcano:store_objects > 100000) and (delta(volcano:store_objects[6h]) > 0.2 * volcano:store_objects)",
        "30m",
        "warning",
        "The store grows",
        "{{ $value }} objects, a fifth of them new within six hours; finished jobs may need ttlSecondsAfterFinished.",
    ),
)
PANELS: Final = (
    Panel("Jobs that cannot be placed", (("max(volcano_unschedule_job_count)", "jobs"),), kind="stat"),
    Panel("Pods placed", (("volcano:scheduled_pods:rate5m", "per second"),), "ops", "stat"),
    Panel("Evictions in the last hour", (("volcano:evictions:increase1h", "evictions"),), kind="stat"),
    Panel("Components that answer", (('sum(up{job=~"volcano.*"})', "up"),), kind="stat"),
    Panel("CPU held by queues", (("volcano_queue_allocated_milli_cpu / 1000", "{{queue_name}}"),)),
    Panel("Memory held by queues", (("volcano_queue_allocated_memory_bytes", "{{queue_name}}"),), "bytes"),
    Panel("CPU that queues wait for", (("volcano:queue_waiting_milli_cpu / 1000", "{{queue_name}}"),)),
    Panel("Share of what queues deserve", (("volcano_queue_share", "{{queue_name}}"),), "percentunit"),
    Panel(
        "PodGroups by state",
        tuple(
            (f"sum(volcano_queue_pod_group_{phase}_count)", phase) for phase in ("pending", "inqueue", "running")
        ),
    ),
    Panel(
        "Duration of cycles",
        (
            (
                "histogram_quantile(0.5, sum by (le) "
                "(rate(volcano_e2e_scheduling_latency_milliseconds_bucket[5m])))",
                "half",
            ),
            ("volcano:cycle_milliseconds:p95_5m", "nineteen of twenty"),
        ),
        "ms",
    ),
    Panel(
        "Duration of actions",
        (
            (
                "sum by (action) (rate(volcano_action_scheduling_latency_milliseconds_sum[5m])) / "
                "sum by (action) (rate(volcano_action_scheduling_latency_milliseconds_count[5m]))",
                "{{action}}",
            ),
        ),
        "ms",
    ),
    Panel("Wait of jobs for their places", (("volcano:job_wait_milliseconds:p95_5m", "nineteen of twenty"),), "ms"),
    Panel(
        "Creation of pods by the controllers",
        (
            (
                "histogram_quantile(0.95, sum by (le) "
                "(rate(volcano_controller_job_to_pod_creation_latency_milliseconds_bucket[5m])))",
                "nineteen of twenty",
            ),
        ),
        "ms",
    ),
    Panel(
        "Wait of pods until they are bound",
        (
            (
                "histogram_quantile(0.95, sum by (le, stage) "
                "(rate(volcano_task_scheduling_latency_milliseconds_bucket[5m])))",
                "{{stage}}",
            ),
        ),
        "ms",
    ),
    Panel("Rows of the history written", (("sum(rate(volcano_history_rows_written[5m]))", "per second"),), "ops"),
    Panel("Changes that the history has not yet written", (("sum(volcano_history_waiting_changes)", "changes"),)),
    Panel("Room that the history takes", (("max(volcano_history_size_bytes)", "bytes"),), "bytes"),
    Panel("Objects in the store", (("topk(8, apiserver_storage_objects)", "{{resource}}"),)),
    Panel(
        "Requests to the API server",
        (("sum by (verb) (rate(apiserver_request_total[5m]))", "{{verb}}"),),
        "ops",
    ),
)  # fmt: skip


def rule_groups() -> JSON:
    """What a rules file of Prometheus has in it."""
    recordings = [{"record": each.record, "expr": each.expression} for each in RECORDINGS]
    alerts = [
        {
            "alert": each.name,
            "expr": each.expression,
            "for": each.lasting,
            "labels": {"severity": each.severity},
            "annotations": {"summary": each.summary, "description": each.description},
        }
        for each in ALERTS
    ]
    names = {"volcano.recordings": recordings, "volcano.alerts": alerts}
    return {"groups": [{"name": name, "rules": rules} for name, rules in names.items()]}


def expressions() -> Iterator[str]:
    """Every expression of rules and panels."""
    yield from (each.expression for each in RECORDINGS)
    yield from (each.expression for each in ALERTS)
    yield from (expression for panel in PANELS for expression, _ in panel.expressions)


def dashboard() -> JSON:
    """For Grafana 9 and newer; the data source is chosen in it."""
    panels: list[JSON] = []
    x = y = 0
    for number, panel in enumerate(PANELS, 1):
        width, height = (6, 4) if panel.kind == "stat" else (12, 8)
        panels.append(_panel(number, panel, {"x": x, "y": y, "w": width, "h": height}))
        x += width
        if x >= 24:
            x, y = 0, y + height
    source = {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
    return {
        "uid": DASHBOARD_UID,
        "title": "Volcano",
        "tags": ["volcano", "batch"],
        "schemaVersion": 38,
        "timezone": "browser",
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": [source]},
        "panels": panels,
    }


def _panel(number: int, panel: Panel, place: JSON) -> JSON:
    source = {"type": "prometheus", "uid": "${source}"}
    targets = [
        {"refId": chr(ord("A") + index), "expr": expression, "legendFormat": legend, "datasource": source}
        for index, (expression, legend) in enumerate(panel.expressions)
    ]
    return {
        "id": number,
        "title": panel.title,
        "type": panel.kind,
        "datasource": source,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": targets,
    }


def dashboard_text() -> str:
    return json.dumps(dashboard(), indent=2) + "\n"


def scrape_configuration(
    *,
    rules: str,
    scheduler: str = "127.0.0.1:8080",
    controllers: str = "127.0.0.1:8081",
    api_server: str = "",
    authority: str = "",
    certificate: str = "",
    key: str = "",
) -> JSON:
    """prometheus.yml for the embedded system; the API server is read with a certificate of system:monitoring."""
    jobs: list[JSON] = [
        {"job_name": "volcano-scheduler", "static_configs": [{"targets": [scheduler]}]},
        {"job_name": "volcano-controllers", "static_configs": [{"targets": [controllers]}]},
    ]
    if api_server:
        jobs.append(
            {
                "job_name": "volcano-apiserver",
                "scheme": "https",
                "tls_config": {"ca_file": authority, "cert_file": certificate, "key_file": key},
                "static_configs": [{"targets": [api_server]}],
            }
        )
    interval = {"scrape_interval": SCRAPE_INTERVAL, "evaluation_interval": SCRAPE_INTERVAL}
    return {"global": interval, "rule_files": [rules], "scrape_configs": jobs}


def monitoring_parts(values: Values) -> Iterator[Part]:
    """The rules for the Prometheus operator, and the dashboard for Grafana's sidecar."""
    yield Part(
        "prometheus-rules",
        {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PrometheusRule",
            "metadata": {
                "name": "volcano",
                "namespace": values.namespace,
                "labels": values("metrics.prometheusRule.labels"),
            },
            "spec": rule_groups(),
        },
        RULES_VALUE,
    )
    metadata = {
        "name": "volcano-grafana-dashboard",
        "namespace": values.namespace,
        "labels": {**labels("monitoring"), "grafana_dashboard": "1"},
    }
    yield Part(
        "grafana-dashboard",
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"volcano.json": dashboard_text()}},
        DASHBOARD_VALUE,
    )
