"""Go durations."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volcano.api.durations import DurationError, format_duration, parse_duration, parse_nanoseconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", timedelta()),
        ("-0", timedelta()),
        ("5s", timedelta(seconds=5)),
        ("+5s", timedelta(seconds=5)),
        ("-1.5h", timedelta(hours=-1.5)),
        ("1h2m3s", timedelta(hours=1, minutes=2, seconds=3)),
        ("3s1h", timedelta(hours=1, seconds=3)),
        (".5s", timedelta(milliseconds=500)),
        ("1.s", timedelta(seconds=1)),
        ("300ms", timedelta(milliseconds=300)),
        ("10us", timedelta(microseconds=10)),
        ("10µs", timedelta(microseconds=10)),
        ("10μs", timedelta(microseconds=10)),
        ("1500ns", timedelta(microseconds=2)),
        ("1499ns", timedelta(microseconds=1)),
    ],
)
def test_durations_are_read_as_go_reads_them(text, expected):
    assert parse_duration(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'time: invalid duration ""'),
        ("-", 'time: invalid duration "-"'),
        ("abc", 'time: invalid duration "abc"'),
        (".s", 'time: invalid duration ".s"'),
        ("5", 'time: missing unit in duration "5"'),
        ("1h5", 'time: missing unit in duration "1h5"'),
        ("5d", 'time: unknown unit "d" in duration "5d"'),
        ("1 h", 'time: unknown unit " h" in duration "1 h"'),
        ("9999999h", 'time: invalid duration "9999999h"'),
        ("+-1s", 'time: invalid duration "+-1s"'),
    ],
)
def test_what_is_no_duration_is_refused_in_gos_words(text, message):
    with pytest.raises(DurationError) as refusal:
        parse_duration(text)

    assert str(refusal.value) == message


def test_nanoseconds_are_kept_exactly():
    assert parse_nanoseconds("1.000000001s") == 1_000_000_001
    assert parse_nanoseconds("-9223372036854775808ns") == -(2**63)


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (timedelta(), "0s"),
        (timedelta(microseconds=7), "7µs"),
        (timedelta(microseconds=1500), "1.5ms"),
        (timedelta(milliseconds=10), "10ms"),
        (timedelta(seconds=1.5), "1.5s"),
        (timedelta(minutes=1), "1m0s"),
        (timedelta(hours=1), "1h0m0s"),
        (timedelta(hours=-26, seconds=-0.25), "-26h0m0.25s"),
    ],
)
def test_durations_are_written_as_go_writes_them(duration, text):
    assert format_duration(duration) == text


@given(st.timedeltas(min_value=timedelta(days=-10000), max_value=timedelta(days=10000)))
def test_what_is_written_is_read_back(duration):
    assert parse_duration(format_duration(duration)) == duration


@given(st.text(alphabet="0123456789.+-hmsnuµ x", max_size=20))
def test_no_text_raises_anything_but_a_duration_error(text):
    try:
        parse_duration(text)
    except DurationError:
        pass
