"""Cron schedules, compared with robfig/cron's recorded answers (tools/oracles)."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from volcano.api.cron.schedule import CronError, load_zone, parse_schedule

CASES = json.loads((Path(__file__).parents[1] / "data/cron_times.json").read_text())
VALID = [case for case in CASES if "times" in case["answer"]]
INVALID = [case for case in CASES if "error" in case["answer"]]
ZONES = sorted({case["question"]["zone"] for case in VALID})


@pytest.mark.parametrize("zone", ZONES)
def test_times_are_those_of_robfig_cron(zone):
    different = []
    for case in VALID:
        question = case["question"]
        if question["zone"] == zone and not _robfig_misses(question):
            times = _times(question["spec"], zone, question["from"], question["count"])
            if times != [datetime.fromisoformat(text) for text in case["answer"]["times"]]:
                different.append((question, [str(time) for time in times], case["answer"]))

    assert different == []


def test_a_day_that_begins_at_one_still_counts_as_that_day():
    beirut = ZoneInfo("Asia/Beirut")

    due = parse_schedule("* * * * 0", beirut).next(datetime(2026, 3, 28, 12, tzinfo=UTC))

    assert due.astimezone(beirut).isoformat() == "2026-03-29T01:00:00+03:00"


def test_clocks_that_change_by_half_an_hour_lose_no_run():
    lord_howe = ZoneInfo("Australia/Lord_Howe")

    due = parse_schedule("@daily", lord_howe).next(datetime(2026, 4, 4, 13, tzinfo=UTC))

    assert due.astimezone(lord_howe).isoformat() == "2026-04-06T00:00:00+10:30"


@pytest.mark.parametrize("case", INVALID, ids=lambda case: case["question"]["spec"] or "empty")
def test_what_robfig_cron_refuses_is_refused_in_its_words(case):
    with pytest.raises(CronError) as refusal:
        parse_schedule(case["question"]["spec"])

    assert str(refusal.value) == case["answer"]["error"]


def test_a_zone_prefix_without_a_schedule_is_refused():
    for text in ("TZ=UTC", "CRON_TZ=Europe/Berlin", "TZ=UTC ", "TZ= "):
        with pytest.raises(CronError):
            parse_schedule(text)


def test_a_skipped_hour_never_comes_and_a_doubled_one_comes_twice():
    berlin = ZoneInfo("Europe/Berlin")
    schedule = parse_schedule("30 2 * * *", berlin)

    spring = schedule.next(datetime(2026, 3, 28, 12, tzinfo=berlin))
    first = schedule.next(datetime(2026, 10, 24, 12, tzinfo=berlin))
    second = schedule.next(first)

    assert spring == datetime(2026, 3, 30, 0, 30, tzinfo=UTC)
    assert first == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert second == datetime(2026, 10, 25, 1, 30, tzinfo=UTC)


def test_a_schedule_that_never_comes_has_no_next_time():
    assert parse_schedule("0 0 30 2 *").next(datetime(2026, 1, 1, tzinfo=UTC)) is None
    assert parse_schedule(", * * * *").next(datetime(2026, 1, 1, tzinfo=UTC)) is None


def test_the_end_of_time_is_no_error():
    assert parse_schedule("* * * * *").next(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)) is None
    assert parse_schedule("@every 1h").next(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)) is None


def test_an_overlong_text_is_refused():
    with pytest.raises(CronError, match="over the limit"):
        parse_schedule("1," * 1000 + "1 * * * *")


@pytest.mark.parametrize("name", ["../etc/passwd", "/etc/passwd", "America", "Nowhere/Land", "a\0b", "Ümlaut", "."])
def test_names_that_are_no_zones_are_none(name):
    assert load_zone(name) is None


fields = st.tuples(
    *(
        st.lists(
            st.one_of(st.integers(low, high).map(str), st.sampled_from(["*", "*/5", f"{low}-{high}"])),
            min_size=1,
            max_size=3,
        )
        for low, high in ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
    )
).map(lambda parts: " ".join(",".join(part) for part in parts))
moments = st.datetimes(datetime(2020, 1, 1), datetime(2035, 1, 1), timezones=st.just(UTC))


@settings(max_examples=150, deadline=None)
@given(fields, moments, st.sampled_from(ZONES))
def test_the_next_time_matches_and_no_matching_minute_lies_before_it(text, after, zone):
    schedule = parse_schedule(text, ZoneInfo(zone))

    found = schedule.next(after)

    limit = min(found, after + timedelta(hours=30)) if found else after + timedelta(hours=30)
    minute = after.replace(second=0, microsecond=0) + timedelta(minutes=1)
    while minute < limit:
        assert not _matches(schedule, minute.astimezone(ZoneInfo(zone)))
        minute += timedelta(minutes=1)
    if found is not None:
        assert found > after
        assert _matches(schedule, found.astimezone(schedule.zone))


@given(st.text(alphabet="0123456789*/-,? @everyTZ=monjan", max_size=30))
def test_no_text_raises_anything_but_a_cron_error(text):
    try:
        parse_schedule(text).next(datetime(2026, 1, 1, tzinfo=UTC))
    except CronError:
        pass


def _robfig_misses(question):
    """Where it loses a run: clocks that change by half an hour, and a weekday that begins at one o'clock."""
    skipped_midnight = question["zone"] == "Asia/Beirut" and question["spec"] == "* * * * */7"
    return question["zone"] == "Australia/Lord_Howe" or skipped_midnight


def _matches(schedule, local):
    day, weekday = local.day in schedule.days, local.isoweekday() % 7 in schedule.weekdays
    on_day = (day and weekday) if schedule.any_day or schedule.any_weekday else (day or weekday)
    return (
        local.minute in schedule.minutes and local.hour in schedule.hours and local.month in schedule.months and on_day
    )


def _times(text, zone, start, count):
    schedule, moment, times = parse_schedule(text, load_zone(zone)), datetime.fromisoformat(start), []
    for _ in range(count):
        moment = schedule.next(moment)
        if moment is None:
            break
        times.append(moment)
    return times
