"""A job that runs when `volcano up` is stopped goes on after the next start, as its policy says."""

from __future__ import annotations

import pytest

from .real_system import JOBS, running_up, wait_until

SCRIPT = "until [ -e {go} ]; do sleep 0.1; done"


def a_job(name, go, policies):
    container = {"name": "c", "image": "python:3", "command": ["sh", "-c", SCRIPT.format(go=go)]}
    task = {"name": "t", "replicas": 2, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"minAvailable": 2, "policies": policies, "tasks": [task]},
    }


@pytest.mark.timeout(300)
def test_jobs_start_again_and_are_not_failed(tmp_path):
    go = "/var/lib/volcano-test-" + tmp_path.name
    restart = [{"event": "PodEvicted", "action": "RestartJob"}]
    with running_up(tmp_path) as up:
        up.api.create(JOBS, a_job("plain", go, []))
        up.api.create(JOBS, a_job("policy", go, restart))
        for name in ("plain", "policy"):
            up.until_phase(name, "Running")
        wait_until(lambda: {p["status"]["phase"] for p in up.pods().values()} == {"Running"}, "all pods run")
        before = {name: pod["metadata"]["uid"] for name, pod in up.pods().items()}
        assert len(before) == 4

        up.stop()
        up.start()

        def run_again():
            pods = up.pods()
            return len(pods) == 4 and all(
                pod["status"]["phase"] == "Running" and pod["metadata"]["uid"] != before[name]
                for name, pod in pods.items()
            )

        wait_until(run_again, "all pods run again")
        for name in ("plain", "policy"):
            up.until_phase(name, "Running")
