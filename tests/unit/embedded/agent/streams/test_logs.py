from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volcano.api.times import parse_timestamp
from volcano.embedded.agent.processes.container_log import MAX_LOG_LINE_BYTES, ContainerLog
from volcano.embedded.agent.streams.logs import LogQuery, parse_line, read_log
from volcano.machinery.clock import VirtualClock, run_virtually


def a_log(folder: Path, **limits: int) -> ContainerLog:
    return ContainerLog(os.open(folder, os.O_RDONLY), "0.log", **limits)


def read(folder: Path, **query: object) -> bytes:
    async def story() -> bytes:
        pieces = read_log(folder / "0.log", LogQuery(**query), VirtualClock(), lambda: False)  # type: ignore[arg-type]
        return b"".join([piece async for piece in pieces])

    return run_virtually(story())


def test_what_is_written_is_read_back(tmp_path):
    log = a_log(tmp_path)
    log.write(b"stdout", b"one\ntw")
    log.write(b"stderr", b"oops\n")
    log.write(b"stdout", b"o\nthree")
    log.finish()

    assert read(tmp_path) == b"one\noops\ntwo\nthree\n"
    assert read(tmp_path, stream="Stderr") == b"oops\n"
    assert read(tmp_path, tail=2) == b"two\nthree\n"
    assert read(tmp_path, tail=0) == b""
    assert read(tmp_path, limit_bytes=5) == b"one\no"


def test_lines_carry_their_time(tmp_path):
    log = a_log(tmp_path)
    log.write(b"stdout", b"one\n")

    stamp, text = read(tmp_path, timestamps=True).split(b" ", 1)

    assert text == b"one\n"
    assert abs(parse_timestamp(stamp.decode()) - datetime.now(UTC)) < timedelta(minutes=1)
    assert read(tmp_path, since=datetime.now(UTC) + timedelta(hours=1)) == b""
    assert read(tmp_path, since=datetime.now(UTC) - timedelta(hours=1)) == b"one\n"


def test_logs_are_rotated_and_capped(tmp_path):
    log = a_log(tmp_path, largest=10_000, old_files=2)
    for number in range(1000):
        log.write(b"stdout", b"line %06d\n" % number)

    assert sorted(each.name for each in tmp_path.iterdir()) == ["0.log", "0.log.1", "0.log.2"]
    assert sum(each.stat().st_size for each in tmp_path.iterdir()) <= 30_000
    kept = read(tmp_path).splitlines()
    assert kept[-1] == b"line 000999"
    assert kept == [b"line %06d" % number for number in range(1000 - len(kept), 1000)]


def test_a_line_without_an_end_is_not_kept_for_ever(tmp_path):
    log = a_log(tmp_path)
    log.write(b"stdout", b"x" * (MAX_LOG_LINE_BYTES * 3))

    assert (tmp_path / "0.log").stat().st_size >= MAX_LOG_LINE_BYTES * 2
    log.finish()
    assert read(tmp_path) == b"x" * (MAX_LOG_LINE_BYTES * 3) + b"\n"


def test_following_goes_on_until_the_container_has_ended(tmp_path):
    log = a_log(tmp_path, largest=200)
    live = [True]

    async def story() -> bytes:
        clock, got = VirtualClock(), b""
        pieces = read_log(tmp_path / "0.log", LogQuery(follow=True), clock, lambda: live[0])
        log.write(b"stdout", b"first\n")
        async for piece in pieces:
            got += piece
            if got.count(b"\n") < 20:
                log.write(b"stdout", b"more\n")
            elif live[0]:
                log.write(b"stdout", b"last\n")
                live[0] = False
        return got

    assert run_virtually(story()) == b"first\n" + b"more\n" * 19 + b"last\n"


@given(st.lists(st.binary(max_size=50), max_size=10))
def test_however_output_is_cut_it_is_read_back_whole(tmp_path_factory, chunks: list[bytes]):
    folder = tmp_path_factory.mktemp("log")
    log = a_log(folder)
    for chunk in chunks:
        log.write(b"stdout", chunk)
    log.finish()

    whole = b"".join(chunks)
    assert read(folder) == (whole if not whole or whole.endswith(b"\n") else whole + b"\n")


@pytest.mark.parametrize("line", [b"", b"garbage", b"2026 stdout X text", b"2026 stdout F"])
def test_what_is_not_a_line_is_passed_over(line: bytes):
    assert parse_line(line) is None
