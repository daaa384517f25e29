"""A database is verified as a whole before it is used: damage is named and never taken for an end or a beginning."""

from __future__ import annotations

import asyncio
import random
import shutil
import sqlite3
import stat
from pathlib import Path

import msgspec
import pytest

from volcano.embedded.apiserver.store.contract import ObjectKey, Write
from volcano.embedded.apiserver.store.log_file import (
    DamagedFile,
    UnusableFile,
    acknowledged_path,
    explained,
    keys_path,
    verified,
)
from volcano.embedded.apiserver.store.sqlite_store import SqliteStore

FLIPS = 100
PAGE_BYTES = 4096


def put(name: str, expected: int = 0, value: str = "", resource: str = "pods") -> Write:
    def encode(revision: int) -> bytes:
        return msgspec.json.encode({"metadata": {"name": name, "resourceVersion": str(revision)}, "value": value})

    return Write(ObjectKey(resource, "default", name), expected, encode)


def drop(name: str, expected: int) -> Write:
    return Write(ObjectKey("pods", "default", name), expected, put(name).encode, deletes=True)


def contents(store: SqliteStore) -> dict[ObjectKey, bytes]:
    return {each.key: each.raw for resource in store.resources() for each in store.scan(resource)}


def copied(source: Path, target: Path) -> Path:
    """The files as a killed process leaves them."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    return target / "state.db"


def reopened(path: Path) -> dict[ObjectKey, bytes]:
    async def work() -> dict[ObjectKey, bytes]:
        store = SqliteStore(path)
        try:
            return contents(store)
        finally:
            await store.close()

    return asyncio.run(work())


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[ObjectKey, bytes]]:
    """A folder with a database and a write-ahead log, as after a kill, and what was acknowledged."""
    folder, copy = tmp_path_factory.mktemp("live"), tmp_path_factory.mktemp("killed") / "data"

    async def work() -> dict[ObjectKey, bytes]:
        first = SqliteStore(folder / "state.db", max_changes=50)
        made = [await first.write(put(f"p{n}", value="x" * 300)) for n in range(120)]
        for stored in made[:30]:
            await first.write(drop(stored.key.name, stored.revision))
        await first.write(put("password", value="hunter2", resource="secrets"))
        await first.close()
        store = SqliteStore(folder / "state.db", max_changes=50)
        for number in range(60):
            await store.write(put(f"q{number}", value="y" * 300))
        shutil.copytree(folder, copy)
        kept = contents(store)
        await store.close()
        return kept

    acknowledged = asyncio.run(work())
    assert (copy / "state.db-wal").stat().st_size > 100_000
    return copy, acknowledged


def test_a_killed_process_leaves_no_damage(killed, tmp_path: Path):
    folder, acknowledged = killed

    assert reopened(copied(folder, tmp_path / "copy")) == acknowledged


@pytest.mark.parametrize("file", ["state.db", "state.db-wal"])
def test_a_flipped_bit_is_named_or_harmless_but_never_silent(killed, tmp_path: Path, file: str):
    folder, acknowledged = killed
    chance, noticed = random.Random(11), 0
    for _ in range(FLIPS):
        path = copied(folder, tmp_path / "copy")
        damaged = path.with_name(file)
        content = bytearray(damaged.read_bytes())
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        damaged.write_bytes(content)
        try:
            assert reopened(path) == acknowledged
        except UnusableFile as error:
            noticed += 1
            assert "state.db" in str(error)

    assert noticed > FLIPS // 10  # the others hit pages that nothing uses


def test_a_log_that_is_cut_is_noticed_wherever_it_is_cut(killed, tmp_path: Path):
    folder, acknowledged = killed
    size, chance, noticed = (folder / "state.db-wal").stat().st_size, random.Random(5), 0
    for _ in range(FLIPS // 2):
        path = copied(folder, tmp_path / "copy")
        with path.with_name("state.db-wal").open("r+b") as file:
            file.truncate(chance.randrange(size))
        try:
            assert reopened(path) == acknowledged
        except DamagedFile as error:
            noticed += 1
            assert "were acknowledged and are not there" in str(error)

    assert noticed > FLIPS // 4


def test_a_database_that_is_cut_is_named_as_damaged_wherever_it_is_cut(tmp_path: Path):
    """Values around the size of a page: of one whose last page is gone, SQLite reads NULL in the columns after it."""
    folder = tmp_path / "data"
    folder.mkdir()

    async def work() -> None:
        store = SqliteStore(folder / "state.db")
        for number in range(30):
            await store.write(put(f"large{number}", value="x" * (2000 + 190 * number)))
        await store.close()

    asyncio.run(work())
    size, reasons = (folder / "state.db").stat().st_size, set()
    for length in range(2 * PAGE_BYTES + 100, size, PAGE_BYTES):
        path = copied(folder, tmp_path / "copy")
        with path.open("r+b") as file:
            file.truncate(length)
        with pytest.raises(DamagedFile) as error:
            verified(path)
        reasons.add("cannot be read" in str(error.value))

    assert reasons == {True, False}, "rows without columns are among them"


def test_damage_in_a_row_is_named_with_its_object(killed, tmp_path: Path):
    path = copied(killed[0], tmp_path / "copy")
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE log SET value = CAST(replace(value, 'y', 'z') AS BLOB) WHERE name = 'q7'")
    connection.close()
    before = path.read_bytes()

    with pytest.raises(DamagedFile, match=r"revision \d+: pods default/q7 does not match its checksum") as error:
        SqliteStore(path)

    assert "volcano store repair" in str(error.value)
    assert path.read_bytes() == before


def test_a_row_that_vanished_is_noticed(killed, tmp_path: Path):
    path = copied(killed[0], tmp_path / "copy")
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM log WHERE name = 'p40'")
    connection.close()

    with pytest.raises(DamagedFile, match="do not add up"):
        SqliteStore(path)


@pytest.mark.parametrize("vanish", ["empty", "missing"])
def test_an_empty_or_missing_file_is_no_new_cluster(killed, tmp_path: Path, vanish: str):
    path = copied(killed[0], tmp_path / "copy")
    path.unlink()
    if vanish == "empty":
        path.touch()

    with pytest.raises(DamagedFile, match=rf"the file is {vanish}, but revisions up to \d+ were acknowledged"):
        SqliteStore(path)


def test_a_damaged_record_of_the_last_revision_is_named(killed, tmp_path: Path):
    path = copied(killed[0], tmp_path / "copy")
    acknowledged_path(path).write_bytes(b"nothing")

    with pytest.raises(DamagedFile, match="acknowledged is damaged"):
        SqliteStore(path)


def test_all_files_are_for_their_owner_only(killed, tmp_path: Path):
    path = copied(killed[0], tmp_path / "copy")
    for each in path.parent.iterdir():
        each.chmod(0o644)

    async def work() -> set[int]:
        store = SqliteStore(path)
        await store.write(put("r"))
        modes = {stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}
        await store.close()
        return modes

    assert asyncio.run(work()) == {0o600}


def test_secrets_are_encrypted_on_disk_and_other_objects_are_not(killed, tmp_path: Path):
    folder, acknowledged = killed
    path = copied(folder, tmp_path / "copy")

    files = b"".join(each.read_bytes() for each in path.parent.iterdir())

    assert b"hunter2" not in files
    assert b"yyyyyy" in files
    assert b"hunter2" in acknowledged[ObjectKey("secrets", "default", "password")]


def test_without_its_key_a_secret_is_named(killed, tmp_path: Path):
    path = copied(killed[0], tmp_path / "copy")
    keys_path(path).unlink()

    with pytest.raises(DamagedFile, match="secrets default/password cannot be decrypted"):
        SqliteStore(path)


def first_format(path: Path, value: bytes) -> None:
    with sqlite3.connect(path) as connection:
        connection.executescript(
            """
            PRAGMA application_id = 0x766F6C63; PRAGMA user_version = 1;
            CREATE TABLE log (revision INTEGER PRIMARY KEY, resource TEXT NOT NULL, namespace TEXT NOT NULL,
                name TEXT NOT NULL, deleted INTEGER NOT NULL, value BLOB NOT NULL) STRICT;
            CREATE TABLE compaction (only_row INTEGER PRIMARY KEY CHECK (only_row = 1), revision INTEGER NOT NULL) STRICT;
            INSERT INTO compaction VALUES (1, 3);
            """
        )
        connection.execute("INSERT INTO log VALUES (5, 'secrets', 'default', 's', 0, ?)", (value,))
    connection.close()


def test_a_file_of_the_first_format_is_rewritten(tmp_path: Path):
    path = tmp_path / "state.db"
    value = b'{"metadata":{"name":"s","resourceVersion":"5"},"data":{"password":"hunter2"}}'
    first_format(path, value)

    assert reopened(path) == {ObjectKey("secrets", "default", "s"): value}
    assert b"hunter2" not in path.read_bytes()
    assert reopened(path) == {ObjectKey("secrets", "default", "s"): value}


def test_a_damaged_file_of_the_first_format_is_named(tmp_path: Path):
    first_format(tmp_path / "state.db", b'{"metadata":{"nam')

    with pytest.raises(DamagedFile, match="revision 5: secrets default/s is not an object"):
        SqliteStore(tmp_path / "state.db")


def test_a_full_disk_is_not_called_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    usage = shutil.disk_usage(tmp_path)._replace(free=10)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)

    said = explained(tmp_path / "state.db", sqlite3.OperationalError("disk I/O error"))

    assert "the disk is full (10 bytes are free)" in said
    assert "damaged" not in said
