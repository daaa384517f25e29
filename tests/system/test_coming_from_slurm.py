"""Every line of the table in docs/coming-from-slurm.md runs, in its order."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from .real_system import environment, running_up

PAGE = Path(__file__).resolve().parents[2] / "docs" / "coming-from-slurm.md"
PROGRAMS = ("vcctl", "vsub", "vrun", "vjobs", "vinfo", "vcancel", "vsuspend", "vresume")


def lines():
    return re.findall(r"^\| `.*?` \| `(.*?)` \|$", PAGE.read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slurm")
    (folder / "work").mkdir()
    (folder / "bin").mkdir()
    for program in PROGRAMS:
        path = folder / "bin" / program
        path.write_text(f"#!{sys.executable}\nfrom volcano.cli.programs import {program}\n\n{program}()\n")
        path.chmod(0o755)
    (folder / "work" / "job.sh").write_text("#!/bin/sh\necho $SLURM_JOB_ID\n")
    with running_up(folder, "--node-cpu", "64") as up:
        variables = environment(folder, KUBECONFIG=str(up.data / "kubeconfig"))
        variables["PATH"] = os.pathsep.join((str(folder / "bin"), variables["PATH"]))

        def run(line):
            return subprocess.run(
                line, shell=True, capture_output=True, text=True, timeout=100, cwd=folder / "work", env=variables,
                input="exit\n",
            )  # fmt: skip

        yield run


def test_every_line_of_the_table_runs(shell):
    wrong = {}
    for line in lines():
        done = shell(line)
        if done.returncode != 0:
            wrong[line] = done.stdout + done.stderr

    assert wrong == {}
    assert len(lines()) > 5
