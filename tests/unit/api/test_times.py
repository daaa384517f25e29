"""Times as text: what Kubernetes writes, and what is read back."""

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from volcano.api.times import (
    MAX_TIME_CHARACTERS,
    is_recent,
    micro_timestamp,
    parse_timestamp,
    timestamp,
    timestamp_or_none,
    zoned_timestamp,
)

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
TOKYO = ZoneInfo("Asia/Tokyo")


@pytest.mark.parametrize(
    ("moment", "whole", "micro"),
    [
        pytest.param(NOON, "2026-01-31T12:00:00Z", "2026-01-31T12:00:00.000000Z", id="utc"),
        pytest.param(
            NOON.astimezone(TOKYO), "2026-01-31T12:00:00Z", "2026-01-31T12:00:00.000000Z", id="another zone becomes UTC"
        ),
        pytest.param(
            NOON.replace(microsecond=999_999),
            "2026-01-31T12:00:00Z",
            "2026-01-31T12:00:00.999999Z",
            id="a fraction is cut off, not rounded",
        ),
        pytest.param(
            datetime(1, 1, 1, tzinfo=UTC), "0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z", id="four-digit years"
        ),
        pytest.param(
            datetime(1969, 12, 31, 23, 59, 59, 500_000, tzinfo=UTC),
            "1969-12-31T23:59:59Z",
            "1969-12-31T23:59:59.500000Z",
            id="before the epoch a fraction is cut off, too",
        ),
    ],
)
def test_times_are_written_in_utc(moment: datetime, whole: str, micro: str):
    assert (timestamp(moment), micro_timestamp(moment)) == (whole, micro)


@pytest.mark.parametrize(
    ("zone", "text"),
    [
        pytest.param(UTC, "2026-01-31T12:00:00Z", id="an offset of zero is Z"),
        pytest.param(ZoneInfo("Europe/London"), "2026-01-31T12:00:00Z", id="London in winter is Z"),
        pytest.param(TOKYO, "2026-01-31T21:00:00+09:00", id="Tokyo"),
        pytest.param(ZoneInfo("America/St_Johns"), "2026-01-31T08:30:00-03:30", id="half an hour"),
    ],
)
def test_times_are_written_on_the_clock_of_a_zone(zone: timezone, text: str):
    assert zoned_timestamp(NOON, zone) == text


@pytest.mark.parametrize("write", [timestamp, micro_timestamp])
def test_a_time_without_a_zone_is_refused_instead_of_guessed(write):
    with pytest.raises(ValueError, match="names no time zone"):
        write(datetime(2026, 1, 31, 12))


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-31T12:00:00Z", NOON),
        ("2026-01-31t12:00:00z", NOON),
        ("2026-01-31T12:00:00.5Z", NOON + timedelta(milliseconds=500)),
        ("2026-01-31T12:00:00.123456789Z", NOON + timedelta(microseconds=123_456)),
        ("2026-01-31T13:00:00+01:00", NOON),
        ("2026-01-31T11:59:59-00:00", NOON - timedelta(seconds=1)),
    ],
)
def test_rfc_3339_is_read(text: str, moment: datetime):
    assert parse_timestamp(text) == moment
    assert timestamp_or_none(text) == moment


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("yesterday", id="words"),
        pytest.param("2026-01-31", id="a date alone"),
        pytest.param("2026-01-31T12:00:00", id="no zone"),
        pytest.param("2026-01-31 12:00:00Z", id="a space instead of T"),
        pytest.param("20260131T120000Z", id="ISO 8601 basic format"),
        pytest.param("2026-02-30T12:00:00Z", id="no such day"),
        pytest.param("2026-01-31T25:00:00Z", id="no such hour"),
        pytest.param("2026-01-31T12:00:00Z\n", id="a line feed at the end"),
        pytest.param("٢٠٢٦-01-31T12:00:00Z", id="digits of another script"),  # noqa: RUF001
        pytest.param(f"2026-01-31T12:00:00.{'0' * MAX_TIME_CHARACTERS}Z", id="too long"),
    ],
)
def test_what_is_not_rfc_3339_is_refused(text: str):
    with pytest.raises(ValueError):
        parse_timestamp(text)
    assert timestamp_or_none(text) is None


@pytest.mark.parametrize("value", [None, 5, ["2026-01-31T12:00:00Z"]])
def test_what_is_not_a_text_is_no_time(value: object):
    assert timestamp_or_none(value) is None


# An hour that a zone has twice: Python compares it with no other zone's time.
@example(datetime(1966, 10, 16, 1, 30, tzinfo=ZoneInfo("Asia/Macao")))
@given(st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30), timezones=st.timezones()))
def test_a_written_time_reads_back(moment: datetime):
    assert parse_timestamp(micro_timestamp(moment)) == moment.astimezone(UTC)
    assert parse_timestamp(timestamp(moment)) == moment.astimezone(UTC).replace(microsecond=0)


@pytest.mark.parametrize(
    ("ago", "recent"), [(0, True), (9, True), (10, False), (3600, False), (-1, False), (-3600, False)]
)
def test_a_moment_that_is_still_to_come_is_not_recent(ago: int, recent: bool):
    now = datetime(2026, 1, 1, tzinfo=UTC)

    assert is_recent(now - timedelta(seconds=ago), now, timedelta(seconds=10)) is recent
