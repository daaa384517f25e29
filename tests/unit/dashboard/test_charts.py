"""Lines over time: long ones are drawn with few points, and keep their ends and their peaks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from volcano.dashboard.charts import MAX_POINTS, plot, thinned

T0 = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_long_line_has_few_points_and_keeps_its_peaks():
    points = [(T0 + timedelta(minutes=number), float(number % 7)) for number in range(100_000)]
    points[54_321] = (points[54_321][0], 99.0)

    found = thinned(points)

    assert len(found) <= MAX_POINTS
    assert (found[0], found[-1]) == (points[0], points[-1])
    assert points[54_321] in found
    assert list(found) == sorted(found)


def test_a_short_line_is_drawn_as_it_is():
    points = [(T0, 1.0), (T0 + timedelta(hours=1), 2.0)]

    drawn = plot({"a": points}, T0, points[-1][0])

    assert thinned(points) == points
    assert drawn is not None and drawn.lines[0].path.count("L") == 1
