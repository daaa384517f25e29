"""Volcano's metric names, and gauges that vanish with what they measure."""

from __future__ import annotations

import pytest
from prometheus_client import generate_latest

from volcano.machinery.metric_families import exponential_buckets
from volcano.scheduler.service.metrics import Metrics


def shown(metrics: Metrics) -> str:
    return generate_latest(metrics.registry).decode()


def test_names_are_volcanos():
    metrics = Metrics()
    metrics.set("queue_share", 0.5, "q")
    metrics.count("total_preemption_attempts", 2)
    metrics.count("eviction_transactions_total", 1, "preempt")
    metrics.observe("action_scheduling_latency_milliseconds", 3.0, "allocate")

    text = shown(metrics)

    assert 'volcano_queue_share{queue_name="q"} 0.5' in text
    assert "volcano_total_preemption_attempts 2.0" in text
    assert 'volcano_eviction_transactions_total{action="preempt"} 1.0' in text
    assert 'volcano_action_scheduling_latency_milliseconds_count{action="allocate"} 1.0' in text


def test_gauges_of_a_queue_go_with_it_and_resources_it_lost_become_zero():
    metrics = Metrics()
    scalar = ("queue_allocated_scalar_resources", ("a", "gpu"))
    metrics.set_queues({("queue_share", ("a",)): 1.0, ("queue_share", ("b",)): 1.0, scalar: 4.0}, ["a", "b"])

    metrics.set_queues({("queue_share", ("a",)): 1.0}, ["a"])

    text = shown(metrics)
    assert 'queue_share{queue_name="b"}' not in text
    assert 'queue_allocated_scalar_resources{queue_name="a",resource="gpu"} 0.0' in text


def test_gauges_of_a_job_go_with_it():
    metrics = Metrics()
    metrics.set("job_share", 1.0, "ns", "j")
    metrics.set("e2e_job_scheduling_duration", 1.0, "j", "q", "ns")
    metrics.set("e2e_job_scheduling_duration", 1.0, "k", "q", "ns")

    metrics.forget_jobs([("ns", "j")])

    text = shown(metrics)
    assert 'job_id="j"' not in text
    assert 'job_name="j"' not in text
    assert 'job_name="k"' in text


def test_a_gauge_nobody_knows_is_no_error():
    Metrics().set("something_new", 1.0)


def test_buckets_run_from_first_to_last():
    assert exponential_buckets(1, 1000, 4) == pytest.approx((1, 10, 100, 1000))
