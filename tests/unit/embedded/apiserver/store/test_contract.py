"""What both stores promise, and what only the one on disk must."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from volcano.embedded.apiserver.store.contract import (
    ADDED,
    DELETED,
    MODIFIED,
    Compacted,
    FutureRevision,
    LoggedChange,
    ObjectKey,
    Stale,
    Store,
    StoreFailed,
    Write,
)
from volcano.embedded.apiserver.store.log_file import UnusableFile
from volcano.embedded.apiserver.store.log_rows import FILE_FORMAT
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.embedded.apiserver.store.sqlite_store import SqliteStore


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    made: Store = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "state.db")
    yield made
    await made.close()


def key(name: str, namespace: str = "default", resource: str = "pods") -> ObjectKey:
    return ObjectKey(resource, namespace, name)


def put(name: str, expected: int = 0, value: str = "", *, namespace: str = "default", resource: str = "pods") -> Write:
    def encode(revision: int) -> bytes:
        return msgspec.json.encode({"metadata": {"name": name, "resourceVersion": str(revision)}, "value": value})

    return Write(key(name, namespace, resource), expected, encode)


def drop(name: str, expected: int) -> Write:
    return Write(key(name), expected, put(name).encode, deletes=True)


async def test_a_write_gets_the_next_revision_and_carries_it(store: Store):
    first = await store.write(put("a"))
    second = await store.write(put("b"))

    assert second.revision == first.revision + 1 == store.revision
    assert msgspec.json.decode(second.raw)["metadata"]["resourceVersion"] == str(second.revision)
    assert store.find(key("b")) is second


async def test_a_write_on_a_stale_revision_changes_nothing(store: Store):
    made = await store.write(put("a"))
    await store.write(put("a", made.revision, "new"))

    with pytest.raises(Stale):
        await store.write(put("a", made.revision, "lost"))
    with pytest.raises(Stale):
        await store.write(put("a"))

    assert b"new" in store.find(key("a")).raw


async def test_of_many_concurrent_writers_to_one_object_exactly_one_wins(store: Store):
    made = await store.write(put("a"))

    outcomes = await asyncio.gather(
        *(store.write(put("a", made.revision, str(n))) for n in range(20)), return_exceptions=True
    )

    assert sum(not isinstance(outcome, Stale) for outcome in outcomes) == 1


async def test_objects_are_scanned_in_key_order_and_by_namespace(store: Store):
    for name, namespace in (("b", "two"), ("a", "two"), ("z", "one"), ("a", "twoo")):
        await store.write(put(name, namespace=namespace))

    assert [(s.key.namespace, s.key.name) for s in store.scan("pods")] == [
        ("one", "z"), ("two", "a"), ("two", "b"), ("twoo", "a"),
    ]  # fmt: skip
    assert [s.key.name for s in store.scan("pods", "two")] == ["a", "b"]
    assert store.scan("nodes") == []
    assert store.count("pods") == 4


async def test_a_scan_at_an_older_revision_shows_what_was(store: Store):
    a = await store.write(put("a", value="old"))
    b = await store.write(put("b"))
    then = store.revision
    await store.write(put("a", a.revision, "new"))
    await store.write(drop("b", b.revision))
    await store.write(put("c"))

    before = store.scan("pods", revision=then)

    assert [s.key.name for s in before] == ["a", "b"]
    assert b"old" in before[0].raw
    with pytest.raises(FutureRevision):
        store.scan("pods", revision=store.revision + 1)


async def test_the_log_tells_what_happened_since_a_revision(store: Store):
    a = await store.write(put("a"))
    changed = await store.write(put("a", a.revision, "new"))
    await store.write(put("n", resource="nodes", namespace=""))
    await store.write(drop("a", changed.revision))

    changes = store.changes("pods", store.position("pods", 0))

    assert [change.kind for change in changes] == [ADDED, MODIFIED, DELETED]
    assert changes[1].previous is a
    assert [c.revision for c in store.changes("pods", store.position("pods", a.revision))] == [2, 4]


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_what_was_compacted_is_gone_and_says_so(kind: str, tmp_path: Path):
    store: Store = MemoryStore(max_changes=1) if kind == "memory" else SqliteStore(tmp_path / "state.db", max_changes=1)
    a = await store.write(put("a"))
    position = store.position("pods", 0)
    await store.write(put("a", a.revision))

    with pytest.raises(Compacted):
        store.position("pods", 1)
    with pytest.raises(Compacted):
        store.changes("pods", position)
    with pytest.raises(Compacted):
        store.scan("pods", revision=1)
    assert store.changes("pods", store.position("pods", 2)) == []
    assert store.find(key("a")) is not None
    await store.close()


async def test_listeners_hear_of_every_change_in_order(store: Store):
    heard: list[LoggedChange] = []
    store.subscribe(heard.extend)

    await asyncio.gather(*(store.write(put(f"p{n}")) for n in range(50)))

    assert [change.revision for change in heard] == list(range(1, 51))


async def test_the_window_of_changes_is_bounded_by_count_and_by_size():
    few = MemoryStore(max_changes=10)
    small = MemoryStore(max_bytes=10_000)
    for store in (few, small):
        made = await store.write(put("a"))
        for _ in range(50):
            made = await store.write(put("a", made.revision, "x" * 1000))

        kept = store.changes("pods", store.position("pods", store.compacted))

        assert 0 < store.compacted < store.revision
        assert len(kept) <= 12


# ── on disk ──


async def test_everything_is_there_after_reopening(tmp_path: Path):
    store = SqliteStore(tmp_path / "state.db")
    a = await store.write(put("a"))
    b = await store.write(put("b"))
    await store.write(drop("b", b.revision))
    await store.write(put("a", a.revision, "new"))
    await store.close()

    again = SqliteStore(tmp_path / "state.db")

    assert again.revision == 4
    assert b"new" in again.find(key("a")).raw
    assert again.find(key("b")) is None
    assert [c.kind for c in again.changes("pods", again.position("pods", 0))] == [ADDED, ADDED, DELETED, MODIFIED]
    assert (await again.write(put("c"))).revision == 5
    await again.close()


async def test_compaction_survives_reopening_and_keeps_current_objects(tmp_path: Path):
    store = SqliteStore(tmp_path / "state.db", max_changes=10)
    for number in range(30):
        made = await store.write(put(f"p{number}"))
        await store.write(put(f"p{number}", made.revision, "again"))
    for number in range(10):
        await store.write(drop(f"p{number}", store.find(key(f"p{number}")).revision))
    compacted, revision = store.compacted, store.revision
    await store.close()

    again = SqliteStore(tmp_path / "state.db", max_changes=10)

    assert (again.compacted, again.revision) == (compacted, revision)
    assert [s.key.name for s in again.scan("pods")] == sorted(f"p{number}" for number in range(10, 30))
    with sqlite3.connect(tmp_path / "copy.db") as copy:
        again._connection.backup(copy)
        (rows,) = copy.execute("SELECT count(*) FROM log").fetchone()
    assert rows < 45
    await again.close()


async def test_a_write_returns_only_after_its_commit_and_commits_are_synced(tmp_path: Path):
    store = SqliteStore(tmp_path / "state.db")
    assert store._connection.execute("PRAGMA synchronous").fetchone() == (2,)
    assert store._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    held = asyncio.Event()
    commit, committed = store._commit, []
    loop = asyncio.get_running_loop()

    def slow_commit(batch, compactions):  # type: ignore[no-untyped-def]
        asyncio.run_coroutine_threadsafe(held.wait(), loop).result(10)
        commit(batch, compactions)
        committed.append(len(batch))

    store._commit = slow_commit  # type: ignore[method-assign]
    writing = asyncio.ensure_future(store.write(put("a")))
    await asyncio.wait([writing], timeout=0.05)

    assert not writing.done()
    assert store.find(key("a")) is None
    assert store.revision == 0
    held.set()
    await writing
    assert committed == [1]
    assert store.find(key("a")) is not None
    await store.close()


async def test_a_writer_that_is_cancelled_lets_nobody_past_its_write(tmp_path: Path):
    """The write goes on; the next one to the same object waits for it and finds what it made."""
    store = SqliteStore(tmp_path / "state.db")
    held = asyncio.Event()
    commit, loop = store._commit, asyncio.get_running_loop()

    def slow_commit(batch, compactions):  # type: ignore[no-untyped-def]
        asyncio.run_coroutine_threadsafe(held.wait(), loop).result(10)
        commit(batch, compactions)

    store._commit = slow_commit  # type: ignore[method-assign]
    first = asyncio.ensure_future(store.write(put("a", value="first")))
    second = asyncio.ensure_future(store.write(put("a", value="second")))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait([first])
    held.set()

    with pytest.raises(Stale):
        await second
    found = store.find(key("a"))
    assert found is not None and b"first" in found.raw
    await store.close()


@pytest.mark.parametrize("number", [1, 127, 128, 129, 300])
async def test_a_commit_of_any_size_is_whole(tmp_path: Path, number: int):
    store = SqliteStore(tmp_path / "state.db")
    await asyncio.gather(*(store.write(put(f"a{each:03}")) for each in range(number)))
    await store.close()

    again = SqliteStore(tmp_path / "state.db")
    assert [stored.key.name for stored in again.scan("pods")] == [f"a{each:03}" for each in range(number)]
    await again.close()


async def test_many_writes_share_a_commit(tmp_path: Path):
    store = SqliteStore(tmp_path / "state.db")
    commit, sizes = store._commit, []

    def counted(batch, compactions):  # type: ignore[no-untyped-def]
        sizes.append(len(batch))
        commit(batch, compactions)

    store._commit = counted  # type: ignore[method-assign]

    await asyncio.gather(*(store.write(put(f"p{n}")) for n in range(300)))

    assert sum(sizes) == 300
    assert len(sizes) < 100
    await store.close()


async def test_a_failed_commit_fails_its_writes_and_leaves_no_trace(tmp_path: Path):
    store = SqliteStore(tmp_path / "state.db")
    await store.write(put("a"))
    commit = store._commit

    def broken(batch, compactions):  # type: ignore[no-untyped-def]
        raise sqlite3.OperationalError("disk full")

    store._commit = broken  # type: ignore[method-assign]
    with pytest.raises(StoreFailed, match="disk full"):
        await store.write(put("b"))
    store._commit = commit  # type: ignore[method-assign]

    assert store.find(key("b")) is None
    made = await store.write(put("b"))
    assert made.revision > 1
    await store.close()


async def test_a_damaged_file_is_named_and_left_alone(tmp_path: Path):
    path = tmp_path / "state.db"
    store = SqliteStore(path)
    for number in range(200):
        await store.write(put(f"p{number}", value="x" * 500))
    await store.close()
    content = bytearray(path.read_bytes())
    content[4096 * 3 : 4096 * 6] = b"\xff" * (4096 * 3)
    path.write_bytes(content)

    with pytest.raises(UnusableFile, match=r"state\.db"):
        SqliteStore(path)

    assert path.read_bytes() == bytes(content)


@pytest.mark.parametrize(
    "content", [b"this is no database at all, whatever its name says", b"SQLite format 3\x00" + b"\x01" * 80]
)
def test_a_foreign_file_is_named_and_left_alone(tmp_path: Path, content: bytes):
    path = tmp_path / "state.db"
    path.write_bytes(content)

    with pytest.raises(UnusableFile, match=r"state\.db"):
        SqliteStore(path)

    assert path.read_bytes() == content


async def test_a_file_of_a_newer_format_is_named_and_left_alone(tmp_path: Path):
    path = tmp_path / "state.db"
    store = SqliteStore(path)
    await store.write(put("a"))
    await store.close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {FILE_FORMAT + 1}")
    connection.close()
    before = path.read_bytes()

    with pytest.raises(UnusableFile, match="newer release"):
        SqliteStore(path)

    assert path.read_bytes() == before


async def test_a_second_server_cannot_open_the_same_file(tmp_path: Path):
    store = SqliteStore(tmp_path / "state.db")
    await store.write(put("a"))

    with pytest.raises(UnusableFile, match="locked"):
        SqliteStore(tmp_path / "state.db")

    await store.close()
