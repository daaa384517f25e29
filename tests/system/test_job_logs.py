"""`vcctl job logs` and `volcano run` on a real system: what pods printed, and how a good job's end is worded."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.system.real_system import Up, environment, running_up, volcano_run

pytestmark = pytest.mark.timeout(240)
VCCTL = Path(sys.executable).with_name("vcctl")


def a_task(name: str, replicas: int, command: str, **more: object) -> dict:
    container = {"name": "c", "image": "any", "command": ["sh", "-c", command]}
    template = {"spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container]}}
    return {"name": name, "replicas": replicas, "template": template, **more}


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with running_up(tmp_path_factory.mktemp("logs")) as running:
        yield running


def vcctl(up: Up, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    kubeconfig = str(up.data / "kubeconfig")
    return subprocess.run(
        [VCCTL, *words, "--kubeconfig", kubeconfig],
        env=environment(folder), capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip


def test_logs_are_shown_and_the_end_of_a_good_job_is_no_failure(up: Up, tmp_path: Path) -> None:
    completes = [{"event": "TaskCompleted", "action": "CompleteJob"}]
    tasks = [
        a_task("master", 1, "echo first; echo second", policies=completes),
        a_task("worker", 2, "echo working; exec sleep 600"),
    ]
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "good"},
        "spec": {"schedulerName": "volcano", "minAvailable": 3, "tasks": tasks},
    }
    path = tmp_path / "job.yaml"
    path.write_text(yaml.safe_dump(job))

    ran = volcano_run(tmp_path, path, "--data-dir", up.data)

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.splitlines()[-1].endswith(": master succeeded; 2 workers ended with it"), ran.stdout
    assert "143" not in ran.stdout and "137" not in ran.stdout
    shown = vcctl(up, tmp_path, "job", "logs", "good", "--task", "master")
    assert shown.stdout == "good-master-0 | first\ngood-master-0 | second\n", shown.stderr
    followed = vcctl(up, tmp_path, "job", "logs", "good", "-f", "--pod", "good-master-0", "--grep", "^sec")
    assert (followed.stdout, followed.returncode) == ("good-master-0 | second\n", 0), followed.stderr
    assert vcctl(up, tmp_path, "job", "wait", "good", "--timeout", "10s").stdout == "job good is Completed\n"
    missing = vcctl(up, tmp_path, "job", "logs", "good", "--task", "none")
    assert missing.returncode == 255
    assert "it has good-master-0" in missing.stderr
