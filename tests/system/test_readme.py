"""What the README prints runs as printed."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from volcano.machinery.clock import SystemClock, wait_blocking

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
BIN = Path(sys.executable).parent


def block_after(heading):
    section = README.split(f"## {heading}", 1)[1]
    return re.search(r"```\n(.*?)```", section, re.S).group(1)


@pytest.fixture
def home(tmp_path):
    """A newcomer's shell: a home of its own and the programs on the path."""
    environment = {
        "HOME": str(tmp_path), "PATH": f"{BIN}:{os.environ['PATH']}", "LANG": "C.UTF-8",
        "VOLCANO_DATA_DIR": str(tmp_path / "volcano"),
    }  # fmt: skip
    yield environment
    lock = tmp_path / "volcano" / "lock"
    if lock.exists() and lock.read_text().strip().isdigit():
        try:
            os.kill(int(lock.read_text()), signal.SIGTERM)
        except ProcessLookupError:
            return


def run(script, environment, *, seconds=100):
    return subprocess.run(
        ["bash", "-euc", script], cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, timeout=seconds, check=False,
    )  # fmt: skip


def test_a_gang_job_in_60_seconds(home, tmp_path):
    lines = [line.split("#")[0].rstrip() for line in block_after("A gang job in 60 seconds").splitlines()]
    assert lines[0] == "pip install ."
    script = "\n".join(
        line.replace("volcano up &", f"volcano up --port 0 > {tmp_path}/up.log 2>&1 &") for line in lines[1:]
    )

    done = run(script, home)

    up = (tmp_path / "up.log").read_text()
    assert done.returncode == 0, done.stdout + up
    assert "run job gang successfully" in done.stdout
    assert "job.batch.volcano.sh/gang" in done.stdout
    _until(lambda: "Completed" in run('eval "$(volcano env)"; vcctl job list', home).stdout)


def test_volcano_env_says_when_nothing_runs(home):
    done = run("volcano env", home)

    assert done.returncode == 1
    assert "Start a system on this machine:  volcano up" in done.stdout


def test_the_commands_for_a_real_cluster_exist(home):
    for line in block_after("On a real cluster").splitlines():
        words = line.split("|")[0].split("--kubeconfig")[0]
        done = run(f"{words} --help", home)
        assert done.returncode == 0, done.stdout


def _until(condition, seconds=60):
    clock = SystemClock()
    end = clock.monotonic() + seconds
    while not condition():
        assert clock.monotonic() < end, "this did not happen in time"
        wait_blocking(0.5)
