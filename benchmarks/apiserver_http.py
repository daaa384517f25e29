"""The API server over HTTPS: pod creates from 8 clients, a list of 10,000 pods, 200 watchers at 100 updates a second.

    python benchmarks/apiserver_http.py [pods]

The server runs in a process of its own (this file with `serve`), the clients in this one.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import aiohttp
import uvloop
from apiserver_in_process import a_pod

from volcano.embedded.apiserver.server import ApiServer
from volcano.embedded.apiserver.serving.serve import serve
from volcano.embedded.apiserver.store.sqlite_store import SqliteStore
from volcano.machinery.clock import SystemClock
from volcano.machinery.garbage_collection import survivors_frozen
from volcano.machinery.kubeconfig import endpoint_from
from volcano.machinery.tls import client_context

CLIENTS = 8
WATCHERS = 200
UPDATES = 500
PODS = "/api/v1/namespaces/default/pods"


async def serve_until_killed(folder: Path) -> None:
    clock = SystemClock()
    server = ApiServer(SqliteStore(folder / "state.db"), clock=clock)
    await server.start()
    serving = serve(server, pki=folder / "pki", clock=clock, port=None, kubeconfig_path=folder / "kubeconfig")
    with survivors_frozen():  # as in every program of the project
        async with serving:
            print("ready", flush=True)
            while True:
                await asyncio.sleep(1)
                (folder / "usage.json").write_text(json.dumps(usage()))


def usage() -> dict[str, float]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {"cpu": used.ru_utime + used.ru_stime, "mib": used.ru_maxrss / 1024}


def cpu_of(process: int) -> float:
    """Seconds of CPU a process has used so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure(folder: Path, pods: int, server: int) -> None:
    endpoint = endpoint_from([folder / "kubeconfig"])
    connector = aiohttp.TCPConnector(limit=0, ssl=client_context(endpoint))
    async with aiohttp.ClientSession(endpoint.server, connector=connector) as session:
        await creates(session, pods, server)
        await lists(session, pods)
        await watches(session)
    await asyncio.sleep(1.5)
    used = json.loads((folder / "usage.json").read_text())
    print(f"the server used {used['cpu']:.1f} s of CPU and at most {used['mib']:.0f} MiB")


async def creates(session: aiohttp.ClientSession, pods: int, server: int) -> None:
    numbers = iter(range(pods))
    bodies = [a_pod(number) for number in range(pods)]

    async def client() -> None:
        for number in numbers:
            async with session.post(PODS, data=bodies[number], headers={"content-type": "application/json"}) as answer:
                assert answer.status == 201, await answer.text()
                await answer.read()

    started, busy = time.perf_counter(), cpu_of(server)
    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    took, cpu = time.perf_counter() - started, cpu_of(server) - busy
    print(f"{pods} durable creates over HTTPS from {CLIENTS} clients: {pods / took:,.0f}/s", end="; ")
    print(f"the server used {cpu / pods * 1e6:.0f} µs of CPU each")


async def lists(session: aiohttp.ClientSession, pods: int) -> None:
    took = []
    for _ in range(3):
        started = time.perf_counter()
        async with session.get("/api/v1/pods") as answer:
            body = await answer.read()
        took.append(time.perf_counter() - started)
    best, worst = min(took), max(took)
    print(f"list of {pods} pods over HTTPS: {best:.3f} s at best, {worst:.3f} s at worst, {len(body) / 2**20:.1f} MiB")


async def watches(session: aiohttp.ClientSession) -> None:
    """Delay from the moment an update was sent until each watcher saw it."""
    async with session.post("/api/v1/namespaces/default/configmaps", json={"metadata": {"name": "ticker"}}) as answer:
        since = (await answer.json())["metadata"]["resourceVersion"]
    sent: dict[int, float] = {}
    delays: list[float] = []
    query = {"watch": "true", "resourceVersion": since, "fieldSelector": "metadata.name=ticker"}

    async def watcher() -> None:
        long = aiohttp.ClientTimeout(120)
        async with session.get("/api/v1/namespaces/default/configmaps", params=query, timeout=long) as answer:
            seen = 0
            async for line in answer.content:
                seen += 1
                tick = int(json.loads(line)["object"]["data"]["tick"])
                delays.append(time.perf_counter() - sent[tick])
                if seen == UPDATES:
                    return

    slow = await session.get("/api/v1/namespaces/default/configmaps", params=query, timeout=aiohttp.ClientTimeout(120))
    watching = [asyncio.ensure_future(watcher()) for _ in range(WATCHERS)]
    await asyncio.sleep(1)
    started = time.perf_counter()
    merge = {"content-type": "application/merge-patch+json"}
    for tick in range(UPDATES):
        sent[tick] = time.perf_counter()
        change = json.dumps({"data": {"tick": str(tick)}})
        async with session.patch("/api/v1/namespaces/default/configmaps/ticker", data=change, headers=merge) as answer:
            await answer.read()
        await asyncio.sleep(max(0.0, started + (tick + 1) / 100 - time.perf_counter()))
    rate = UPDATES / (time.perf_counter() - started)
    await asyncio.wait_for(asyncio.gather(*watching), 60)
    slow.close()
    delays.sort()
    print(
        f"{WATCHERS} watchers and one that reads nothing, {rate:.0f} updates/s: {len(delays)} events, delay "
        f"{delays[len(delays) // 2] * 1000:.1f} ms median, {delays[int(len(delays) * 0.99)] * 1000:.1f} ms at 99 %"
    )


def main() -> None:
    if len(sys.argv) > 2 and sys.argv[1] == "serve":
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve_until_killed(Path(sys.argv[2])))
    pods = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen([sys.executable, __file__, "serve", folder], stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            assert server.stdout.readline().strip() == "ready"
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(measure(Path(folder), pods, server.pid))
        finally:
            server.kill()
            server.wait()


if __name__ == "__main__":
    main()
