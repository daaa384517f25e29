"""A whole system on virtual time: small jobs keep coming, and one gang needs the whole cluster."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import msgspec

from tests.stories.builders import a_job, a_task
from tests.system.explain.asking import explained
from volcano.api.jobs.expected_starts import ExpectedStarts
from volcano.api.jobs.reservations import RESERVATION_ANNOTATION, decode_reservation
from volcano.api.scheduling import PodGroup
from volcano.api.scheme import resource_type
from volcano.app.system import SystemSettings
from volcano.cli.expected_starts import PATH, described
from volcano.cli.explain import rendered
from volcano.machinery.transport import Request
from volcano.testing.system import VirtualSystem, on_virtual_time

ONE_CPU = {"cpu": "1", "memory": "8Gi", "pods": "10"}
WITH_EASY = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: easy
  - name: gang
    enableJobOrder: false
  - name: predicates
"""
WITHOUT = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: predicates
"""
SMALL_JOBS = 12


async def a_stream_and_a_gang(system: VirtualSystem) -> None:
    """Two small jobs at once, each of a minute, so that one node is always busy; the gang comes after the first."""
    for number in range(SMALL_JOBS):
        estimate = {"runningEstimate": "60s"}
        await system.apply(a_job(f"small-{number:02d}", a_task(replicas=1, lasts="60s"), **estimate))
        if number == 1:
            await system.until(lambda: system.phase("small-01") == "Running")
            await system.apply(a_job("whole", a_task(replicas=2, lasts="60s"), runningEstimate="60s"))
        await system.clock.sleep(timedelta(seconds=30))


def configured(folder: Path, text: str) -> SystemSettings:
    file = folder / "volcano-scheduler.conf"
    file.write_text(text)
    return SystemSettings(scheduler_conf=str(file))


def test_with_easy_the_gang_starts_when_the_running_jobs_end(tmp_path: Path) -> None:
    @on_virtual_time(nodes=2, capacity=ONE_CPU, settings=configured(tmp_path, WITH_EASY))
    async def story(system: VirtualSystem) -> None:
        await a_stream_and_a_gang(system)
        await system.until(lambda: system.phase("whole") == "Completed")

        later = [f"small-{number:02d}" for number in range(4, SMALL_JOBS)]
        assert any(system.phase(name) != "Completed" for name in later), "the gang did not wait for all small jobs"


def test_without_easy_the_gang_starves(tmp_path: Path) -> None:
    @on_virtual_time(nodes=2, capacity=ONE_CPU, settings=configured(tmp_path, WITHOUT))
    async def story(system: VirtualSystem) -> None:
        await a_stream_and_a_gang(system)

        assert system.phase("whole") == "Pending"
        assert system.phase(f"small-{SMALL_JOBS - 3:02d}") in ("Running", "Completed")


def test_the_promised_start_is_on_the_podgroup_and_the_scheduler_says_when(tmp_path: Path) -> None:
    @on_virtual_time(nodes=2, capacity=ONE_CPU, settings=configured(tmp_path, WITH_EASY))
    async def story(system: VirtualSystem) -> None:
        await system.apply(a_job("first", a_task(replicas=1, lasts="60s"), runningEstimate="60s"))
        await system.until(lambda: system.phase("first") == "Running")
        begun = system.clock.now()
        await system.apply(a_job("whole", a_task(replicas=2, lasts="60s"), runningEstimate="60s"))
        await system.until(
            lambda: any(RESERVATION_ANNOTATION in group.annotations for group in system.mirror.all(PodGroup))
        )

        said = msgspec.json.decode((await system.client.raw(Request("GET", PATH))).body, type=ExpectedStarts)
        listed = await system.client.list_json(resource_type(PodGroup), "default")
        promised = [decode_reservation(group["metadata"].get("annotations") or {}) for group in listed["items"]]

        (reservation,) = [each for each in promised if each is not None]
        expected = said.jobs["default/whole"]
        assert abs(reservation.start - (begun + timedelta(seconds=60))) < timedelta(seconds=3)
        assert reservation.node_count == 2
        assert expected.start is not None
        assert abs(expected.start - reservation.start) < timedelta(seconds=3)
        assert expected.after == ("default/first",)
        assert "after default/first ends" in described("whole", "Pending", expected)
        shown = rendered(await explained(system, "whole"), expected)
        assert "  expected to start at 2026-" in shown
        assert ", after default/first ends" in shown
        await system.until(lambda: system.phase("whole") == "Running")
        assert abs(system.clock.now() - reservation.start) < timedelta(seconds=5)
