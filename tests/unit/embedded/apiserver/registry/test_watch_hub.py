"""The log → many streams: filtering, sharing, slow watchers, bookmarks, ends."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from volcano.api.selectors import parse_label_selector
from volcano.embedded.apiserver.registry.resources import ResourceRegistry
from volcano.embedded.apiserver.registry.selection import Selection
from volcano.embedded.apiserver.registry.watch_hub import BOOKMARK_INTERVAL_SECONDS, Watch, WatchHub
from volcano.embedded.apiserver.store.contract import Compacted, FutureRevision, ObjectKey, Write
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.machinery.clock import run_virtually

PODS = ResourceRegistry().find("", "v1", "pods")


class Plain:
    key = "plain"

    def of(self, raw: bytes) -> bytes:
        return raw

    def bookmark(self, metadata: dict) -> bytes:
        return msgspec.json.encode({"kind": "Pod", "metadata": metadata})


def watch(labels: str = "", namespace: str = "", *, seconds: float = 60, bookmarks: bool = False) -> Watch:
    return Watch(Selection(PODS, namespace, "", parse_label_selector(labels)), Plain(), seconds, bookmarks)


async def put(store: MemoryStore, name: str, *, namespace: str = "default", **labels: str) -> int:
    key = ObjectKey("pods", namespace, name)
    current = store.find(key)

    def encode(revision: int) -> bytes:
        return msgspec.json.encode({"metadata": {"name": name, "labels": labels, "resourceVersion": str(revision)}})

    return (await store.write(Write(key, current.revision if current else 0, encode))).revision


async def drop(store: MemoryStore, name: str) -> None:
    key = ObjectKey("pods", "default", name)
    found = store.find(key)
    await store.write(Write(key, found.revision, lambda revision: found.raw, deletes=True))


async def told(stream, number: int) -> list[tuple[str, str]]:
    events: list[tuple[str, str]] = []
    async for chunk in stream:
        for line in chunk.splitlines():
            event = msgspec.json.decode(line)
            events.append((event["type"], event["object"]["metadata"].get("name", "")))
        if len(events) >= number:
            break
    return events


async def test_changes_come_in_order_and_each_once():
    store = MemoryStore()
    hub = WatchHub(store)
    stream = hub.stream(watch(), since=0)

    for number in range(100):
        await put(store, f"p{number}")

    assert await told(stream, 100) == [("ADDED", f"p{number}") for number in range(100)]
    assert hub.watchers == 1
    await stream.aclose()
    assert hub.watchers == 0


async def test_the_bytes_of_an_event_are_shared_among_watchers():
    store = MemoryStore()
    hub = WatchHub(store)
    streams = [hub.stream(watch(), since=0) for _ in range(3)]
    await put(store, "p")

    chunks = [await anext(stream) for stream in streams]

    (change,) = store.changes("pods", 0)
    assert len(change.encoded) == 1
    assert set(chunks) == set(change.encoded.values())


async def test_a_watcher_of_another_namespace_hears_nothing():
    store = MemoryStore()
    hub = WatchHub(store)
    stream = hub.stream(watch(namespace="other"), since=0)
    hearing = asyncio.ensure_future(told(stream, 1))
    await asyncio.sleep(0)
    await put(store, "p")
    await put(store, "q", namespace="other")

    assert await hearing == [("ADDED", "q")]


async def test_coming_into_and_going_out_of_a_selection():
    store = MemoryStore()
    hub = WatchHub(store)
    stream = hub.stream(watch("app=a"), since=0)
    await put(store, "p", app="b")
    await put(store, "p", app="a")
    await put(store, "p", app="a", more="x")
    await put(store, "p", app="b")
    await put(store, "p", app="a")
    await drop(store, "p")

    assert [kind for kind, _ in await told(stream, 5)] == ["ADDED", "MODIFIED", "DELETED", "ADDED", "DELETED"]


async def test_a_watcher_that_is_too_slow_is_cut_off_and_delays_nobody():
    store = MemoryStore()
    hub = WatchHub(store, max_lag=50)
    slow, quick = hub.stream(watch(), since=0), hub.stream(watch(), since=0)
    await put(store, "first")
    assert await told(slow, 1) == [("ADDED", "first")]  # and then reads no more for a while

    seen = 0
    for number in range(100):
        await put(store, f"p{number}")
        seen += len(await told(quick, 1))
    late = await told(slow, 1)

    assert seen == 101
    assert late[0][0] == "ERROR"
    assert await told(slow, 1) == []


async def test_a_watcher_whose_place_was_compacted_is_told_so():
    store = MemoryStore(max_changes=10)
    hub = WatchHub(store)
    stream = hub.stream(watch(), since=0)
    for number in range(50):
        await put(store, f"p{number}")

    chunk = await anext(stream)

    event = msgspec.json.decode(chunk)
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")


async def test_a_revision_that_is_gone_or_has_not_come_is_refused_at_once():
    store = MemoryStore(max_changes=2)
    hub = WatchHub(store)
    for _ in range(3):
        await put(store, "p")

    with pytest.raises(Compacted):
        hub.stream(watch(), since=1)
    with pytest.raises(FutureRevision):
        hub.stream(watch(), since=9)


def test_quiet_watchers_get_bookmarks_when_they_want_them():
    async def scenario() -> list[dict]:
        store = MemoryStore()
        hub = WatchHub(store)
        stream = hub.stream(watch("app=none", seconds=3 * BOOKMARK_INTERVAL_SECONDS, bookmarks=True), since=0)
        await put(store, "p", app="other")
        return [msgspec.json.decode(chunk) async for chunk in stream]

    events = run_virtually(scenario())

    assert [event["type"] for event in events] == ["BOOKMARK"]  # and none while there is nothing new to mark
    assert events[0]["object"]["metadata"]["resourceVersion"] == "1"


def test_a_watch_ends_when_its_time_is_up():
    async def scenario() -> float:
        hub = WatchHub(MemoryStore())
        chunks = [chunk async for chunk in hub.stream(watch(seconds=30), since=0)]
        assert chunks == []
        return asyncio.get_running_loop().time()

    assert run_virtually(scenario()) == pytest.approx(30)


async def test_closing_the_hub_ends_every_stream():
    hub = WatchHub(MemoryStore())
    streams = [asyncio.ensure_future(told(hub.stream(watch(), since=0), 1)) for _ in range(5)]
    await asyncio.sleep(0)

    hub.close()

    assert await asyncio.gather(*streams) == [[]] * 5
