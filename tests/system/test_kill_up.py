"""`volcano up` is killed in the middle of things and started again: what ran goes on, nothing runs twice, none is lost."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.system.real_system import JOBS, PODS, running_up, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(420)]

ELEMENT = "echo $VC_TASK_INDEX >> /marks/began; sleep 2; echo $VC_TASK_INDEX >> /marks/ended"


def an_array(marks: Path, *, size: int, command: str = ELEMENT, **template: Any) -> dict[str, Any]:
    container = {
        "name": "element",
        "image": "busybox",
        "command": ["sh", "-c", command],
        "resources": {"requests": {"cpu": "1"}},
        "volumeMounts": [{"name": "marks", "mountPath": "/marks"}],
    }
    spec = {
        "restartPolicy": "Never",
        "containers": [container],
        "volumes": [{"name": "marks", "hostPath": {"path": str(marks)}}],
        **template,
    }
    return {
        "metadata": {"name": "array"},
        "spec": {
            "minAvailable": 1,
            "schedulerName": "volcano",
            "plugins": {"env": []},
            "tasks": [{"name": "element", "replicas": size, "minAvailable": 1, "template": {"spec": spec}}],
        },
    }


def lines(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


def test_every_index_of_an_array_runs_to_its_end_once_however_often_the_system_is_killed(tmp_path):
    size, marks = 16, tmp_path / "marks"
    marks.mkdir()
    marks.chmod(0o777)  # pods are not root
    with running_up(tmp_path, "--node-cpu", "4") as up:
        assert up.api.create(JOBS, an_array(marks, size=size)).status == 201
        for begun in (0, 3, 7, 12):  # as it is taken in, when the first start, in the middle, near the end
            wait_until(lambda begun=begun: len(lines(marks / "began")) >= begun, f"{begun} indices began")
            up.kill()
            up.start()

        assert up.until_phase("array", "Completed", "Failed") == "Completed"
        pods = up.pods()

    once = Counter({str(index): 1 for index in range(size)})
    assert Counter(lines(marks / "began")) == once
    assert Counter(lines(marks / "ended")) == once
    assert {name: pod["status"]["phase"] for name, pod in pods.items()} == {
        f"array-element-{index}": "Succeeded" for index in range(size)
    }


def test_indices_that_end_while_the_system_is_down_are_counted(tmp_path):
    size, marks = 3, tmp_path / "marks"
    marks.mkdir()
    marks.chmod(0o777)  # pods are not root
    with running_up(tmp_path, "--node-cpu", "4") as up:
        up.api.create(JOBS, an_array(marks, size=size))
        wait_until(lambda: len(lines(marks / "began")) == size, "all began")
        up.kill()

        wait_until(lambda: len(lines(marks / "ended")) == size, "all ended with nobody watching")
        up.start()

        assert up.until_phase("array", "Completed", "Failed") == "Completed"
        assert len(lines(marks / "began")) == size


def test_when_the_supervisor_is_killed_its_pods_end_and_are_reported_lost(tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()
    marks.chmod(0o777)  # pods are not root
    with running_up(tmp_path, "--node-cpu", "4") as up:
        up.api.create(JOBS, an_array(marks, size=2, command="echo $$ >> /marks/began; sleep 1000"))
        wait_until(lambda: len(lines(marks / "began")) == 2, "both began")
        wait_until(lambda: {pod["status"]["phase"] for pod in up.pods().values()} == {"Running"}, "both reported")
        (before,) = roots(up.supervisors)
        holders = children(before)
        assert len(holders) == 2

        os.kill(before, signal.SIGKILL)

        assert up.until_phase("array", "Failed") == "Failed"
        pods = up.api.get(PODS).body["items"]
        ended = [pod["status"]["containerStatuses"][0]["state"]["terminated"] for pod in pods]
        assert [(each["reason"], each["exitCode"]) for each in ended] == [("ContainerStatusUnknown", 137)] * 2
        assert {pod["status"]["phase"] for pod in pods} == {"Failed"}
        wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in holders), "their processes ended")
        wait_until(lambda: up.supervisors and before not in up.supervisors, "another supervisor")


def test_a_killed_supervisor_is_noticed_by_the_next_system_too(tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()
    marks.chmod(0o777)  # pods are not root
    with running_up(tmp_path, "--node-cpu", "4") as up:
        up.api.create(JOBS, an_array(marks, size=1, command="echo $$ >> /marks/began; sleep 1000"))
        wait_until(lambda: [p["status"]["phase"] for p in up.pods().values()] == ["Running"], "it is reported running")
        (before,) = roots(up.supervisors)

        up.kill()
        os.kill(before, signal.SIGKILL)
        wait_until(lambda: not up.supervisors, "nothing of it is left")
        up.start()

        assert up.until_phase("array", "Failed") == "Failed"
        (pod,) = up.pods().values()
        ended = pod["status"]["containerStatuses"][0]["state"]["terminated"]
        assert (ended["reason"], ended["exitCode"]) == ("ContainerStatusUnknown", 137)


def children(process: int) -> list[int]:
    try:
        return [int(each) for each in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except OSError:
        return []  # it ended meanwhile


def roots(processes: list[int]) -> list[int]:
    """Those that no other of them started: containers' holders are forked from their supervisor and look alike."""
    below = {child for process in processes for child in children(process)}
    return [process for process in processes if process not in below]
