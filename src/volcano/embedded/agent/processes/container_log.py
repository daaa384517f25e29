"""Writes a container's output to disk in the kubelet's format (time, stream, F or P, text), rotated and capped.

Runs in the container's holder process, so it uses the standard library only.
"""

from __future__ import annotations

import os
import time
from itertools import pairwise

MAX_LOG_FILE_BYTES = 10 * 1024 * 1024
MAX_ROTATED_LOG_FILES = 4
MAX_LOG_LINE_BYTES = 16 * 1024


class ContainerLog:
    """One log file and its rotated ones, opened through their directory's descriptor so that no mount can hide them."""

    def __init__(
        self, directory: int, name: str, *, largest: int = MAX_LOG_FILE_BYTES, old_files: int = MAX_ROTATED_LOG_FILES
    ) -> None:
        self._directory, self._name = directory, name
        self._largest, self._old_files = largest, old_files
        self._file = self._open()
        self._size = os.fstat(self._file).st_size
        self._tails: dict[bytes, bytes] = {}

    @property
    def descriptor(self) -> int:
        return self._file

    def write(self, stream: bytes, output: bytes) -> None:
        """Write output; a line is written once it is complete, or in parts once it exceeds MAX_LOG_LINE_BYTES."""
        output = self._tails.pop(stream, b"") + output
        whole, newline, tail = output.rpartition(b"\n")
        stamp = _stamp()
        written = b""
        if newline:
            prefix = stamp + b" " + stream + b" F "
            written = prefix + whole.replace(b"\n", b"\n" + prefix) + b"\n"
        while len(tail) > MAX_LOG_LINE_BYTES:
            written += stamp + b" " + stream + b" P " + tail[:MAX_LOG_LINE_BYTES] + b"\n"
            tail = tail[MAX_LOG_LINE_BYTES:]
        if tail:
            self._tails[stream] = tail
        if written:
            self._append(written)

    def finish(self) -> None:
        """Write what is left without an end of line."""
        for stream, tail in sorted(self._tails.items()):
            self._append(_stamp() + b" " + stream + b" F " + tail + b"\n")
        self._tails.clear()

    def _append(self, lines: bytes) -> None:
        if self._size and self._size + len(lines) > self._largest:
            self._rotate()
        view = memoryview(lines)
        try:
            while view:
                view = view[os.write(self._file, view) :]
        except OSError:
            return  # with a full disk output is lost; the container continues
        self._size += len(lines)

    def _rotate(self) -> None:
        names = [self._name, *(f"{self._name}.{age}" for age in range(1, self._old_files + 1))]
        for younger, older in reversed(list(pairwise(names))):
            try:
                os.rename(younger, older, src_dir_fd=self._directory, dst_dir_fd=self._directory)
            except FileNotFoundError:
                pass
        os.close(self._file)
        self._file = self._open()
        self._size = 0

    def _open(self) -> int:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        return os.open(self._name, flags, 0o600, dir_fd=self._directory)


def _stamp() -> bytes:
    seconds, nanos = divmod(time.time_ns(), 10**9)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)).encode() + b".%09dZ" % nanos
