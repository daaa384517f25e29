"""`volcano history` on a real API server, with the rights of its service account: killed, back, and asked by users."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.running_server import Client
from volcano.install.rbac import rbac_parts
from volcano.install.values import Values, chosen_parts

from .admission_cases import a_job, a_task
from .components import Components, Process, apply, wait_for
from .real_system import RealSystem

PORT = re.compile(r"the history answers at port (\d+)")
VACCT = Path(sys.executable).parent / "vacct"


@pytest.fixture
def recorder_rights(api: Client, running: Components) -> None:
    """What the chart makes with history.enabled, which is off by default."""
    parts = chosen_parts(rbac_parts(Values({"history.enabled": True})), Values({"history.enabled": True}))
    apply(api, [body for body in parts if "history" in body["metadata"]["name"]])


class Recorder:
    def __init__(self, running: Components, database: str) -> None:
        self._running, self._database = running, database
        self.process = self._start()

    def _start(self) -> Process:
        return self._running.start(
            "history", "--kubeconfig", str(self._running.account("volcano-history")), "--database", self._database,
            "--listen-address", "127.0.0.1:0", "--leader-elect-lease-duration=3s",
            "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=0.5s",
        )  # fmt: skip

    def kill(self) -> None:
        self.process.kill()

    def restart(self) -> None:
        self.process = self._start()

    def jobs(self, kubeconfig: Path, namespace: str) -> Any:
        self.process.wait_for_word("the history answers at port")
        found = PORT.findall(self.process.log)
        words = [str(VACCT), "-o", "json", "--history-server", f"http://127.0.0.1:{found[-1]}", "-n", namespace]
        done = subprocess.run(
            [*words, "--kubeconfig", str(kubeconfig)], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return {job["name"]: job["phase"] for job in msgspec.json.decode(done.stdout)}


@pytest.fixture
def recorder(running: Components, recorder_rights: None, tmp_path: Path) -> Iterator[Recorder]:
    found = Recorder(running, f"sqlite:///{tmp_path / 'history.db'}")
    yield found
    found.process.stop()


async def test_jobs_are_recorded_with_the_rights_of_the_chart(
    recorder: Recorder, running: Components, system: RealSystem, api: Client
):
    reader = running.administrator(running.plane.url)
    await system.apply(a_job(a_task("a", 2), name="first"))
    await system.until(lambda: system.phase("first") == "Running")
    wait_for(lambda: recorder.jobs(reader, system.namespace) == {"first": "Running"}, why="it is recorded")

    recorder.kill()
    await system.apply(a_job(a_task("a"), name="second"))
    await system.until(lambda: system.phase("second") == "Running")
    recorder.restart()

    both = {"first": "Running", "second": "Running"}
    wait_for(lambda: recorder.jobs(reader, system.namespace) == both, why="what happened meanwhile is recorded")
    # Somebody without rights in the namespace sees nothing of it
    assert recorder.jobs(running.account("default", "default"), system.namespace) == {}
