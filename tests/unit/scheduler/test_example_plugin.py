"""The example of docs/writing-a-plugin.md."""

from __future__ import annotations

import importlib.util
from datetime import UTC, datetime
from pathlib import Path

import pytest

from volcano.scheduler.framework.plugin import Plugin
from volcano.testing.clusters import Cluster, cluster, gang, share

ROOT = Path(__file__).parents[3]


def night_shift() -> type[Plugin]:
    spec = importlib.util.spec_from_file_location("night_shift", ROOT / "examples/plugins/night_shift.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.NightShift  # type: ignore[no-any-return]


NightShift = night_shift()


def test_jobs_wait_for_the_night() -> None:
    given = cluster(
        nodes={"n1": "cpu=4"},
        jobs={"train": gang(2, queue="nights", min_resources="cpu=2")},
        queues={"nights": share(annotations={"example.com/night-shift": "true"})},
        now=datetime(2026, 1, 1, 12, tzinfo=UTC),
    )

    outcome = given.schedule("enqueue", "gang, night-shift", knowing=[NightShift])

    assert outcome.phases == {"train": "Pending"}
    assert outcome.why["train"] == "waits for the night shift at 20:00"


def at(hour: int) -> Cluster:
    return cluster(
        nodes={"n1": "cpu=4"},
        jobs={"train": gang(2, queue="nights", min_resources="cpu=2"), "serve": gang(1, min_resources="cpu=1")},
        queues={"nights": share(annotations={"example.com/night-shift": "true"})},
        now=datetime(2026, 1, 1, hour, tzinfo=UTC),
    )


def test_jobs_of_other_queues_do_not_wait() -> None:
    outcome = at(12).schedule("enqueue", "gang, night-shift", knowing=[NightShift])

    assert outcome.phases == {"serve": "Inqueue", "train": "Pending"}
    assert outcome.why["train"] == "waits for the night shift at 20:00"


@pytest.mark.parametrize("hour", [21, 3])
def test_at_night_they_are_let_in(hour: int) -> None:
    outcome = at(hour).schedule("enqueue", "gang, night-shift", knowing=[NightShift])

    assert outcome.phases == {"serve": "Inqueue", "train": "Inqueue"}
