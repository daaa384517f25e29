"""What `volcano bench` measures, on a whole system under virtual time."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import timedelta

import pytest

from volcano.api.batch import Job
from volcano.api.core import Namespace, Pod
from volcano.api.errors import NotFound
from volcano.api.meta import Key
from volcano.app.bench_measure import (
    BenchPod,
    BenchRun,
    BenchShape,
    Unmeasured,
    bench_namespace,
    parse_shape,
    writes_in,
)
from volcano.testing.system import VirtualSystem, on_virtual_time

SMALL = BenchPod(image="busybox", cpu="10m", memory="16Mi", queue="default")
TOO_LARGE = BenchPod(image="busybox", cpu="1000", memory="16Mi", queue="default")


def quiet(done: int, total: int) -> None:
    assert done <= total


async def until_gone(system: VirtualSystem, namespace: str) -> None:
    async with asyncio.timeout(600):
        with contextlib.suppress(NotFound):
            while await system.client.get(Namespace, Key("", namespace)):
                await system.clock.sleep(timedelta(seconds=1))


def test_a_shape_is_jobs_times_pods():
    assert parse_shape(" 100x10 ") == BenchShape(100, 10)
    assert str(parse_shape("1x20")) == "1x20"


@pytest.mark.parametrize("text", ["", "10", "0x5", "5x0", "-1x2", "1x2x3", "10 x 10", "9999999x1"])
def test_another_text_is_no_shape(text):
    with pytest.raises(ValueError, match="is no shape; write jobs x pods"):
        parse_shape(text)


def test_a_shape_is_bounded():
    with pytest.raises(ValueError, match="has 100001 pods; at most 100000"):
        parse_shape("100001x1")


def test_writes_are_counted_without_reads_and_heartbeats():
    page = "\n".join((
        'apiserver_request_total{verb="POST",resource="pods",subresource="",code="201"} 7',
        'apiserver_request_total{verb="POST",resource="pods",subresource="binding",code="201"} 5.0',
        'apiserver_request_total{verb="LIST",resource="pods",subresource="",code="200"} 100',
        'apiserver_request_total{verb="PUT",resource="leases",subresource="",code="200"} 100',
        'apiserver_request_total{verb="PATCH",resource="nodes",subresource="status",code="200"} 100',
        'apiserver_request_total{verb="GET",resource="",subresource="",code="200"} 100',
    ))  # fmt: skip
    assert writes_in(page) == 12
    assert writes_in("process_cpu_seconds_total 4") is None


def test_gangs_are_measured_and_everything_is_removed():
    @on_virtual_time
    async def story(system):
        async with bench_namespace(system.client, "bench") as namespace:
            run = BenchRun(system.client, system.clock, namespace, SMALL, 60.0)
            first = await run.measure(BenchShape(3, 2), quiet)
            again = await run.measure(BenchShape(1, 8), quiet)
        assert (first.shape, first.pods, again.shape, again.pods) == ("3x2", 6, "1x8", 8)
        assert 0 <= first.create_to_bind_p50_seconds <= first.create_to_bind_p99_seconds <= first.bound_seconds
        assert first.bound_seconds <= first.started_seconds
        assert first.writes_per_pod is not None and 3 <= first.writes_per_pod <= 12
        await system.until(lambda: not system.mirror.all(Pod) and not system.mirror.all(Job))
        await until_gone(system, "bench")


def test_what_does_not_fit_ends_with_its_reason_and_is_removed():
    @on_virtual_time
    async def story(system):
        async with bench_namespace(system.client, "bench") as namespace:
            run = BenchRun(system.client, system.clock, namespace, TOO_LARGE, 30.0)
            with pytest.raises(Unmeasured, match=r"after 30 s that all 2 pods have started; bench-1x2-0 waits: .*cpu"):
                await run.measure(BenchShape(1, 2), quiet)
        await system.until(lambda: not system.mirror.all(Pod) and not system.mirror.all(Job))
