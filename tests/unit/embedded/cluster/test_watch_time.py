"""Since when a controller has run without a gap."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from volcano.embedded.cluster.watch_time import LOOK_INTERVAL, MAX_GAP_BETWEEN_LOOKS, WatchTime

START = datetime(2026, 1, 1, tzinfo=UTC)


def test_regular_looks_are_one_watch():
    watch = WatchTime()

    assert {watch.look(START + LOOK_INTERVAL * number) for number in range(100)} == {START}


def test_a_gap_begins_a_new_watch():
    watch = WatchTime()
    watch.look(START)
    assert watch.look(START + MAX_GAP_BETWEEN_LOOKS) == START

    late = START + MAX_GAP_BETWEEN_LOOKS * 2 + timedelta(microseconds=1)
    assert watch.look(late) == late


def test_a_clock_that_is_set_back_begins_a_new_watch():
    watch = WatchTime()
    watch.look(START)

    assert watch.look(START - timedelta(hours=1)) == START - timedelta(hours=1)
