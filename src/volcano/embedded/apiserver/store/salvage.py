"""Work on a database that no server uses: check it, keep what can be read of a damaged one, go back to a backup.

Nothing is thrown away: a file that is replaced stays beside its successor under another name.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Final

import msgspec

from volcano.embedded.apiserver.store.acknowledged import AcknowledgedRevision, read_acknowledged
from volcano.embedded.apiserver.store.contract import ObjectKey
from volcano.embedded.apiserver.store.log_file import (
    SIDE_SUFFIXES,
    StoredValue,
    UnusableFile,
    acknowledged_path,
    carries_revision,
    keys_path,
    name_of,
    reading,
    rewrite,
    verified,
    write_log_file,
)
from volcano.embedded.apiserver.store.log_rows import LogRow
from volcano.embedded.apiserver.store.private_files import move_durably, replace_private_file, touch_private
from volcano.embedded.apiserver.store.secret_keys import KeyFileError, KeyRing, keys_of, read_keys

MAX_SKIPPED_REVISIONS: Final = 5_000_000
"""How far beyond an unreadable place further rows are looked for, one revision at a time."""
ROWS_PER_READ: Final = 200
_COLUMNS: Final = "revision, resource, namespace, name, deleted, value"


class Repaired(msgspec.Struct):
    """What a repair kept and what it could not."""

    objects: int
    revision: int
    damaged_copy: Path
    lost: list[str]


def rotate_key(path: Path) -> str:
    """Seal all Secrets under a new key; the old keys are forgotten once nothing needs them. The new key's id."""
    contents = verified(path)
    ring = (contents.keys if contents.keys.ids else keys_of(keys_path(path))).with_new_key()
    rewrite(path, contents, ring)
    return ring.only_current().current


def repair(path: Path) -> Repaired:
    """Put all that can be read of a damaged file into a new one."""
    try:
        keys = read_keys(keys_path(path)) or keys_of(keys_path(path))
    except KeyFileError:
        move_durably(keys_path(path), _free_name(path, "damaged-keys"))
        keys = keys_of(keys_path(path))
    newest = _acknowledged(path)
    kept: dict[ObjectKey, StoredValue] = {}
    lost: list[str] = []
    reached = 0
    for value in _readable(path, keys, newest, lost):
        reached = max(reached, value.revision)
        if value.is_deleted:
            kept.pop(value.key, None)
        else:
            kept[value.key] = value
    if newest > reached:
        lost.append(f"revisions {reached + 1} to {newest}: acknowledged, and not in the file")
    revision = max(newest, reached)
    aside = _move_aside(path, "damaged")
    values = sorted(kept.values())
    write_log_file(path, values, keys, compacted=revision, revision=revision)
    AcknowledgedRevision(acknowledged_path(path), revision).close()
    return Repaired(len(values), revision, aside, lost)


def back_up(path: Path, target: Path) -> int:
    """A verified copy of a database that no server uses, and its keys; the number of entries."""
    contents = verified(path)
    touch_private(target)
    with reading(path) as source, contextlib.closing(sqlite3.connect(target)) as copy:
        source.backup(copy)
    copy_keys(path, target)
    return len(contents.values)


def copy_keys(path: Path, target: Path) -> None:
    """Without its keys a backup's Secrets cannot be read."""
    with contextlib.suppress(FileNotFoundError):
        replace_private_file(keys_path(target), keys_path(path).read_bytes())


def restore(path: Path, backup: Path) -> int:
    """Put a verified backup in the place of the database; the number of entries."""
    if backup.resolve() == path.resolve():
        raise UnusableFile(f"{backup}: is the database itself")
    contents = verified(backup)
    if path.exists() or acknowledged_path(path).exists():
        _move_aside(path, "replaced")
    keys = contents.keys
    ring = KeyRing(keys_path(path), keys.material(), keys.current) if keys.ids else keys_of(keys_path(path))
    ring.save()
    state = contents.state
    write_log_file(path, contents.values, ring, compacted=state.compacted, revision=state.revision)
    AcknowledgedRevision(acknowledged_path(path), state.revision).close()
    return len(contents.values)


def _acknowledged(path: Path) -> int:
    try:
        return read_acknowledged(acknowledged_path(path)) or 0
    except ValueError:
        return 0


def _readable(path: Path, keys: KeyRing, newest: int, lost: list[str]) -> Iterator[StoredValue]:
    if not path.exists() or path.stat().st_size == 0:
        return
    with reading(path) as connection:
        connection.text_factory = bytes
        try:
            names = {name.decode(errors="replace") for _, name, *_ in connection.execute("PRAGMA table_info(log)")}
        except sqlite3.DatabaseError as error:
            lost.append(f"the whole file: {error}")
            return
        columns = f"{_COLUMNS}, checksum" if "checksum" in names else f"{_COLUMNS}, x''"
        for found in _rows(connection, columns, newest, lost):
            value = _salvaged(found, keys, lost)
            if value is not None:
                yield value


def _salvaged(found: tuple[object, ...], keys: KeyRing, lost: list[str]) -> StoredValue | None:
    revision, *texts, deleted, value, checksum = found
    try:
        resource, namespace, name = (text.decode() for text in texts if isinstance(text, bytes))
        row = LogRow(int(str(revision)), resource, namespace, name, int(str(deleted)), bytes(value), bytes(checksum))  # type: ignore[call-overload]
    except (ValueError, TypeError):
        lost.append(f"revision {revision!r}: the row cannot be read")
        return None
    if checksum and not row.is_intact:
        lost.append(f"revision {row.revision}: {name_of(row.key)} does not match its checksum")
        return None
    try:
        raw = keys.open(row.key, row.value)
    except KeyFileError as error:
        lost.append(f"revision {row.revision}: {name_of(row.key)} cannot be decrypted: {error}")
        return None
    if not carries_revision(raw, row.revision):
        lost.append(f"revision {row.revision}: {name_of(row.key)} is not an object of that revision")
        return None
    return StoredValue(row.revision, row.key, bool(row.deleted), raw)


def _rows(connection: sqlite3.Connection, columns: str, newest: int, lost: list[str]) -> Iterator[tuple[object, ...]]:
    """Rows in order. Where reading fails, the revisions behind are tried one at a time."""
    last, several = 0, f"SELECT {columns} FROM log WHERE revision > ? ORDER BY revision LIMIT {ROWS_PER_READ}"
    one = f"SELECT {columns} FROM log WHERE revision = ?"
    while True:
        try:
            found = connection.execute(several, (last,)).fetchall()
        except sqlite3.DatabaseError:
            break
        if not found:
            return
        yield from found
        last = found[-1][0]
    failed: list[int] = []
    for revision in range(last + 1, min(newest, last + MAX_SKIPPED_REVISIONS) + 1):
        try:
            row = connection.execute(one, (revision,)).fetchone()
        except sqlite3.DatabaseError:
            failed.append(revision)
            continue
        if row is not None:
            yield row
    if failed:
        lost.append(f"{len(failed)} revisions between {failed[0]} and {failed[-1]}: their pages cannot be read")


def _move_aside(path: Path, word: str) -> Path:
    aside = _free_name(path, word)
    for suffix in (*SIDE_SUFFIXES, ""):
        with contextlib.suppress(FileNotFoundError):
            move_durably(path.with_name(path.name + suffix), aside.with_name(aside.name + suffix))
    return aside


def _free_name(path: Path, word: str) -> Path:
    names = (path.with_name(f"{path.name}.{word}-{number}") for number in count(1))
    return next(name for name in names if not name.exists() and not name.with_name(f"{name.name}-wal").exists())
