"""`volcano simulate --from-cluster`: what a running system will do under another configuration."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from .real_system import JOBS, VOLCANO, environment, running_up, wait_until


def job(name: str, replicas: int) -> dict[str, object]:
    container = {"name": "main", "image": "x", "command": ["sleep", "3600"], "resources": {"requests": {"cpu": "1"}}}
    task = {"name": "task", "replicas": replicas, "template": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"minAvailable": replicas, "runningEstimate": "10m", "tasks": [task]},
    }


def test_running_jobs_go_on_and_waiting_ones_follow_when_they_end(tmp_path: Path) -> None:
    with running_up(tmp_path, "--ephemeral", "--simulated-nodes", "2", "--node-cpu", "2") as up:
        for name, replicas in (("runs", 3), ("waits", 2)):
            assert up.api("POST", JOBS, job(name, replicas)).status == 201
            wait_until(lambda name=name: up.phase(name), f"{name} is seen")
        up.until_phase("runs", "Running")

        command = [*VOLCANO, "simulate", "--from-cluster", "--kubeconfig", str(up.data / "kubeconfig")]
        done = subprocess.run(
            [*command, "--policy", "fcfs", "--json"],
            capture_output=True,
            text=True,
            env=environment(tmp_path),
            timeout=100,
        )

    assert done.returncode == 0, done.stderr
    of = json.loads(done.stdout)["policies"]["fcfs"]
    assert (of["jobs"], of["finished"]) == (2, 2)
    assert of["starvation"]["job"].startswith("waits")
    assert 500.0 < of["starvation"]["longest_wait"] <= 600.0
