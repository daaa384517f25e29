"""How long GET /readyz takes while the scheduler works on thousands of nodes: `volcano up` as users start it, over TLS.

python benchmarks/readyz_latency.py [--nodes 5000] [--jobs 100] [--pods 50] [--seconds 20]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.running_server import Client

JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
PROXY = "/api/v1/namespaces/volcano-system/services/http:volcano-scheduler:8080/proxy"


@contextmanager
def running_up(nodes: int) -> Iterator[Client]:
    with tempfile.TemporaryDirectory(prefix="volcano-bench-") as folder:
        command = [sys.executable, "-m", "volcano", "up", "--ephemeral", "--data-dir", folder, "--port", "0"]
        process = subprocess.Popen([*command, "--simulated-nodes", str(nodes)], stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if "volcano is up" in line:
                    break
            threading.Thread(target=process.stdout.read, daemon=True).start()
            yield Client(Path(folder) / "kubeconfig")
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()


class Asker(threading.Thread):
    """Asks over one connection, a hundred times a second at most, and keeps how long each answer took."""

    def __init__(self, api: Client) -> None:
        super().__init__(daemon=True)
        self._api, self.times, self._enough = api, list[float](), threading.Event()

    def run(self) -> None:
        connection = self._api.connect()
        while not self._enough.is_set():
            began = time.perf_counter()
            connection.request("GET", "/readyz")
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 200
            took = time.perf_counter() - began
            self.times.append(took)
            time.sleep(max(0.0, 0.01 - took))

    def stop(self) -> list[float]:
        self._enough.set()
        self.join()
        return sorted(self.times)


def a_job(name: str, pods: int, cpu: str) -> dict[str, Any]:
    container = {"name": "main", "image": "any", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    task = {"name": "worker", "replicas": pods, "template": template}
    return {"metadata": {"name": name}, "spec": {"minAvailable": pods, "schedulerName": "volcano", "tasks": [task]}}


def turns(api: Client) -> int:
    return int(api.get(f"{PROXY}/state").body["turns"])


def tell(what: str, times: list[float], more: str = "") -> None:
    at = [times[min(len(times) - 1, int(len(times) * q))] * 1e3 for q in (0.5, 0.9, 0.99)]
    print(f"{what}: p50 {at[0]:.1f} ms, p90 {at[1]:.1f} ms, p99 {at[2]:.1f} ms, max {times[-1] * 1e3:.1f} ms "
          f"({len(times)} requests){more}", flush=True)  # fmt: skip


def measure(nodes: int, jobs: int, pods: int, seconds: float) -> None:
    with running_up(nodes) as api:
        time.sleep(10)  # until all have seen all nodes
        asker = Asker(api)
        asker.start()
        time.sleep(3)
        tell(f"{nodes} nodes, idle", asker.stop())

        asker = Asker(api)
        asker.start()
        began = time.perf_counter()
        for number in range(jobs):
            assert api.create(JOBS, a_job(f"job-{number}", pods, "1")).status == 201
        while not all(_is_running(job) for job in api.get(JOBS).body["items"]):
            time.sleep(1)
        took = time.perf_counter() - began
        rate = f"; {took:.1f} s, {jobs * pods / took:.0f} pods/s"
        tell(f"while {jobs} gangs of {pods} are placed", asker.stop(), rate)

        # Gangs that never fit: every cycle asks all nodes for each, places what fits and gives it back.
        for number in range(2):
            api.create(JOBS, a_job(f"waiting-{number}", nodes + 10, "20"))
        time.sleep(5)
        asker, before = Asker(api), turns(api)
        asker.start()
        time.sleep(seconds)
        tell("while gangs of more than all nodes are tried", asker.stop(), f"; {turns(api) - before} cycles")


def _is_running(job: dict[str, Any]) -> bool:
    return bool((job.get("status") or {}).get("state", {}).get("phase") == "Running")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--pods", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=20)
    options = parser.parse_args()
    measure(options.nodes, options.jobs, options.pods, options.seconds)
