"""What containers use: counters of process trees, rates between two readings, and the two pages."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from volcano.embedded.agent.streams.node_usage import (
    ContainerUsage,
    PodUsage,
    UsageMeter,
    cadvisor_page,
    read_processes,
    summary,
)
from volcano.machinery.clock import SystemClock

MEGABYTES = 10**6
SPIN = "import sys; held = bytearray(30_000_000); print('on', flush=True)\nwhile True: pass"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
PODS = [
    PodUsage("ns", "p", "uid-p", "n", {"a": ContainerUsage(500, 2 * 10**9, 1000), "b": ContainerUsage(1, 10**9, 24)})
]


@pytest.fixture
def busy() -> Iterator[int]:
    """A process that computes without end in a child of its own."""
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SPIN!r}])"
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        os.killpg(process.pid, signal.SIGKILL)


def test_the_use_of_a_process_is_that_of_its_children_too(busy: int):
    _, memory = read_processes(busy)

    assert memory > 30 * MEGABYTES


def test_a_process_that_is_gone_uses_nothing():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()

    assert read_processes(process.pid) == (0, 0)


async def test_cpu_is_a_rate_between_two_readings(busy: int):
    meter = UsageMeter(SystemClock())

    first = await meter.measure({"uid/c": busy})
    second = await meter.measure({"uid/c": busy})

    assert first["uid/c"].cpu_nanocores > 0
    assert second["uid/c"].cpu_nanoseconds >= first["uid/c"].cpu_nanoseconds


async def test_without_containers_nothing_is_waited_for():
    assert await UsageMeter(SystemClock()).measure({}) == {}


def test_a_summary_adds_containers_up():
    document = summary("n", PODS, NOW)

    (pod,) = document["pods"]
    assert pod["podRef"] == {"name": "p", "namespace": "ns", "uid": "uid-p"}
    assert [c["name"] for c in pod["containers"]] == ["a", "b"]
    assert (pod["cpu"]["usageNanoCores"], pod["memory"]["workingSetBytes"]) == (501, 1024)
    assert document["node"]["cpu"]["usageCoreNanoSeconds"] == 3 * 10**9


def test_the_figures_of_containers_have_the_names_of_cadvisor():
    page = cadvisor_page(PODS).decode()

    assert 'container_cpu_usage_seconds_total{container="a",namespace="ns",pod="p"} 2.0' in page
    assert 'container_memory_working_set_bytes{container="b",namespace="ns",pod="p"} 24.0' in page
