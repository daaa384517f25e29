"""Building the control plane; Go itself is played by a script."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kubernetes.components import wait_for
from tests.kubernetes.control_plane import TOOLS

ROOT = TOOLS.parents[1]
PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager")
GO = """#!/bin/sh
# env GOVERSION | get … | mod download -json … | list -deps … | build … -o FILE …
case "$1" in
env) echo "{version}" ;;
mod) echo '{{"GoMod": "{go_mod}"}}' ;;
list) echo a; echo b ;;
build)
    echo "compiled/package" >&2
    {building}
    while [ "$1" != -o ]; do shift; done
    echo built >"$2" ;;
esac
"""


class Machine:
    """A place with a Go of some kind on its PATH, a cache of its own and no package index."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.programs = folder / "bin"
        self.programs.mkdir()
        self.target = folder / "cache" / "kubernetes"
        for name in ("sh", "sleep", "cat", "mkdir"):
            (self.programs / name).symlink_to(shutil.which(name) or "")

    def install_go(self, version: str = "go1.99.0", building: str = "") -> None:
        go_mod = self.folder / "theirs.mod"
        go_mod.write_text("module k8s.io/kubernetes\n\ngo 1.26.0\n\nrequire k8s.io/api v0.0.0\n")
        program = self.programs / "go"
        program.write_text(GO.format(version=version, go_mod=go_mod, building=building))
        program.chmod(0o755)

    def start(self, *words: str) -> subprocess.Popen[str]:
        environment = {
            "PATH": str(self.programs), "HOME": str(self.folder), "VOLCANO_KUBERNETES": str(self.target),
            "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "PIP_CONFIG_FILE": os.devnull, "UV_NO_INDEX": "1",
        }  # fmt: skip
        return subprocess.Popen(
            [sys.executable, str(TOOLS / "build.py"), *words], env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def build(self, *words: str) -> tuple[int, str]:
        process = self.start(*words)
        said, _ = process.communicate(timeout=60)
        return process.returncode, said

    @property
    def left(self) -> set[str]:
        return {path.name for path in self.target.glob("*")} | {path.name for path in self.target.glob(".building*")}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_every_program_is_built_and_its_folder_printed(machine: Machine):
    machine.install_go()

    code, said = machine.build()

    assert code == 0, said
    assert said.splitlines()[-1] == str(machine.target)
    assert machine.left - {".lock"} == set(PROGRAMS)


def test_what_is_there_is_not_built_again(machine: Machine):
    machine.install_go()
    machine.build()
    machine.install_go(building="exit 1")

    assert machine.build() == (0, f"{machine.target}\n")


@pytest.mark.parametrize(
    ("version", "words"),
    [
        (None, "Go is not installed; Go 1.26 or newer is needed"),
        ("go1.22.3", "is Go 1.22; Go 1.26 or newer is needed"),
        ("", "does not run"),
    ],
)
def test_a_missing_or_old_go_is_named(machine: Machine, version: str | None, words: str):
    if version is not None:
        machine.install_go(version)

    code, said = machine.build()

    assert code == 1
    assert words in said
    assert "https://go.dev/dl" in said


def test_what_go_said_is_shown_when_it_fails(machine: Machine):
    machine.install_go(building='echo "x.go:1:1: cannot find it" >&2; exit 1')

    code, said = machine.build("etcd")

    assert code == 1
    assert "go build failed:\nx.go:1:1: cannot find it" in said


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_an_interrupted_build_leaves_nothing_half_done(machine: Machine, how: int):
    machine.install_go(building=f'trap "exit 1" INT; echo > {machine.folder}/begun; while :; do sleep 0.05; done')
    process = machine.start("etcd")
    wait_for((machine.folder / "begun").exists)

    process.send_signal(how)

    said, _ = process.communicate(timeout=30)
    assert process.returncode != 0, said
    assert machine.left <= {".lock"}


def test_a_killed_build_is_cleared_away_by_the_next(machine: Machine):
    machine.install_go(
        building=f"echo > {machine.folder}/begun; while [ ! -e {machine.folder}/end ]; do sleep 0.05; done; exit 1"
    )
    process = machine.start("etcd")
    wait_for((machine.folder / "begun").exists)
    process.kill()
    process.wait()
    assert any(name.startswith(".building") for name in machine.left)
    (machine.folder / "end").touch()
    process.communicate(timeout=30)
    machine.install_go()

    code, said = machine.build("etcd")

    assert code == 0, said
    assert machine.left - {".lock"} == {"etcd"}


def test_a_second_build_waits_for_the_first(machine: Machine):
    machine.install_go(
        building=f"echo x >> {machine.folder}/begun; while [ ! -e {machine.folder}/go-on ]; do sleep 0.05; done"
    )
    first = machine.start("etcd")
    wait_for((machine.folder / "begun").exists)
    second = machine.start("etcd")
    assert second.stdout is not None
    assert "another build is under way" in second.stdout.readline()

    (machine.folder / "go-on").touch()

    assert first.wait(30) == second.wait(30) == 0
    assert (machine.folder / "begun").read_text() == "x\n"
    for process in (first, second):
        process.communicate()
