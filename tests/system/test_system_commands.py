"""`volcano status`, `down`, `reset` and `doctor` about a system that runs, and about none."""

from __future__ import annotations

import subprocess

import pytest

from .real_system import VOLCANO, environment, running_up, wait_until


@pytest.fixture
def volcano(tmp_path):
    def call(*words, answer=""):
        return subprocess.run(
            [*VOLCANO, *words], input=answer, capture_output=True, text=True, timeout=120, env=environment(tmp_path)
        )

    return call


def test_status_down_and_reset_of_a_running_system(tmp_path, volcano):
    with running_up(tmp_path, "--simulated-nodes", "2") as up:
        data = ("--data-dir", str(up.data))

        status = volcano("status", *data)
        assert (status.returncode, status.stderr) == (0, "")
        assert f"volcano is up (process {up.process.pid})" in status.stdout
        assert "nodes       2 of 2 ready" in status.stdout and "default, root" in status.stdout

        refused = volcano("reset", *data, answer="n\n")
        assert refused.returncode == 1 and "Remove all jobs" in refused.stderr
        assert volcano("status", *data).returncode == 0

        down = volcano("down", *data)
        assert down.returncode == 0 and "has ended" in down.stdout, down.stderr
        wait_until(lambda: up.process.poll() is not None, "the system ended")
        after = volcano("status", *data)
        assert after.returncode == 3 and "its kubeconfig is from an earlier run" in after.stdout

        (up.data / "mine.txt").write_text("not the system's")
        reset = volcano("reset", *data, answer="y\n")
        assert reset.returncode == 0, reset.stderr
        assert [each.name for each in up.data.iterdir()] == ["mine.txt"]


def test_without_a_system_each_command_says_so(tmp_path, volcano):
    data = ("--data-dir", str(tmp_path / "none"))

    status, down, reset = (volcano(command, *data) for command in ("status", "down", "reset"))

    assert status.returncode == 3
    assert f"no system runs in {tmp_path / 'none'} (there is no such directory)" in status.stdout
    assert "Start a system on this machine:  volcano up" in status.stdout and "--kubeconfig FILE" in status.stdout
    assert (down.returncode, down.stdout) == (0, f"no system runs in {tmp_path / 'none'}\n")
    assert (reset.returncode, reset.stdout) == (0, f"nothing is kept in {tmp_path / 'none'}\n")


def test_the_doctor_lists_what_the_machine_can_do(tmp_path, volcano):
    done = volcano("doctor", "--data-dir", str(tmp_path / "none"))

    assert done.returncode == 0, done.stdout
    for word in ("isolation", "pod network", "limits", "data directory", "sshd", "kubectl", "A system can run here."):
        assert word in done.stdout
