"""How fast the API server is without HTTP: durable pod creates, lists, memory. Prints figures.

python benchmarks/apiserver_in_process.py [pods]
"""

from __future__ import annotations

import asyncio
import resource
import sys
import tempfile
import time
from pathlib import Path

import msgspec
import uvloop

from volcano.embedded.apiserver.server import ADMIN, ApiServer
from volcano.embedded.apiserver.store.sqlite_store import SqliteStore
from volcano.machinery.clock import SystemClock
from volcano.machinery.transport import Request

WRITERS = 64


def a_pod(number: int) -> bytes:
    """A pod much like those of a Volcano job: labels, resources, a few variables."""
    return msgspec.json.encode(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"bench-{number}",
                "labels": {"app": "bench", "volcano.sh/job-name": "bench", "volcano.sh/task-index": str(number)},
                "annotations": {"scheduling.k8s.io/group-name": "bench", "volcano.sh/task-spec": "worker"},
            },
            "spec": {
                "schedulerName": "volcano",
                "restartPolicy": "OnFailure",
                "containers": [
                    {
                        "name": "main",
                        "image": "busybox:1.36",
                        "command": ["sh", "-c", "sleep 60"],
                        "env": [{"name": "VC_TASK_INDEX", "value": str(number)}, {"name": "MODE", "value": "bench"}],
                        "resources": {"requests": {"cpu": "500m", "memory": "256Mi"}, "limits": {"memory": "256Mi"}},
                    }
                ],
            },
        }
    )


async def main(pods: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        server = ApiServer(SqliteStore(Path(folder) / "state.db"), clock=SystemClock())
        await server.start()
        numbers = iter(range(pods))
        headers = {"content-type": "application/json", "user-agent": "bench/1"}

        async def writer() -> None:
            for number in numbers:
                request = Request("POST", "/api/v1/namespaces/default/pods", (), headers, a_pod(number), ADMIN)
                answer = await server.handle(request)
                assert answer.status == 201, answer.body

        started, busy = time.perf_counter(), time.process_time()
        await asyncio.gather(*(writer() for _ in range(WRITERS)))
        took, cpu = time.perf_counter() - started, time.process_time() - busy
        print(f"{pods} durable creates in process, {WRITERS} at a time: {pods / took:,.0f}/s", end="; ")
        print(f"{cpu / pods * 1e6:.0f} µs of CPU each, so {pods / cpu:,.0f}/s on an idle machine")

        started = time.perf_counter()
        answer = await server.handle(Request("GET", "/api/v1/pods", user=ADMIN))
        took = time.perf_counter() - started
        print(f"list of {pods} pods: {took * 1000:.1f} ms, {len(answer.body) / 2**20:.1f} MiB")
        del answer
        started = time.perf_counter()
        selected = Request("GET", "/api/v1/pods", (("labelSelector", "volcano.sh/task-index=7"),), user=ADMIN)
        await server.handle(selected)
        print(f"list by label: {(time.perf_counter() - started) * 1000:.1f} ms")
        print(f"largest resident memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
        await server.close()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000))
