"""Rows of the log on disk: each with a checksum, and one state row with what all of them together add up to.

The checksum tells a changed row; the sum over all rows (every checksum, combined by exclusive or) and their number tell
rows that are lost or came from elsewhere, also below the compacted revision, where a chain of hashes would have gaps.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import chain, islice
from typing import Final, NamedTuple

import msgspec

from volcano.embedded.apiserver.store.contract import ObjectKey, Stored
from volcano.embedded.apiserver.store.secret_keys import SEALED_RESOURCES, KeyRing

APPLICATION_ID: Final = 0x766F6C63
FILE_FORMAT: Final = 2
CHECKSUM_BYTES: Final = 16
ROWS_PER_DELETE: Final = 500
MAX_ROWS_PER_INSERT: Final = 128
"""A power of two; older builds of SQLite take at most 999 values in a statement."""
SCHEMA: Final = """
CREATE TABLE log (
    revision INTEGER PRIMARY KEY, resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
    deleted INTEGER NOT NULL, value BLOB NOT NULL, checksum BLOB NOT NULL
) STRICT;
CREATE TABLE state (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1), compacted INTEGER NOT NULL, revision INTEGER NOT NULL,
    rows INTEGER NOT NULL, sum BLOB NOT NULL, checksum BLOB NOT NULL
) STRICT;
"""
SELECT_ROWS: Final = "SELECT revision, resource, namespace, name, deleted, value, checksum FROM log ORDER BY revision"
INSERT_ROW: Final = "INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?)"
SELECT_STATE: Final = "SELECT compacted, revision, rows, sum, checksum FROM state"
UPDATE_STATE: Final = "INSERT OR REPLACE INTO state VALUES (1, ?, ?, ?, ?, ?)"


class LogRow(NamedTuple):
    """One row as it is on disk; a Secret's value is sealed."""

    revision: int
    resource: str
    namespace: str
    name: str
    deleted: int
    value: bytes
    checksum: bytes

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.resource, self.namespace, self.name)

    @property
    def is_readable(self) -> bool:
        """Whether each column has its type: SQLite reads missing or other values from a page that is cut or damaged."""
        return _have_types(self, (int, str, str, str, int, bytes, bytes))

    @property
    def is_intact(self) -> bool:
        return self.checksum == checksum_of(self.revision, self.key, self.deleted, self.value)


def make_row(stored: Stored, is_deleted: bool, keys: KeyRing) -> LogRow:
    """The row of an object; Secrets are sealed."""
    revision, key, deleted = stored.revision, stored.key, int(is_deleted)
    value = keys.seal(key, stored.raw) if key.resource in SEALED_RESOURCES else stored.raw
    return LogRow(revision, *key, deleted, value, checksum_of(revision, key, deleted, value))


def checksum_of(revision: int, key: ObjectKey, deleted: int, value: bytes) -> bytes:
    found = hashlib.blake2b(
        f"{revision}\0{key[0]}\0{key[1]}\0{key[2]}\0{deleted}\0".encode(), digest_size=CHECKSUM_BYTES
    )
    found.update(value)
    return found.digest()


class LogState(msgspec.Struct):
    """What the rows of the log add up to."""

    compacted: int = 0
    revision: int = 0
    rows: int = 0
    sum: int = 0

    def add(self, row: LogRow) -> None:
        self.revision = max(self.revision, row.revision)
        self.rows += 1
        self.sum ^= int.from_bytes(row.checksum)

    def remove(self, checksum: bytes) -> None:
        self.rows -= 1
        self.sum ^= int.from_bytes(checksum)

    def columns(self) -> tuple[int, int, int, bytes, bytes]:
        total = self.sum.to_bytes(CHECKSUM_BYTES)
        return self.compacted, self.revision, self.rows, total, self._checksum(total)

    def _checksum(self, total: bytes) -> bytes:
        said = f"{self.compacted}\0{self.revision}\0{self.rows}\0".encode() + total
        return hashlib.blake2b(said, digest_size=CHECKSUM_BYTES).digest()


def read_state(connection: sqlite3.Connection) -> LogState | None:
    """The state row; None when it is missing or does not match its checksum."""
    found = connection.execute(SELECT_STATE).fetchone()
    if found is None or not _have_types(found, (int, int, int, bytes, bytes)) or len(found[3]) != CHECKSUM_BYTES:
        return None
    state = LogState(found[0], found[1], found[2], int.from_bytes(found[3]))
    return state if state.columns() == tuple(found) else None


def _have_types(values: Sequence[object], types: tuple[type, ...]) -> bool:
    return all(isinstance(value, each) for value, each in zip(values, types, strict=True))


def insert_rows(connection: sqlite3.Connection, rows: Sequence[LogRow]) -> None:
    """Add rows, many with each statement: between two statements the thread has to wait for the interpreter again."""
    at, size = 0, MAX_ROWS_PER_INSERT
    while at < len(rows):
        while size > len(rows) - at:
            size //= 2  # few sizes, so that SQLite keeps the prepared statements
        connection.execute(_insertion(size), list(chain.from_iterable(rows[at : at + size])))
        at += size


@cache
def _insertion(rows: int) -> str:
    return INSERT_ROW + ", (?, ?, ?, ?, ?, ?, ?)" * (rows - 1)


def delete_rows(connection: sqlite3.Connection, revisions: Sequence[int], state: LogState) -> None:
    """Delete rows, and take them out of the state."""
    waiting = iter(revisions)
    while chunk := list(islice(waiting, ROWS_PER_DELETE)):
        marks = ",".join("?" * len(chunk))
        for (checksum,) in connection.execute(
            f"DELETE FROM log WHERE revision IN ({marks}) RETURNING checksum",
            chunk,
        ).fetchall():
            state.remove(checksum)


def write_rows(connection: sqlite3.Connection, rows: Iterable[LogRow], compacted: int, revision: int) -> LogState:
    """Fill an empty log."""
    state = LogState(compacted=compacted, revision=revision)
    for row in rows:
        connection.execute(INSERT_ROW, row)
        state.add(row)
    connection.execute(UPDATE_STATE, state.columns())
    return state
