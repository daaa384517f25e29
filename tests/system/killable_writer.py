"""Run by test_durability: writes through an API server on disk as fast as it can, and tells every acknowledged write.

Each worker owns one object and walks it through create, updates and delete, over and over. A line `worker step` on
standard output is written only after the server acknowledged that step.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import msgspec

from volcano.embedded.apiserver.server import ADMIN, ApiServer
from volcano.embedded.apiserver.store.sqlite_store import SqliteStore
from volcano.machinery.clock import SystemClock
from volcano.machinery.transport import Request

WORKERS = 16
STEPS_OF_A_LIFE = 5
PATH = "/api/v1/namespaces/default/configmaps"


async def work(server: ApiServer, worker: int, first: int) -> None:
    step = first
    while True:
        name = f"w{worker}"
        body = {"metadata": {"name": name}, "data": {"step": str(step), "padding": "x" * 2000}}
        phase = step % STEPS_OF_A_LIFE
        if phase == 0:
            request = Request("POST", PATH, body=msgspec.json.encode(body), user=ADMIN)
        elif phase == STEPS_OF_A_LIFE - 1:
            request = Request("DELETE", f"{PATH}/{name}", user=ADMIN)
        else:
            request = Request("PUT", f"{PATH}/{name}", body=msgspec.json.encode(body), user=ADMIN)
        answer = await server.handle(request)
        assert answer.status in (200, 201), answer.body
        os.write(1, f"{worker} {step}\n".encode())
        step += 1


async def main(path: Path, first_steps: list[int]) -> None:
    server = ApiServer(SqliteStore(path, max_changes=500), clock=SystemClock())
    await server.start()
    await asyncio.gather(*(work(server, worker, first_steps[worker]) for worker in range(WORKERS)))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), [int(step) for step in sys.argv[2].split(",")]))
