"""The server is killed at random moments under load: every acknowledged write is there, and no half one."""

from __future__ import annotations

import asyncio
import os
import random
import select
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from tests.system.killable_writer import STEPS_OF_A_LIFE, WORKERS
from volcano.embedded.apiserver.store.contract import ObjectKey
from volcano.embedded.apiserver.store.sqlite_store import SqliteStore

ROUNDS = int(os.environ.get("VOLCANO_KILL_ROUNDS", "12"))
WRITER = Path(__file__).with_name("killable_writer.py")


@pytest.mark.timeout(600)
def test_every_acknowledged_write_survives_being_killed(tmp_path: Path):
    chance = random.Random(7)
    path, steps = tmp_path / "state.db", [0] * WORKERS
    for _ in range(ROUNDS):
        acknowledged = killed_run(path, steps, chance.uniform(0.0, 0.4))

        steps = after_restart(path, steps, acknowledged)

    assert sum(steps) > ROUNDS * WORKERS


def killed_run(path: Path, steps: list[int], delay: float) -> dict[int, int]:
    """Start the writer, kill it a random moment after its first write; worker → last acknowledged step."""
    arguments = [sys.executable, str(WRITER), str(path), ",".join(map(str, steps))]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, env=environment) as writer:
        told, deadline = b"", None
        while deadline is None or time.monotonic() < deadline:
            readable, _, _ = select.select([writer.stdout], [], [], 0.01)
            if readable:
                piece = os.read(writer.stdout.fileno(), 65536)
                assert piece, "the writer ended by itself"
                told += piece
                deadline = deadline or time.monotonic() + delay
        os.kill(writer.pid, signal.SIGKILL)
        told += writer.stdout.read()
        writer.wait()
    acknowledged: dict[int, int] = {}
    for line in told.decode().splitlines(keepends=True):
        if line.endswith("\n"):
            worker, step = map(int, line.split())
            acknowledged[worker] = step
    return acknowledged


def after_restart(path: Path, before: list[int], acknowledged: dict[int, int]) -> list[int]:
    """Check what is there, and answer with each worker's next step."""
    store = SqliteStore(path, max_changes=500)
    following = []
    for worker in range(WORKERS):
        last = acknowledged.get(worker, before[worker] - 1)
        step = step_of(store, worker)
        allowed = {shown(last), shown(last + 1)}  # the last acknowledged, or the one that was on its way
        assert step in allowed, f"worker {worker}: {step} is not among {allowed}"
        following.append(last + 2 if step == shown(last + 1) and step != shown(last) else last + 1)
    for resource in store.resources():
        for stored in store.scan(resource):
            assert msgspec.json.decode(stored.raw)["metadata"]["resourceVersion"] == str(stored.revision)
    asyncio.run(store.close())
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    return following


def step_of(store: SqliteStore, worker: int) -> int | None:
    stored = store.find(ObjectKey("configmaps", "default", f"w{worker}"))
    return int(msgspec.json.decode(stored.raw)["data"]["step"]) if stored else None


def shown(step: int) -> int | None:
    """What the object shows after a step: nothing once it is deleted."""
    return None if step < 0 or step % STEPS_OF_A_LIFE == STEPS_OF_A_LIFE - 1 else step
