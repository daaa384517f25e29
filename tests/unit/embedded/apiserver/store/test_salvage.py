"""Repair keeps what can be read and names what is lost; backups are verified, private, and can be gone back to."""

from __future__ import annotations

import asyncio
import sqlite3
import stat
from pathlib import Path

import msgspec
import pytest

from volcano.embedded.apiserver.store.contract import ObjectKey, Write
from volcano.embedded.apiserver.store.log_file import UnusableFile, keys_path, verified
from volcano.embedded.apiserver.store.salvage import back_up, repair, restore, rotate_key
from volcano.embedded.apiserver.store.secret_keys import read_keys
from volcano.embedded.apiserver.store.sqlite_store import SqliteStore


def put(name: str, resource: str = "pods") -> Write:
    def encode(revision: int) -> bytes:
        return msgspec.json.encode({"metadata": {"name": name, "resourceVersion": str(revision)}, "value": "x" * 500})

    return Write(ObjectKey(resource, "default", name), 0, encode)


def names(path: Path) -> list[str]:
    async def work() -> list[str]:
        store = SqliteStore(path)
        try:
            return sorted(each.key.name for resource in store.resources() for each in store.scan(resource))
        finally:
            await store.close()

    return asyncio.run(work())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    async def work() -> None:
        store = SqliteStore(tmp_path / "state.db")
        for number in range(50):
            await store.write(put(f"p{number:02}"))
        await store.write(put("s", "secrets"))
        await store.close()

    asyncio.run(work())
    return tmp_path / "state.db"


def test_a_changed_row_is_left_out_and_named(path: Path):
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE log SET value = CAST(replace(value, 'x', 'z') AS BLOB) WHERE name = 'p07'")
    connection.close()

    done = repair(path)

    assert done.lost == ["revision 8: pods default/p07 does not match its checksum"]
    assert names(path) == [*(f"p{n:02}" for n in range(50) if n != 7), "s"]
    assert done.damaged_copy.exists()


def test_pages_that_cannot_be_read_cost_only_what_is_on_them(path: Path):
    content = bytearray(path.read_bytes())
    content[4096 * 4 : 4096 * 5] = b"\xff" * 4096
    path.write_bytes(content)
    with pytest.raises(UnusableFile):
        verified(path)

    done = repair(path)

    assert done.lost
    assert 30 <= len(names(path)) < 51


def test_a_file_that_is_gone_is_reported_with_all_its_revisions(path: Path):
    path.unlink()

    done = repair(path)

    assert done.lost == ["revisions 1 to 51: acknowledged, and not in the file"]
    assert names(path) == []


def test_a_backup_can_be_gone_back_to(path: Path, tmp_path: Path):
    backup = tmp_path / "monday.db"
    back_up(path, backup)
    assert {stat.S_IMODE(each.stat().st_mode) for each in (backup, keys_path(backup))} == {0o600}
    path.write_bytes(b"")

    restore(path, backup)

    assert len(names(path)) == 51
    assert path.with_name("state.db.replaced-1").exists()


def test_a_running_store_is_backed_up_between_two_commits(path: Path, tmp_path: Path):
    async def work() -> None:
        store = SqliteStore(path)
        writes = [asyncio.ensure_future(store.write(put(f"q{number}"))) for number in range(50)]
        await store.backup(tmp_path / "live.db")
        await asyncio.gather(*writes)
        await store.close()

    asyncio.run(work())
    keys_path(tmp_path / "live.db").write_bytes(keys_path(path).read_bytes())

    contents = verified(tmp_path / "live.db")

    assert 51 <= len(contents.values) <= 101
    assert stat.S_IMODE((tmp_path / "live.db").stat().st_mode) == 0o600


def test_a_damaged_backup_is_refused(path: Path, tmp_path: Path):
    backup = tmp_path / "bad.db"
    back_up(path, backup)
    backup.write_bytes(backup.read_bytes().replace(b"p07", b"p77", 1))
    before = path.read_bytes()

    with pytest.raises(UnusableFile):
        restore(path, backup)

    assert path.read_bytes() == before


def test_rotation_seals_secrets_under_the_new_key_only(path: Path):
    old = read_keys(keys_path(path))
    sealed = sealed_value(path)

    new = rotate_key(path)

    ring = read_keys(keys_path(path))
    assert old is not None and ring is not None
    assert ring.ids == (new,) != old.ids
    assert sealed_value(path) != sealed
    assert "s" in names(path)


def sealed_value(path: Path) -> bytes:
    with sqlite3.connect(path) as connection:
        (value,) = connection.execute("SELECT value FROM log WHERE resource = 'secrets'").fetchone()
    connection.close()
    return bytes(value)
