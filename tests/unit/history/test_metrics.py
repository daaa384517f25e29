"""What measured pods requested and used, as Prometheus reads it."""

from __future__ import annotations

from datetime import timedelta

from prometheus_client import CollectorRegistry, generate_latest

from volcano.api.meta import Key
from volcano.api.quantity import parse_quantity
from volcano.history.batch import Measured
from volcano.history.fold import ObservedPod
from volcano.history.measuring import MAX_NAMESPACES, OTHERS, UseByNamespace
from volcano.history.metrics import UseCollector

MINUTE = timedelta(minutes=1) // timedelta(milliseconds=1)


def a_pod(namespace: str = "team-a") -> ObservedPod:
    requests = {"cpu": parse_quantity("2"), "memory": parse_quantity("1Gi")}
    return ObservedPod(True, Key(namespace, "p"), "n1", requests)


class Recorded:
    """The part of a recorder that is scraped."""

    def __init__(self) -> None:
        self.use = UseByNamespace()


def test_what_pods_used_stands_beside_what_they_requested():
    recorder, registry = Recorded(), CollectorRegistry()
    registry.register(UseCollector(recorder))
    for _ in range(2):
        recorder.use.add(Measured("uid", MINUTE, 30_000, 60 * 512), a_pod())

    text = generate_latest(registry).decode()

    assert 'volcano_measured_requested_cpu_seconds_total{namespace="team-a"} 240.0' in text
    assert 'volcano_measured_used_cpu_seconds_total{namespace="team-a"} 60.0' in text
    assert 'volcano_measured_requested_memory_byte_seconds_total{namespace="team-a"} 1.2884901888e+11' in text
    assert 'volcano_measured_used_memory_byte_seconds_total{namespace="team-a"} 6.442450944e+10' in text


def test_namespaces_beyond_the_limit_count_together():
    use = UseByNamespace()
    for number in range(MAX_NAMESPACES + 5):
        use.add(Measured("uid", MINUTE, 1_000, 0), a_pod(f"team-{number}"))

    assert len(use.sums) == MAX_NAMESPACES + 1
    assert use.sums[OTHERS].used_cpu == 5.0
