"""What a cycle measured and decided, as metrics."""

from __future__ import annotations

from datetime import UTC, datetime

from prometheus_client import generate_latest

from volcano.scheduler.core.assemble import snapshot_from
from volcano.scheduler.core.snapshot import drop_group, drop_pod
from volcano.scheduler.framework.decisions import Decisions
from volcano.scheduler.framework.record import BindDecision
from volcano.scheduler.service.cycle_metrics import SchedulerMetrics

NOW = datetime(2026, 1, 1, 0, 0, 10, tzinfo=UTC)
CREATED = "2026-01-01T00:00:00Z"


def snapshot():
    annotations = {"scheduling.k8s.io/group-name": "g"}
    pod = {"name": "p", "namespace": "ns", "uid": "u", "annotations": annotations, "creationTimestamp": CREATED}
    return snapshot_from(
        {
            "queues": [{"metadata": {"name": "q"}}],
            "podGroups": [
                {"metadata": {"name": "g", "namespace": "ns", "creationTimestamp": CREATED}, "spec": {"queue": "q"}}
            ],
            "pods": [{"metadata": pod, "spec": {"containers": []}, "status": {"phase": "Pending"}}],
        }
    )


def shown(metrics: SchedulerMetrics) -> str:
    return generate_latest(metrics.registry).decode()


def test_a_cycle_and_its_parts_are_measured_in_milliseconds():
    metrics = SchedulerMetrics()
    seconds = {"open": 0.001, "open gang": 0.0005, "allocate": 0.02, "cycle": 0.03, "close gang": 0.0001}

    metrics.report(Decisions(seconds=seconds), snapshot(), NOW)

    text = shown(metrics)
    assert "volcano_e2e_scheduling_latency_milliseconds_sum 30.0" in text
    assert "volcano_open_session_duration_milliseconds_sum 1.0" in text
    assert 'volcano_action_scheduling_latency_milliseconds_sum{action="allocate"} 20.0' in text
    assert '{OnSession="OnSessionOpen",plugin="gang"}' in text


def test_a_bound_job_is_measured_from_its_creation_and_forgotten_when_it_is_gone():
    metrics, given = SchedulerMetrics(), snapshot()
    metrics.report(Decisions(binds=(BindDecision("ns/p", "u", "n1", "ns/g", {}),)), given, NOW)
    metrics.report(Decisions(gauges={("job_share", ("ns", "g")): 0.5}), given, NOW)
    before = shown(metrics)

    drop_pod(given, "u")
    drop_group(given, "ns/g")
    metrics.report(Decisions(), given, NOW)

    assert 'e2e_job_scheduling_duration{job_name="g",job_namespace="ns",queue="q"} 10000.0' in before
    assert 'task_scheduling_latency_milliseconds_count{stage="Assumed"} 1.0' in before
    assert 'job_share{job_id="g",job_ns="ns"} 0.5' in before
    assert 'job_name="g"' not in shown(metrics)
    assert 'job_id="g"' not in shown(metrics)


def test_counters_only_rise():
    metrics = SchedulerMetrics()
    decisions = Decisions(counters={("eviction_transactions_total", ("preempt",)): 2})

    metrics.report(decisions, snapshot(), NOW)
    metrics.report(decisions, snapshot(), NOW)

    assert 'volcano_eviction_transactions_total{action="preempt"} 4.0' in shown(metrics)


def test_an_estimate_that_is_doubled_is_counted_once_for_each_doubling():
    metrics = SchedulerMetrics()

    for times in (1, 1, 3):
        metrics.report(Decisions(estimate_extensions={"ns/g": times}), snapshot(), NOW)

    assert 'volcano_estimate_extensions_total{queue="q"} 3.0' in shown(metrics)
