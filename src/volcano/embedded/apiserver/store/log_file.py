"""The database file: made, verified as a whole before anything is written to it, upgraded, and opened for writing.

A file that is damaged, foreign or of a newer format is left exactly as it is, and the error names what is wrong.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from volcano.embedded.apiserver.store.acknowledged import read_acknowledged
from volcano.embedded.apiserver.store.contract import ObjectKey, Stored
from volcano.embedded.apiserver.store.log_rows import (
    APPLICATION_ID,
    FILE_FORMAT,
    SCHEMA,
    SELECT_ROWS,
    LogRow,
    LogState,
    make_row,
    read_state,
    write_rows,
)
from volcano.embedded.apiserver.store.private_files import make_private, move_durably, touch_private
from volcano.embedded.apiserver.store.secret_keys import KeyFileError, KeyRing, keys_of, read_keys

log = logging.getLogger(__name__)

FIRST_FORMAT: Final = 1
MAX_REPORTED_DAMAGES: Final = 20
FULL_DISK_BYTES: Final = 256 * 1024
"""With less than this free, an error of the file is taken for a full disk; opening needs about 40 kB."""
SIDE_SUFFIXES: Final = ("-wal", "-shm", "-journal")


class UnusableFile(Exception):
    """The store's file cannot be used, and has not been touched."""


class DamagedFile(UnusableFile):
    """What was acknowledged is not all there, or not as it was; `damages` says what."""

    def __init__(self, path: Path, damages: list[str]) -> None:
        shown = damages[:MAX_REPORTED_DAMAGES]
        if len(damages) > len(shown):
            shown.append(f"and {len(damages) - len(shown)} more")
        lines = "".join(f"\n  {each}" for each in shown)
        super().__init__(
            f"{path}: damaged; it was left as it is:{lines}\n"
            "`volcano store restore FILE` goes back to a backup; `volcano store repair` keeps all that can be read, "
            "and says what cannot"
        )
        self.damages = damages


class StoredValue(NamedTuple):
    """One entry of the log with its value in clear."""

    revision: int
    key: ObjectKey
    is_deleted: bool
    raw: bytes


class Contents(NamedTuple):
    """All that a verified file holds."""

    state: LogState
    values: list[StoredValue]
    keys: KeyRing


def keys_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.keys")


def acknowledged_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.acknowledged")


