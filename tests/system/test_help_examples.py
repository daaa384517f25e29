"""The examples that --help prints run as printed: they end well, or are still at work when we have seen enough."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from volcano.app.main import COMMANDS, volcano_command
from volcano.scheduler.service.shipped_configuration import DEFAULT_CONFIGURATION

from .cli.help_examples import all_examples, needs_a_system
from .real_system import JOBS, environment, running_up

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
SEEN_ENOUGH = 8.0


def examples():
    for name in [None, *COMMANDS]:
        text = CliRunner().invoke(volcano_command, [name, "--help"] if name else ["--help"]).output
        shown = re.split(r"Examples?:\n", text)
        for line in shown[1].splitlines() if len(shown) > 1 else ():
            if not line.startswith("    "):
                break
            yield re.split(r"\s{3,}", line.strip())[0]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    with a_home(tmp_path_factory.mktemp("home")) as found:
        yield found


@pytest.fixture(scope="module")
def home_of_programs(tmp_path_factory):
    """Another one: examples of `volcano` start components, which take over the pods of the first."""
    with a_home(tmp_path_factory.mktemp("programs")) as found:
        yield found


@contextlib.contextmanager
def a_home(folder):
    """A home with a running system's kubeconfig in the usual place, and files that examples name."""
    with running_up(folder, "--ephemeral") as up:
        (folder / ".kube").mkdir()
        shutil.copy(up.data / "kubeconfig", folder / ".kube" / "config")
        shutil.copy(ROOT / "examples" / "gang.yaml", folder / "job.yaml")
        (folder / "queue.yaml").write_text(
            "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: example}\nspec: {weight: 2}\n"
        )
        (folder / "volcano-scheduler.conf").write_text(DEFAULT_CONFIGURATION)
        (folder / "cluster.json").write_text('{"schedulerConf": "actions: \\"\\"", "objects": {}, "expect": {}}')
        (folder / "lublin_256.swf").write_text("1 0 -1 60 4 -1 -1 4 60\n2 5 -1 30 2 -1 -1 2 30\n")
        (folder / "examples").symlink_to(ROOT / "examples")
        (folder / "policies").symlink_to(ROOT / "examples/policies")
        shutil.copy(ROOT / "examples/simulator/two-teams.yaml", folder / "scenario.yaml")
        (folder / "new.conf").write_text(DEFAULT_CONFIGURATION)
        up.api.create(JOBS, A_GANG)
        up.until_phase("gang", "Running")
        yield up, folder


A_GANG = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "gang"},
    "spec": {
        "minAvailable": 2,
        "tasks": [
            {
                "name": "worker",
                "replicas": 2,
                "template": {
                    "spec": {
                        "restartPolicy": "Never",
                        "containers": [
                            {"name": "c", "image": "any", "command": ["sh", "-c", "echo error; exec sleep 600"]}
                        ],
                    }
                },
            }
        ],
    },
}
"""Goes on running, so that its pods can be entered and waited for."""
TESTED_ELSEWHERE = ("--apply", "--pty", "-it ", "vcancel --me")
"""A change needs a job that waits (test_explain.py), a cancellation one of this user (test_coming_from_slurm.py), and the others a terminal (test_terminal_commands.py)."""
OF_PROGRAMS = [line for line in all_examples() if needs_a_system(line) and not any(w in line for w in TESTED_ELSEWHERE)]

ELSEWHERE = (
    "volcano manifests all", "volcano store ", "volcano simulate --from-cluster", "volcano status", "volcano history --",
    "volcano dashboard --", "volcano webhook-manager --kubeconfig ~/.kube/config --webhook-url",
)  # fmt: skip
"""A registered webhook would be called at the address of the example when later ones create jobs (tests/kubernetes/test_admission.py registers one). A history and a dashboard of a cluster need a database, certificates and a fixed port (tests/unit/history, tests/unit/dashboard). A simulation of a live system needs one with jobs: tests/system/test_simulate_from_cluster.py. What needs an empty cluster is applied to a real one by tests/kubernetes; test_store_command.py has a store to run on."""


@pytest.mark.parametrize("line", sorted(line for line in set(examples()) if not line.startswith(ELSEWHERE)))
def test_the_example_runs(home, line, tmp_path):
    it_runs(home, line, tmp_path)


@pytest.mark.parametrize("line", OF_PROGRAMS)
def test_the_example_of_a_program_runs(home_of_programs, line, tmp_path):
    it_runs(home_of_programs, line, tmp_path)


def it_runs(home, line, tmp_path):
    up, folder = home
    data = up.data if "env" in line else tmp_path / "data"
    path = f"{BIN}:/usr/bin:/bin:/usr/sbin:/sbin"
    variables = environment(folder, VOLCANO_DATA_DIR=str(data), PATH=path, TMPDIR=str(tmp_path))
    process = subprocess.Popen(
        ["bash", "-c", f"set -o pipefail; exec 3>&1; {line.replace('| jq .binds', '')}"], cwd=folder, env=variables,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        out, _ = process.communicate(timeout=SEEN_ENOUGH)
        assert process.returncode == 0, out
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)
        out, _ = process.communicate(timeout=60)
        assert "Error" not in out and "Traceback" not in out, out
