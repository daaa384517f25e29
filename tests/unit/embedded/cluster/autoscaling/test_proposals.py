"""How many replicas a metric asks for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from volcano.embedded.cluster.autoscaling.proposals import MetricUnavailable, propose
from volcano.embedded.cluster.autoscaling.usage import MeasuredPod, ScaledPod, read_scaled_pod, read_usage

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LONG_AGO = NOW - timedelta(hours=1)


def a_pod(number: int, request: int = 1000, **more: Any) -> ScaledPod:
    settings = {"phase": "Running", "is_ready": True, "ready_since": LONG_AGO, "started_at": LONG_AGO, **more}
    return ScaledPod(f"p{number}", requests={"main": {"cpu": request, "memory": request}}, **settings)


def used(*amounts: int, resource: str = "cpu") -> dict[str, MeasuredPod]:
    return {f"p{number}": MeasuredPod({"main": {resource: amount}}, NOW) for number, amount in enumerate(amounts)}


def cpu(utilization: int | None = None, value: str | None = None, name: str = "cpu") -> Any:
    target = {"averageUtilization": utilization} if value is None else {"averageValue": value}
    return {"type": "Resource", "resource": {"name": name, "target": target}}


def replicas(metric: Any, pods: list[ScaledPod], usage: dict[str, MeasuredPod]) -> int:
    return propose(metric, pods, usage, len(pods), NOW).replicas


@pytest.mark.parametrize(
    ("amounts", "wanted"),
    [
        ((500, 500), 2),  # on target
        ((549, 549), 2),  # 54 %: within a tenth
        ((560, 560), 3),  # 56 %: one more
        ((1000, 1000), 4),
        ((100, 100), 1),
    ],
)
def test_utilization_above_or_below_the_target_scales_by_its_ratio(amounts, wanted):
    assert replicas(cpu(50), [a_pod(0), a_pod(1)], used(*amounts)) == wanted


def test_an_average_value_needs_no_requests():
    pods = [ScaledPod("p0", "Running", {"main": {}}, False, True, LONG_AGO, LONG_AGO)]
    proposal = propose(cpu(value="250m"), pods, used(1000), 1, NOW)
    assert proposal.replicas == 4
    assert proposal.current == {"type": "Resource", "resource": {"name": "cpu", "current": {"averageValue": "1"}}}


def test_memory_counts_in_bytes_and_without_regard_to_readiness():
    pods = [a_pod(0, is_ready=False), a_pod(1)]
    assert replicas(cpu(50, name="memory"), pods, used(1000, 1000, resource="memory")) == 4


def test_pods_without_metrics_keep_a_workload_from_shrinking_too_far():
    pods = [a_pod(number) for number in range(4)]
    assert replicas(cpu(50), pods, used(100, 100)) == 4  # the missing two may use all they request: 55 %
    assert replicas(cpu(90), pods, used(100, 100)) == 3  # 55 % of what is requested is below 90 %


def test_pods_without_metrics_damp_the_growth():
    pods = [a_pod(number) for number in range(4)]
    assert replicas(cpu(50), pods, used(1000, 1000)) == 4  # with the missing two at nothing it is 50 %


def test_starting_pods_do_not_count_as_load():
    starting = {"is_ready": False, "ready_since": NOW, "started_at": NOW}
    pods = [a_pod(0), a_pod(1, **starting), a_pod(2, phase="Pending", is_ready=None)]
    assert replicas(cpu(50), pods, used(900, 4000)) == 3  # 900 of three pods' 3000 is below the target


def test_pods_that_end_are_left_out():
    pods = [a_pod(0), a_pod(1, is_deleting=True), a_pod(2, phase="Failed")]
    assert propose(cpu(50), pods, used(1000, 9000, 9000), 1, NOW).replicas == 2


@pytest.mark.parametrize(
    ("metric", "pods", "usage", "message"),
    [
        (cpu(50), [ScaledPod("p0", "Running", {"main": {}}, False, True, LONG_AGO, LONG_AGO)], used(1),
         "missing request for cpu in container main of Pod p0"),
        (cpu(50), [a_pod(0)], {}, "no metrics returned from resource metrics API"),
        (cpu(50), [a_pod(0, phase="Pending")], used(1), "pods might be unready"),
        ({"type": "External", "external": {}}, [a_pod(0)], used(1), "not served here"),
    ],
)  # fmt: skip
def test_what_a_metric_lacks_is_said(metric, pods, usage, message):
    with pytest.raises(MetricUnavailable, match=message):
        propose(metric, pods, usage, 1, NOW)


def test_pods_and_metrics_are_read_from_the_api():
    pod = read_scaled_pod(
        {
            "metadata": {"name": "p0"},
            "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "250m", "memory": "1Ki"}}}]},
            "status": {
                "phase": "Running",
                "startTime": "2026-01-01T11:00:00Z",
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T11:00:05Z"}],
            },
        }
    )
    usage = read_usage(
        {"timestamp": "2026-01-01T12:00:00Z", "window": "10s", "containers": [{"name": "main", "usage": {"cpu": "1n"}}]}
    )

    assert pod.requests == {"main": {"cpu": 250, "memory": 1_024_000}}
    assert (pod.is_ready, pod.started_at) == (True, LONG_AGO)
    assert (usage.at, usage.window, usage.containers) == (NOW, timedelta(seconds=10), {"main": {"cpu": 1}})