def exists(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def open_verified(path: Path) -> tuple[sqlite3.Connection, Contents]:
    """The connection for writing and everything in the file, after the whole file was verified."""
    try:
        tighten(path)
        if not exists(path):
            _refuse_vanished(path)
            write_log_file(path, (), keys_of(keys_path(path)), compacted=0, revision=0)
        contents = verified(path)
        if format_of(path) < FILE_FORMAT:
            contents = upgrade(path, contents)
        if not contents.keys.ids:  # nothing is sealed, and the file of keys is gone
            contents = contents._replace(keys=keys_of(keys_path(path)))
        return connect(path), contents
    except (sqlite3.Error, OSError) as error:
        raise UnusableFile(explained(path, error)) from error
    except KeyFileError as error:
        raise UnusableFile(f"{error}; it is needed to read the Secrets in {path}") from error


def tighten(path: Path) -> None:
    """Only the owner may read the database, its log and its keys."""
    names = [path, *(path.with_name(path.name + suffix) for suffix in SIDE_SUFFIXES), keys_path(path)]
    for each in (*names, acknowledged_path(path)):
        if make_private(each):
            log.warning("%s could be read by others; now only its owner can", each)


def explained(path: Path, error: Exception) -> str:
    """An error of the file in true words: a full disk is no damage."""
    free = shutil.disk_usage(path.parent).free if path.parent.is_dir() else FULL_DISK_BYTES
    if free < FULL_DISK_BYTES or getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_FULL:
        return f"{path}: the disk is full ({free} bytes are free): {error}; make room and start again"
    return f"{path}: cannot be used: {error}; it was left as it is"


def _refuse_vanished(path: Path) -> None:
    acknowledged = _acknowledged(path)
    if acknowledged:
        what = "is empty" if path.exists() else "is missing"
        raise DamagedFile(path, [f"the file {what}, but revisions up to {acknowledged} were acknowledged"])


def _acknowledged(path: Path) -> int | None:
    try:
        return read_acknowledged(acknowledged_path(path))
    except ValueError as error:
        raise DamagedFile(path, [f"{acknowledged_path(path)} is damaged: {error}"]) from error


# ── verifying ──


def verified(path: Path, *, acknowledged: int | None = None) -> Contents:
    """Everything in the file; DamagedFile names what is not as it was written."""
    keys = read_keys(keys_path(path))
    with reading(path) as connection:
        version = _version(connection, path)
        if keys is None:
            keys = KeyRing(keys_path(path), {}, "") if version == FILE_FORMAT else keys_of(keys_path(path))
        damages: list[str] = []
        try:
            (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if verdict != "ok":
                damages.append(f"the file's structure: {' '.join(str(verdict).split())}")
            check = _check_first_format if version == FIRST_FORMAT else _check_rows
            state, values = check(connection, keys, damages)
        except sqlite3.DatabaseError as error:
            if not _is_damage(error):
                raise
            raise DamagedFile(path, [*damages, f"the file's structure: {error}"]) from error
    newest = acknowledged if acknowledged is not None else _acknowledged(path)
    if newest is not None and newest > state.revision:
        damages.append(
            f"revisions {state.revision + 1} to {newest} were acknowledged and are not there: "
            f"{path.name}-wal is cut, damaged or missing"
        )
    if damages:
        raise DamagedFile(path, damages)
    return Contents(state, values, keys)


@contextlib.contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that cannot write, so that closing it does not touch the write-ahead log either."""
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=1.0)
    try:
        yield connection
    finally:
        connection.close()


def format_of(path: Path) -> int:
    with reading(path) as connection:
        return _version(connection, path)


def _version(connection: sqlite3.Connection, path: Path) -> int:
    try:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.DatabaseError as error:
        if not _is_damage(error):
            raise
        raise DamagedFile(path, [f"the file's first page: {error}"]) from error
    if application != APPLICATION_ID:
        raise UnusableFile(f"{path}: not a file of this API server; it was left as it is")
    if version > FILE_FORMAT or version < FIRST_FORMAT:
        raise UnusableFile(
            f"{path}: written by a newer release (format {version}, this one reads up to {FILE_FORMAT}); "
            "it was left as it is"
        )
    return int(version)


def _is_damage(error: sqlite3.Error) -> bool:
    """A file that is locked, or on a full disk, is not damaged."""
    codes = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR)
    return getattr(error, "sqlite_errorcode", 0) & 0xFF not in codes


def _check_rows(
    connection: sqlite3.Connection, keys: KeyRing, damages: list[str]
) -> tuple[LogState, list[StoredValue]]:
    kept = read_state(connection)
    if kept is None:
        damages.append("the log's state row does not match its checksum")
    found, values = LogState(compacted=kept.compacted if kept else 0), []
    for row in map(LogRow._make, connection.execute(SELECT_ROWS)):
        if not row.is_readable:
            damages.append(f"revision {row.revision}: the row cannot be read")
            continue
        found.add(row)
        if not row.is_intact:
            damages.append(f"revision {row.revision}: {name_of(row.key)} does not match its checksum")
            continue
        try:
            values.append(StoredValue(row.revision, row.key, bool(row.deleted), keys.open(row.key, row.value)))
        except KeyFileError as error:
            damages.append(f"revision {row.revision}: {name_of(row.key)} cannot be decrypted: {error}")
    if kept is not None and (found.rows, found.sum) != (kept.rows, kept.sum):
        damages.append(f"the log has {found.rows} rows that do not add up to the {kept.rows} that were written")
    return kept or found, values


def _check_first_format(
    connection: sqlite3.Connection, keys: KeyRing, damages: list[str]
) -> tuple[LogState, list[StoredValue]]:
    """Rows without checksums: each must at least be an object that carries its revision."""
    (compacted,) = connection.execute("SELECT revision FROM compaction").fetchone()
    state, values = LogState(compacted=compacted, revision=compacted), []
    rows = connection.execute("SELECT revision, resource, namespace, name, deleted, value FROM log ORDER BY revision")
    for revision, resource, namespace, name, deleted, raw in rows:
        key = ObjectKey(resource, namespace, name)
        if not carries_revision(raw, revision):
            damages.append(f"revision {revision}: {name_of(key)} is not an object of that revision")
        values.append(StoredValue(revision, key, bool(deleted), raw))
        state.revision = max(state.revision, revision)
    return state, values


def carries_revision(raw: bytes, revision: int) -> bool:
    try:
        obj = msgspec.json.decode(raw)
        return bool(obj["metadata"].get("resourceVersion", str(revision)) == str(revision))
    except (msgspec.DecodeError, LookupError, TypeError, AttributeError, RecursionError):
        return False


def name_of(key: ObjectKey) -> str:
    return f"{key.resource} {f'{key.namespace}/' if key.namespace else ''}{key.name}"


# ── writing whole files ──


def connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=1.0)
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA wal_autocheckpoint = 4000")
    return connection


def write_log_file(
    path: Path, values: Iterable[StoredValue], keys: KeyRing, *, compacted: int, revision: int
) -> LogState:
    """A new file with these entries. It is made aside, so that a crash leaves no half-made file under the name."""
    aside = path.with_name(path.name + ".making")
    for suffix in ("", *SIDE_SUFFIXES):
        aside.with_name(aside.name + suffix).unlink(missing_ok=True)
    touch_private(aside)
    connection = sqlite3.connect(aside, isolation_level=None)
    try:
        connection.execute("PRAGMA synchronous = FULL")
        connection.executescript(
            f"BEGIN; PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {FILE_FORMAT}; {SCHEMA}"
        )
        rows = (make_row(Stored(each.key, each.revision, each.raw), each.is_deleted, keys) for each in values)
        state = write_rows(connection, rows, compacted, revision)
        connection.execute("COMMIT")
    finally:
        connection.close()
    move_durably(aside, path)
    return state


def rewrite(path: Path, contents: Contents, keys: KeyRing) -> Contents:
    """The same entries in a new file; the old one has no write-ahead log by then, which would spoil the new one."""
    old = sqlite3.connect(path, isolation_level=None, timeout=1.0)
    old.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    old.execute("PRAGMA journal_mode = DELETE")
    old.close()
    state = contents.state
    state = write_log_file(path, contents.values, keys, compacted=state.compacted, revision=state.revision)
    return Contents(state, contents.values, keys)


def upgrade(path: Path, contents: Contents) -> Contents:
    """A file of an older release, in the present format: with checksums, and with Secrets sealed."""
    found = rewrite(path, contents, keys_of(keys_path(path)))
    log.warning("%s was rewritten in format %d: rows have checksums, and Secrets are encrypted", path, FILE_FORMAT)
    return found
