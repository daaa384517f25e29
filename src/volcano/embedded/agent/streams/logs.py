"""Reads the log files that container_log writes: tail, since a time, with timestamps, following."""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec

from volcano.api.times import micro_timestamp
from volcano.embedded.agent.processes.container_log import MAX_ROTATED_LOG_FILES
from volcano.machinery.clock import Clock

READ_CHUNK_BYTES: Final = 256 * 1024
FOLLOW_POLL_INTERVAL: Final = timedelta(milliseconds=100)
MAX_TAIL_LINES: Final = 1_000_000


class LogQuery(msgspec.Struct, frozen=True):
    """Which part of a log is requested."""

    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    since: datetime | None = None
    tail: int | None = None
    limit_bytes: int | None = None
    stream: str = "All"


class LogLine(msgspec.Struct, frozen=True):
    stamp: bytes
    stream: bytes
    is_whole: bool
    text: bytes


def parse_line(line: bytes) -> LogLine | None:
    """A line of the file; None when it is damaged, as after a crash in the middle of a write."""
    parts = line.split(b" ", 3)
    if len(parts) != 4 or parts[2] not in (b"F", b"P"):
        return None
    return LogLine(parts[0], parts[1], parts[2] == b"F", parts[3])


async def read_log(path: Path, query: LogQuery, clock: Clock, is_live: Callable[[], bool]) -> AsyncIterator[bytes]:
    """The log in pieces. Following ends when the container has ended and everything was read."""
    left = query.limit_bytes
    async for piece in _pieces(path, query, clock, is_live):
        if left is not None:
            piece = piece[:left]
            left -= len(piece)
        if piece:
            yield piece
        if left is not None and left <= 0:
            return


async def _pieces(path: Path, query: LogQuery, clock: Clock, is_live: Callable[[], bool]) -> AsyncIterator[bytes]:
    file = _Follower(path)
    try:
        past = await clock.run(lambda: _past(path, file, query))
        for start in range(0, len(past), 512):
            yield b"".join(past[start : start + 512])
        while query.follow:
            was_live = is_live()
            fresh = b"".join(_shown(file.lines(), query))
            if fresh:
                yield fresh
            elif not was_live:
                return
            else:
                await clock.sleep(FOLLOW_POLL_INTERVAL)
    finally:
        file.close()


def _past(path: Path, newest: _Follower, query: LogQuery) -> list[bytes]:
    """The lines that exist now, oldest first, limited to the requested tail."""
    tail = min(query.tail, MAX_TAIL_LINES) if query.tail is not None else None
    found: deque[bytes] = deque(maxlen=tail)
    for age in range(MAX_ROTATED_LOG_FILES, 0, -1):
        with contextlib.suppress(FileNotFoundError), open(path.with_name(f"{path.name}.{age}"), "rb") as old:
            found.extend(_shown(old, query))
    found.extend(_shown(newest.lines(), query))
    return list(found)


def _shown(lines: Iterator[bytes], query: LogQuery) -> Iterator[bytes]:
    since = micro_timestamp(query.since).removesuffix("Z").encode() if query.since else b""
    wanted = {"Stdout": b"stdout", "Stderr": b"stderr"}.get(query.stream)
    for raw in lines:
        line = parse_line(raw.rstrip(b"\n"))
        if line is None or line.stamp < since or (wanted is not None and line.stream != wanted):
            continue
        end = b"\n" if line.is_whole else b""
        yield (line.stamp + b" " + line.text + end) if query.timestamps else line.text + end


class _Follower:
    """Reads complete lines of a growing file, across rotations."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = -1
        self._rest = b""

    def lines(self) -> Iterator[bytes]:
        """All complete lines that can be read now."""
        while True:
            chunk = self._read()
            if not chunk:
                return
            *whole, self._rest = (self._rest + chunk).split(b"\n")
            yield from whole

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _read(self) -> bytes:
        if self._file < 0 and not self._open():
            return b""
        chunk = os.read(self._file, READ_CHUNK_BYTES)
        if not chunk and self._was_rotated():
            self.close()
            return os.read(self._file, READ_CHUNK_BYTES) if self._open() else b""
        return chunk

    def _open(self) -> bool:
        try:
            self._file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return False
        return True

    def _was_rotated(self) -> bool:
        try:
            return os.stat(self._path).st_ino != os.fstat(self._file).st_ino
        except OSError:
            return False
