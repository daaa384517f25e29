"""CronJobs where clocks are changed: each missed and each doubled hour, in several zones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from volcano.api.batch import Job
from volcano.api.cron.due import most_recent
from volcano.api.cron.schedule import load_zone, parse_schedule
from volcano.controllers.cronjob import CronJobController
from volcano.testing.pure_world import PureWorld

TABLE = [
    # zone, schedule, day (UTC noon before the change), hours to watch, expected local times with offset
    pytest.param(
        "Europe/Berlin", "30 2 * * *", datetime(2026, 3, 28, 12, tzinfo=UTC), 48,
        ["2026-03-30T02:30:00+02:00"], id="Berlin, spring: 02:30 does not exist on the 29th",
    ),
    pytest.param(
        "Europe/Berlin", "30 3 * * *", datetime(2026, 3, 28, 12, tzinfo=UTC), 48,
        ["2026-03-29T03:30:00+02:00", "2026-03-30T03:30:00+02:00"], id="Berlin, spring: the hour after is not doubled",
    ),
    pytest.param(
        "Europe/Berlin", "30 1 * * *", datetime(2026, 3, 28, 12, tzinfo=UTC), 24,
        ["2026-03-29T01:30:00+01:00"], id="Berlin, spring: the hour before",
    ),
    pytest.param(
        "Europe/Berlin", "0 * * * *", datetime(2026, 3, 28, 23, 30, tzinfo=UTC), 4,
        ["2026-03-29T01:00:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-29T04:00:00+02:00", "2026-03-29T05:00:00+02:00"],
        id="Berlin, spring: hourly jumps over two",
    ),
    pytest.param(
        "Europe/Berlin", "30 2 * * *", datetime(2026, 10, 24, 12, tzinfo=UTC), 48,
        ["2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00", "2026-10-26T02:30:00+01:00"],
        id="Berlin, autumn: 02:30 comes twice",
    ),
    pytest.param(
        "Europe/Berlin", "0 4 * * *", datetime(2026, 10, 24, 12, tzinfo=UTC), 24,
        ["2026-10-25T04:00:00+01:00"], id="Berlin, autumn: the hours after come once",
    ),
    pytest.param(
        "America/New_York", "30 2 * * *", datetime(2026, 3, 7, 12, tzinfo=UTC), 48,
        ["2026-03-09T02:30:00-04:00"], id="New York, spring",
    ),
    pytest.param(
        "America/New_York", "30 1 * * *", datetime(2026, 10, 31, 12, tzinfo=UTC), 48,
        ["2026-11-01T01:30:00-04:00", "2026-11-01T01:30:00-05:00", "2026-11-02T01:30:00-05:00"], id="New York, autumn",
    ),
    pytest.param(
        "Australia/Lord_Howe", "15 2 * * *", datetime(2026, 10, 3, 12, tzinfo=UTC), 36,
        ["2026-10-05T02:15:00+11:00"], id="Lord Howe, spring: half an hour is missing",
    ),
    pytest.param(
        "Australia/Lord_Howe", "45 1 * * *", datetime(2026, 4, 4, 2, tzinfo=UTC), 36,
        ["2026-04-05T01:45:00+11:00", "2026-04-05T01:45:00+10:30"], id="Lord Howe, autumn: half an hour comes twice",
    ),
    pytest.param(
        "America/Havana", "0 0 * * *", datetime(2026, 3, 7, 12, tzinfo=UTC), 48,
        ["2026-03-09T00:00:00-04:00"], id="Havana, spring: midnight does not exist",
    ),
    pytest.param(
        "Asia/Tokyo", "30 2 * * *", datetime(2026, 3, 28, 12, tzinfo=UTC), 48,
        ["2026-03-29T02:30:00+09:00", "2026-03-30T02:30:00+09:00"], id="Tokyo changes no clocks",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("zone", "schedule", "start", "hours", "expected"), TABLE)
def test_missed_and_doubled_hours(zone: str, schedule: str, start: datetime, hours: int, expected: list[str]):
    cron = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "CronJob",
        "metadata": {"name": "c", "creationTimestamp": start.isoformat()},
        "spec": {"schedule": schedule, "timeZone": zone, "jobTemplate": {"spec": {}}},
    }
    world = PureWorld(cron, controllers=[CronJobController()], now=start)

    world.advance(timedelta(hours=hours))

    stamps = [job.annotations["volcano.sh/cronjob-scheduled-timestamp"] for job in world.all(Job)]
    assert stamps == expected


@pytest.mark.parametrize(("zone", "schedule", "start", "hours", "expected"), TABLE)
def test_catching_up_after_a_change_of_clocks_finds_the_last_time(zone, schedule, start, hours, expected):
    zone_ = load_zone(zone)
    assert zone_ is not None

    due = most_recent(parse_schedule(schedule, zone_), start, start + timedelta(hours=hours))

    assert due is not None
    assert due.time == datetime.fromisoformat(expected[-1])


@settings(max_examples=150, deadline=None)
@given(
    schedule=st.sampled_from(
        ["* * * * *", "*/7 * * * *", "0 3 * * *", "0,1 0 1 1 *", "30 2 * * 1-5", "* * 1 * *", "59 23 28-31 * *"]
    ),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "America/Havana", "Australia/Lord_Howe"]),
    start=st.datetimes(datetime(2026, 1, 1), datetime(2026, 12, 31)),
    elapsed=st.timedeltas(timedelta(0), timedelta(days=3)),
)
def test_the_most_recent_time_is_the_last_of_all_times_in_between(schedule, zone, start, elapsed):
    zone_ = load_zone(zone)
    assert zone_ is not None
    times = parse_schedule(schedule, zone_)
    after = start.replace(tzinfo=UTC)
    now = after + elapsed
    every: list[datetime] = []
    moment = times.next(after)
    while moment is not None and moment <= now:
        every.append(moment)
        moment = times.next(moment)

    due = most_recent(times, after, now)

    assert (due.time if due else None) == (every[-1] if every else None)
    assert bool(due and due.missed_many) is (len(every) > 100)
