"""Why jobs whose pods have a node do not run, on a real system with real processes: missing objects, images, commands,
exit codes, memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.stories.builders import a_job, a_task
from tests.system.explain.asking import with_container, with_spec
from tests.system.real_system import JOBS, Up, environment, running_up, wait_until

pytestmark = pytest.mark.timeout(240)
VCCTL = Path(sys.executable).with_name("vcctl")
YOU, FAILING = "needs a change by you", "failing"
SHELL = ["sh", "-c"]


def a_command(*words: str, restart: str = "Never", cpu: str = "10m", **container: Any) -> dict[str, Any]:
    return with_container(a_task(cpu=cpu, restart=restart), command=list(words), **container)


WANTS_SECRET = {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "creds", "key": "a"}}}]}
MOUNTS_SECRET = {"volumeMounts": [{"name": "v", "mountPath": "/creds"}]}
TASKS: dict[str, dict[str, Any]] = {
    "secret": a_command("true", **WANTS_SECRET),
    "mounted": with_spec(
        a_command("true", **MOUNTS_SECRET), volumes=[{"name": "v", "secret": {"secretName": "creds"}}]
    ),
    "settings": a_command("true", envFrom=[{"configMapRef": {"name": "setings"}}]),
    "image": with_container(a_task(cpu="10m"), image="registry.example/app:1"),
    "nowhere": with_spec(a_command("true"), nodeName="node-99"),
    "unknown": a_command("trian-model", restart="OnFailure"),
    "crash": a_command(*SHELL, "echo no data; exit 3", restart="OnFailure"),
    "fails": a_command(*SHELL, "echo the file is empty; exit 4"),
}


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with running_up(tmp_path_factory.mktemp("placed")) as running:
        settings = {"metadata": {"name": "settings"}}
        assert running.api.create("/api/v1/namespaces/default/configmaps", settings).status == 201
        for name, task in TASKS.items():
            assert running.api.create(JOBS, a_job(name, task, maxRetry=1)).status == 201
        yield running


def explained(up: Up, name: str) -> dict[str, Any]:
    done = subprocess.run(
        [VCCTL, "explain", f"vcjob/{name}", "-o", "json", "--kubeconfig", str(up.data / "kubeconfig")],
        env=environment(up.folder), capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def until(up: Up, name: str, reason: str) -> dict[str, Any]:
    """The answer as soon as it is this reason."""
    last: list[dict[str, Any]] = []

    def asked() -> dict[str, Any] | None:
        last[:] = [explained(up, name)]
        return last[0] if last[0]["reason"] == reason else None

    try:
        return dict(wait_until(asked, reason, 30))
    except AssertionError:
        raise AssertionError(f"{name}: {last}") from None


@pytest.mark.parametrize("name", ["secret", "mounted"])
def test_a_secret_that_does_not_exist(up: Up, name: str) -> None:
    found = until(up, name, "SecretNotFound")

    node = found["facts"]["node"]
    assert found["text"] == f'Secret "creds" not found (pod {name}-worker-0 on node {node})'
    assert (found["tier"], found["changes"][0]["sentence"]) == (YOU, "create Secret creds")


def test_lists_of_jobs_have_the_same_reason(up: Up) -> None:
    found = until(up, "secret", "SecretNotFound")

    def listed() -> bool:
        state = up.api.get(f"{JOBS}/secret").body["status"]["state"]
        return (state.get("reason"), state.get("message")) == (found["reason"], found["text"])

    wait_until(listed, "the Job's status has the reason", 30)


def test_a_config_map_that_does_not_exist(up: Up) -> None:
    found = until(up, "settings", "ConfigMapNotFound")

    assert found["text"].startswith('ConfigMap "setings" not found (pod settings-worker-0 on node ')
    assert found["text"].endswith("; did you mean settings?")
    assert (found["tier"], found["changes"][0]["sentence"]) == (YOU, "use ConfigMap settings")


def test_an_image_without_a_command(up: Up) -> None:
    found = until(up, "image", "ImageHasNoCommand")

    assert found["text"] == (
        "image registry.example/app:1 has no command here; give container main a command (pod image-worker-0)"
    )
    assert found["tier"] == YOU


def test_a_node_that_does_not_exist(up: Up) -> None:
    found = until(up, "nowhere", "NodeNotFound")

    assert found["text"] == "node node-99, which pod nowhere-worker-0 names, does not exist"
    assert found["tier"] == YOU


def test_a_command_that_does_not_exist(up: Up) -> None:
    found = until(up, "unknown", "CommandNotFound")

    assert found["text"].startswith("the command of container main cannot be started: ")
    assert "trian-model" in found["text"] and found["tier"] == FAILING


def test_a_crash_loop_has_its_exit_code_its_count_and_the_last_line_of_its_log(up: Up) -> None:
    found = until(up, "crash", "ExitCode")

    assert found["text"].startswith("exit code 3")
    assert found["text"].endswith("(pod crash-worker-0); last line of its log: no data")
    assert found["tier"] == FAILING and found["facts"]["count"] >= 1


def test_a_job_that_failed_has_its_exit_code_and_the_last_line_of_its_log(up: Up) -> None:
    up.until_phase("fails", "Failed")

    found = explained(up, "fails")

    assert found["text"].endswith("exit code 4 (pod fails-worker-0); last line of its log: the file is empty")
    assert found["tier"] == FAILING


def test_a_container_that_used_more_memory_than_its_limit(up: Up) -> None:
    hungry = a_command(
        sys.executable, "-c", "held = bytearray(300 << 20)", restart="OnFailure",
        resources={"requests": {"cpu": "10m"}, "limits": {"memory": "64Mi"}},
    )  # fmt: skip
    assert up.api.create(JOBS, a_job("hungry", hungry)).status == 201

    found = until(up, "hungry", "OutOfMemory")

    assert found["text"].startswith("container main used more memory than its limit of 64Mi and was killed")
    assert found["tier"] == FAILING
    assert found["changes"][0]["sentence"] == "raise the memory limit of main from 64Mi to 128Mi"
