"""`volcano run`: what it prints and how it ends, with and without a system that is already running."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.system.real_system import EXAMPLES, VOLCANO, environment, processes_naming, running_up, volcano_run

pytestmark = pytest.mark.timeout(240)


def a_job(name: str, command: str, **spec: object) -> dict:
    container = {"name": "c", "image": "any", "command": ["sh", "-c", command]}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"schedulerName": "volcano", "tasks": [{"name": "t", "replicas": 2, "template": template}], **spec},
    }


def written(folder: Path, *documents: dict) -> Path:
    path = folder / "jobs.yaml"
    path.write_text(yaml.safe_dump_all(documents))
    return path


def test_a_gang_is_shown_to_its_end_and_nothing_stays_behind(tmp_path: Path):
    done = volcano_run(tmp_path, EXAMPLES / "gang.yaml")

    assert done.returncode == 0, done.stderr
    assert "gang-leader-0 | leader: the sum is 7998000" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("gang Completed after ")
    assert done.stdout.splitlines()[-1].endswith(": 5 of 5 pods succeeded")
    assert "\x1b" not in done.stdout + done.stderr
    assert processes_naming(str(tmp_path)) == []
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_job_that_fails_ends_with_one(tmp_path: Path):
    policies = [{"event": "PodFailed", "action": "TerminateJob"}]

    done = volcano_run(tmp_path, written(tmp_path, a_job("bad", "exit 3", policies=policies)))

    assert done.returncode == 1, done.stdout
    assert "(exit code 3)" in done.stdout
    assert "\nbad Terminated after " in done.stdout


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kind: Job", "apiVersion"),
        ("a: [", "jobs.yaml"),
        (yaml.safe_dump(a_job("x", "true", minAvailable=7)), "minAvailable"),
        (
            yaml.safe_dump({"apiVersion": "nobody.example/v1", "kind": "Thing", "metadata": {"name": "x"}}),
            "nobody.example/v1",
        ),
    ],
)
def test_bad_input_is_told_and_ends_with_two(tmp_path: Path, text: str, words: str):
    path = tmp_path / "jobs.yaml"
    path.write_text(text)

    done = volcano_run(tmp_path, path)

    assert done.returncode == 2, done.stdout
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_that_is_not_there_is_bad_input(tmp_path: Path):
    done = volcano_run(tmp_path, "missing.yaml")

    assert (done.returncode, "missing.yaml" in done.stderr) == (2, True)


def a_batch_job(name: str, command: str, **spec: object) -> dict:
    container = {"name": "c", "image": "any", "command": ["sh", "-c", command]}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": template, **spec}}


def test_jobs_of_kubernetes_are_followed_beside_volcanos_and_deployments_are_not(tmp_path: Path):
    container = {"name": "c", "image": "any", "command": ["sleep", "600"]}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}},
        },
    }
    plain = a_batch_job("pi", "echo from-kubernetes", completions=2)

    done = volcano_run(tmp_path, written(tmp_path, deployment, plain, a_job("pi", "echo from-volcano")))

    assert done.returncode == 0, done.stdout + done.stderr
    assert "deployment web was applied; it is not followed" in done.stdout
    assert done.stdout.count("| from-kubernetes") == done.stdout.count("| from-volcano") == 2
    assert [line.split(" after")[0] for line in done.stdout.splitlines()[-2:]] == [
        "pi Completed", "pi (batch/v1) Completed",
    ]  # fmt: skip
    assert done.stdout.splitlines()[-1].endswith(": 2 of 2 pods succeeded")


def test_a_job_of_kubernetes_that_fails_ends_with_one_and_runs_again_only_when_told(tmp_path: Path):
    path = written(tmp_path, a_batch_job("bad", "exit 3", backoffLimit=0))
    with running_up(tmp_path) as up:
        first = volcano_run(tmp_path, path, "--data-dir", up.data)
        second = volcano_run(tmp_path, path, "--data-dir", up.data)
        third = volcano_run(tmp_path, path, "--data-dir", up.data, "--replace")

    assert first.returncode == third.returncode == 1, (first, third)
    assert "(exit code 3)" in first.stdout and "\nbad (batch/v1) Failed after " in first.stdout
    assert second.returncode == 2 and "exists and is Failed; use --replace" in second.stderr


def test_a_running_system_is_used_and_a_finished_job_runs_again_only_when_told(tmp_path: Path):
    path = written(tmp_path, a_job("again", "echo hello"))
    with running_up(tmp_path) as up:
        first = volcano_run(tmp_path, path, "--data-dir", up.data)
        second = volcano_run(tmp_path, path, "--data-dir", up.data)
        third = volcano_run(tmp_path, path, "--data-dir", up.data, "--replace")

        assert first.returncode == third.returncode == 0, (first, third)
        assert second.returncode == 2
        assert "--replace" in second.stderr
        assert up.phase("again") == "Completed"


def test_on_a_terminal_there_is_a_picture(tmp_path: Path):
    ours, theirs = pty.openpty()
    words = [*VOLCANO, "run", str(EXAMPLES / "gang.yaml")]
    process = subprocess.Popen(
        words, stdout=theirs, stderr=theirs, env=environment(tmp_path, TERM="xterm"), cwd=tmp_path
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            chunk = os.read(ours, 4096)
        except OSError:  # how a terminal says that the other side is closed
            break
        if not chunk:
            break
        shown += chunk
    os.close(ours)

    assert process.wait(60) == 0
    assert "█".encode() in shown
    assert b"gang Completed after" in shown
