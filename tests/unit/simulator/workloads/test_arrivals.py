"""Generated arrivals and run times."""

from __future__ import annotations

from statistics import mean, median
from typing import Any

import pytest

from volcano.simulator.draws import Draws
from volcano.simulator.fields import Fields
from volcano.simulator.workloads.arrivals import arrival_times, draw_seconds


def arrivals(**parts: Any) -> list[float]:
    return arrival_times(Fields(parts, "arrivals"), Draws(3))


def test_poisson_arrivals_have_the_mean_asked_for() -> None:
    times = arrivals(poisson={"every": "10s"}, count=5000)

    assert times == sorted(times)
    assert times[-1] / 5000 == pytest.approx(10.0, rel=0.05)


def test_bursts_arrive_together() -> None:
    assert arrivals(bursts={"size": 2, "every": "1m"}, count=5) == [0.0, 0.0, 60.0, 60.0, 120.0]


def test_more_jobs_arrive_by_day_than_by_night() -> None:
    times = arrivals(daily={"perDay": 2000, "peak": "12h", "depth": 1}, until="4d")

    by_day = sum(6 * 3600 <= moment % 86400 < 18 * 3600 for moment in times)
    assert len(times) == pytest.approx(8000, rel=0.05)
    assert by_day / len(times) == pytest.approx(0.5 + 1 / 3.14159, abs=0.02)


def test_run_times_follow_their_distribution_within_bounds() -> None:
    chance = Draws(1)
    stated: dict[str, Any] = {"logNormal": {"median": "10m", "sigma": 1.0}, "max": "2h"}

    drawn = [draw_seconds(stated, "runTime", chance) for _ in range(4000)]

    assert median(drawn) == pytest.approx(600.0, rel=0.06)
    assert max(drawn) <= 7200.0
    assert mean([draw_seconds({"exponential": {"mean": 5}}, "x", chance) for _ in range(4000)]) == pytest.approx(
        5, rel=0.06
    )
