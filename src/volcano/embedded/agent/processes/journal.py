"""The supervisor's journal: each container's start and exit, appended to one file and synced.

A start without an exit in the journal of an earlier supervisor is a container that was lost with it. Standard library
only.
"""

from __future__ import annotations

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
        self._compact()

    def started(self, record: ProcessRecord) -> None:
        self.records[record["container"]] = record
        self._append([record])

    def exited(self, records: list[ProcessRecord]) -> None:
        """Record exits; they are synced to disk when this returns."""
        for record in records:
            self.records[record["container"]] = record
        self._append(records)
        os.fdatasync(self._file)

    def forget(self, containers: list[str]) -> None:
        for container in containers:
            self.records.pop(container, None)
        if self._size > COMPACT_ABOVE_BYTES:
            self._compact()

    def _append(self, records: list[ProcessRecord]) -> None:
        lines = b"".join(encode(record) for record in records)
        os.write(self._file, lines)
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
        os.write(file, lines)
        os.fdatasync(file)
        os.rename(fresh, self._path)
        if self._file >= 0:
            os.close(self._file)
        self._file, self._size = file, len(lines)
