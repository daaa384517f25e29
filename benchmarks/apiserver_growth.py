"""What requests and questions cost as there is more: `python benchmarks/apiserver_growth.py [objects] [watchers] …`.

`objects`: pods in the store; a create, a get, a status patch and a page of 500. `watchers`: an update that all of them
receive. `history`: finished jobs in the history's database; the newest page, one job, usage of 30 days, one more job
recorded. Medians of processor time, in process, with the exponent by which each grows (1: twice the size, twice the
cost; 0: none). `--quick` leaves out the largest sizes.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import uvloop
from apiserver_in_process import a_pod
from dashboard import add_past, fill
from scheduler_growth import exponent, memory, spinning

from volcano.embedded.apiserver.server import ADMIN, ApiServer
from volcano.embedded.apiserver.store.sqlite_store import SqliteStore
from volcano.history import queries
from volcano.history.batch import RowBatch
from volcano.history.commit import commit
from volcano.history.daily_sums import sum_days
from volcano.history.database import Database
from volcano.history.questions import JobQuestion, UsageQuestion
from volcano.history.usage import usage
from volcano.machinery.clock import SystemClock
from volcano.machinery.transport import Request

PODS = "/api/v1/namespaces/default/pods"
HEADERS = {"content-type": "application/json", "user-agent": "bench/1"}
MERGE = {**HEADERS, "content-type": "application/merge-patch+json"}
WRITERS = 64
ROUNDS = 25
NODES = 100

Sizes = list[int]
Points = dict[str, list[tuple[int, float]]]


async def sent(server: ApiServer, method: str, path: str, *query: tuple[str, str], body: bytes = b"") -> bytes:
    headers = MERGE if method == "PATCH" else HEADERS
    answer = await server.handle(Request(method, path, query, headers, body, ADMIN))
    assert answer.status < 300, answer.body
    return answer.body


async def cost(work: Callable[[int], Awaitable[object]]) -> float:
    """The median of the processor time of one call, the thread of the store included."""
    times = []
    for number in range(ROUNDS):
        begun = time.process_time()
        await work(number)
        times.append(time.process_time() - begun)
    return statistics.median(times)


def add(points: Points, size: int, found: dict[str, float]) -> None:
    for what, seconds in found.items():
        points.setdefault(what, []).append((size, seconds))
        print(f"{size:>9,} {what:24} {seconds * 1e6:10,.0f} µs", flush=True)


def show_exponents(points: Points) -> None:
    for what, costs in points.items():
        if len(costs) > 1:
            print(f" exponent {what:24} {exponent(costs):10.2f}", flush=True)


# -- objects -------------------------------------------------------------------------------------------------------
async def objects(sizes: Sizes) -> None:
    """One server that is filled up step by step."""
    points: Points = {}
    with tempfile.TemporaryDirectory() as folder:
        server = ApiServer(SqliteStore(Path(folder) / "state.db"), clock=SystemClock())
        await server.start()
        begun, first = memory(), 0
        for size in sizes:
            await fill_with_pods(server, first, size)
            first = size
            add(points, size, await object_costs(server, size))
            print(f"{size:>9,} memory a pod {(memory() - begun) / size / 1024:25.1f} KiB", flush=True)
        await server.close()
    show_exponents(points)


async def fill_with_pods(server: ApiServer, first: int, end: int) -> None:
    numbers = iter(range(first, end))

    async def writer() -> None:
        for number in numbers:
            await sent(server, "POST", PODS, body=a_pod(number))

    await asyncio.gather(*(writer() for _ in range(WRITERS)))


async def object_costs(server: ApiServer, size: int) -> dict[str, float]:
    step = size // ROUNDS
    status = msgspec.json.encode({"status": {"phase": "Running"}})
    return {
        "create": await cost(lambda n: sent(server, "POST", PODS, body=a_pod(10**9 + size + n))),
        "get": await cost(lambda n: sent(server, "GET", f"{PODS}/bench-{n * step}")),
        "status patch": await cost(lambda n: sent(server, "PATCH", f"{PODS}/bench-{n * step}/status", body=status)),
        "page of 500": await cost(lambda _: sent(server, "GET", PODS, ("limit", "500"))),
    }


# -- watchers ------------------------------------------------------------------------------------------------------
async def watchers(sizes: Sizes) -> None:
    points: Points = {}
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            server = ApiServer(SqliteStore(Path(folder) / "state.db"), clock=SystemClock())
            await server.start()
            add(points, size, {"update seen by all": await update_cost(server, size)})
            await server.close()
    show_exponents(points)


async def update_cost(server: ApiServer, size: int) -> float:
    """From an update to its event in the hands of every watcher."""
    path = "/api/v1/namespaces/default/configmaps"
    await sent(server, "POST", path, body=b'{"metadata":{"name":"ticker"}}')
    seen, arrived = [0], asyncio.Event()

    async def watch() -> None:
        answer = await server.handle(Request("GET", path, (("watch", "true"),), HEADERS, user=ADMIN))
        assert answer.stream is not None
        async for chunk in answer.stream:
            seen[0] += chunk.count(b"\n")
            arrived.set()

    async def seen_by_all(events: int) -> None:
        while seen[0] < events:
            arrived.clear()
            await arrived.wait()

    watching = [asyncio.ensure_future(watch()) for _ in range(size)]
    before = await sent(server, "GET", path)
    present = len(msgspec.json.decode(before)["items"])
    await seen_by_all(size * present)  # the objects that are there already

    async def update(number: int) -> None:
        body = msgspec.json.encode({"data": {"tick": str(number)}})
        await sent(server, "PATCH", f"{path}/ticker", body=body)
        await seen_by_all(size * (present + number + 1))

    found = await cost(update)
    for each in watching:
        each.cancel()
    await asyncio.gather(*watching, return_exceptions=True)
    return found


# -- history -------------------------------------------------------------------------------------------------------
async def history(sizes: Sizes) -> None:
    points: Points = {}
    now = datetime.now(UTC)
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "history.db"
            fill(path, size, NODES, now)
            database = Database(f"sqlite:///{path}")
            database.prepare()
            sum_days(database, now)  # as the upkeep does
            add(points, size, await history_costs(database, size, now))
            print(f"{size:>9,} disk a job {path.stat().st_size / size / 1024:27.1f} KiB", flush=True)
            database.close()
    show_exponents(points)


async def history_costs(database: Database, size: int, now: datetime) -> dict[str, float]:
    month = UsageQuestion(since=now - timedelta(days=30), until=now, by=("user",))

    async def record(number: int) -> None:
        batch = RowBatch()
        add_past(batch, 10**9 + number, NODES, now - timedelta(hours=3))
        commit(database, batch)

    async def ask(question: Callable[[], object]) -> None:
        question()

    return {
        "newest page": await cost(lambda _: ask(lambda: queries.jobs(database, JobQuestion()))),
        "one job": await cost(lambda n: ask(lambda: queries.story(database, f"past-{n * size // ROUNDS}"))),
        "usage of 30 days": await cost(lambda _: ask(lambda: usage(database, month, now))),
        "one more job": await cost(record),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", nargs="*", choices=["objects", "watchers", "history", []], default=[])
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    print(f"spinning {spinning() * 1000:.0f} ms")
    measured = {
        "objects": (objects, [1_000, 10_000, 100_000]),
        "watchers": (watchers, [1, 10, 100, 500]),
        "history": (history, [1_000, 10_000, 100_000]),
    }
    for name in options.what or measured:
        measure, sizes = measured[name]
        print(f"{name}:", flush=True)
        uvloop.run(measure(sizes[:-1] if options.quick else sizes))


if __name__ == "__main__":
    main()
