"""The supervisor's journal: each container's start and exit, appended to one file and synced.

A start without an exit in the journal of an earlier supervisor is a container that was lost with it. Standard library
only.
"""

from __future__ import annotations

import errno
import os

from volcano.embedded.agent.processes.supervisor_protocol import ProcessRecord, decode, encode

COMPACT_ABOVE_BYTES = 1024 * 1024
"""Size of the file from which it is rewritten with the current records only."""


class Journal:
    """Records by container; the file has their history until it is compacted."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.records: dict[str, ProcessRecord] = {}
        self._read()
        for record in self.records.values():
            if record["exit_code"] is None:
                record["is_lost"] = True
        self._file = -1
        self._size = 0
        self._unwritten = b""
        self._compact()

    def starting(self, record: ProcessRecord) -> None:
        """Record a start before it happens; OSError when the disk is full: it must then not happen."""
        if not self.flush():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._write(encode(record))
        self.records[record["container"]] = record

    def exited(self, records: list[ProcessRecord]) -> None:
        """Record exits; they are on disk once `flush` has returned True."""
        for record in records:
            self.records[record["container"]] = record
            self._unwritten += encode(record)

    def flush(self) -> bool:
        """Write and sync what is not on disk yet; False when the disk is full, for example."""
        if not self._unwritten:
            return True
        try:
            self._write(self._unwritten)
            os.fdatasync(self._file)
        except OSError:
            return False
        self._unwritten = b""
        return True

    def forget(self, containers: list[str]) -> None:
        for container in containers:
            self.records.pop(container, None)
        if self._size > COMPACT_ABOVE_BYTES:
            try:
                self._compact()
            except OSError:
                pass  # the disk is full: the file stays as it is

    def _write(self, lines: bytes) -> None:
        """Append lines as a whole, or cut off what was written of them."""
        try:
            if os.write(self._file, lines) < len(lines):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError:
            os.ftruncate(self._file, self._size)
            raise
        self._size += len(lines)

    def _read(self) -> None:
        try:
            with open(self._path, "rb") as file:
                lines = file.read().split(b"\n")
        except FileNotFoundError:
            return
        for line in lines:
            try:
                record = decode(line) if line else None
            except ValueError:
                continue  # a torn last line, after a power failure
            if record is not None and "container" in record:
                self.records[record["container"]] = record  # type: ignore[assignment]

    def _compact(self) -> None:
        """Replace the file with the current records, atomically."""
        fresh = f"{self._path}.new"
        file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
        lines = b"".join(encode(record) for record in self.records.values())
        try:
            if os.write(file, lines) < len(lines):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fdatasync(file)
            os.rename(fresh, self._path)
        except OSError:
            os.close(file)
            raise
        self._unwritten = b""
        if self._file >= 0:
            os.close(self._file)
        self._file, self._size = file, len(lines)
