"""Short processes (`true`) through the whole system and one agent: pods per second from submit to Completed.

Also whether any is lost, and what of descriptors and memory stays behind after each round.

python benchmarks/agent_throughput.py [--pods 1000] [--jobs 10] [--rounds 3] [--network auto|isolated|host]
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.running_server import Client

JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods"
PATIENCE = 300


class Footprint:
    """Of the system and of its supervisor: descriptors and resident memory."""

    def __init__(self, system: int, folder: str) -> None:
        self._processes = {"system": system, "supervisor": supervisor_of(folder)}

    def cpu(self) -> dict[str, float]:
        return {name: cpu_seconds(pid) for name, pid in self._processes.items()}

    def __str__(self) -> str:
        return "; ".join(
            f"{name}: {len(os.listdir(f'/proc/{pid}/fd'))} descriptors, {resident(pid)} MB"
            for name, pid in self._processes.items()
        )


def supervisor_of(folder: str) -> int:
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                words = Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"volcano.embedded.agent.processes.supervisor" in words and folder.encode() in b" ".join(words):
                return int(entry)
    raise SystemExit("there is no supervisor")


def cpu_seconds(process: int) -> float:
    """Of the process and of its children that have ended."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def resident(process: int) -> int:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) // 1024
    return 0


def a_job(name: str, pods: int) -> dict[str, Any]:
    container = {"name": "main", "image": "host", "command": ["true"], "resources": {"requests": {"cpu": "10m"}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    task = {"name": "t", "replicas": pods, "minAvailable": 1, "template": template}
    return {"metadata": {"name": name}, "spec": {"minAvailable": 1, "schedulerName": "volcano", "tasks": [task]}}


def one_round(api: Client, pods: int, jobs: int) -> str:
    began = time.perf_counter()
    for number in range(jobs):
        assert api.create(JOBS, a_job(f"short-{number}", pods // jobs)).status == 201
    while True:
        phases = Counter((job.get("status") or {}).get("state", {}).get("phase") for job in api.get(JOBS).body["items"])
        if phases["Completed"] == jobs:
            break
        if time.perf_counter() - began > PATIENCE or phases["Failed"] or phases["Aborted"]:
            raise SystemExit(f"not all jobs completed: {dict(phases)}")
        time.sleep(0.1)
    seconds = time.perf_counter() - began
    ended = Counter(pod["status"]["phase"] for pod in api.get(PODS).body["items"])
    for number in range(jobs):
        api.delete(f"{JOBS}/short-{number}")
    while api.get(PODS, limit=1).body["items"]:
        time.sleep(0.1)
    return f"{seconds:.1f} s, {pods / seconds:.0f} pods/s from submit to Completed; {dict(ended)}"


def measure(pods: int, jobs: int, rounds: int, network: str) -> None:
    with tempfile.TemporaryDirectory(prefix="volcano-bench-", ignore_cleanup_errors=True) as folder:
        command = [sys.executable, "-m", "volcano", "up", "--data-dir", folder, "--port", "0", "--pod-network", network]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if "volcano is up" in line:
                    break
            threading.Thread(target=process.stdout.read, daemon=True).start()
            api = Client(Path(folder) / "kubeconfig")
            one_round(api, 20, 1)  # the supervisor comes after the API server
            footprint = Footprint(process.pid, folder)
            print(f"before: {footprint}")
            for _ in range(rounds):
                spent = footprint.cpu()
                print(f"{pods} pods in {jobs} jobs: {one_round(api, pods, jobs)}")
                each = {name: (now - spent[name]) / pods * 1e3 for name, now in footprint.cpu().items()}
                print(f"CPU per pod: system {each['system']:.1f} ms, supervisor and pods {each['supervisor']:.1f} ms")
                print(f"after: {footprint}", flush=True)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(90)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--network", choices=["auto", "host", "isolated"], default="auto")
    options = parser.parse_args()
    measure(options.pods, options.jobs, options.rounds, options.network)
