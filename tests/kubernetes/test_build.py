"""Building the control plane, and what CI does with and without one; Go itself is played by a script."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from .components import wait_for
from .control_plane import TOOLS

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


# -- CI -----------------------------------------------------------------------------------------------------------
MAKE = """#!/bin/sh
echo "made $1"
case " $FAILING " in *" $1 "*) exit 1 ;; esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """CI's script, with a `make` that only tells what it is asked for."""
    root = tmp_path / "checkout"
    (root / ".venv" / "bin").mkdir(parents=True)
    (root / ".venv" / "bin" / "python").symlink_to(sys.executable)
    (root / "tools" / "kubernetes").mkdir(parents=True)
    (root / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", root / ".ci" / "run")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "sh", "dirname", "mktemp", "timeout", "nice", "cat", "rm", "tail", "id", "sleep"):
        (programs / name).symlink_to(shutil.which(name) or "")
    (programs / "make").write_text(MAKE)
    (programs / "make").chmod(0o755)
    return root


def run_ci(checkout: Path, *, build: str, failing: str = "") -> tuple[int, list[str], str]:
    (checkout / "tools" / "kubernetes" / "build.py").write_text(build)
    environment = {
        "PATH": str(checkout.parent / "bin"),
        "FAILING": failing,
        "BUILD_LIMIT": "2",
        "TMPDIR": str(checkout),
    }
    done = subprocess.run(
        ["bash", str(checkout / ".ci" / "run")], env=environment, capture_output=True, text=True, timeout=60
    )
    text = done.stdout + done.stderr
    assert not list(checkout.glob("tmp.*")), "the log of the build is left"
    return done.returncode, [line.removeprefix("made ") for line in text.splitlines() if line.startswith("made ")], text


def test_ci_runs_the_suite_once_the_control_plane_is_built(checkout: Path):
    code, made, said = run_ci(checkout, build="print('built it')")

    assert (code, made) == (0, ["install", "check", "test", "vectors", "test-kubernetes"])
    assert "built it" in said


@pytest.mark.parametrize(
    "build", ["raise SystemExit('no Go here')", "import time; print('no Go here', flush=True); time.sleep(60)"]
)
def test_ci_says_loudly_that_it_goes_on_without_one(checkout: Path, build: str):
    code, made, said = run_ci(checkout, build=build)

    assert (code, made) == (0, ["install", "check", "test", "vectors"])
    assert said.count("THE SUITE ON A REAL KUBERNETES DID NOT RUN") == 2
    assert "no Go here" in said.rpartition("DID NOT RUN")[2]


def test_ci_tries_what_failed_on_it_once_more(checkout: Path):
    code, made, _ = run_ci(checkout, build="", failing="test-kubernetes")

    assert (code, made[-2:]) == (0, ["test-kubernetes", "test-kubernetes-failed"])


@pytest.mark.parametrize("failing", ["check", "test test-failed", "vectors", "test-kubernetes test-kubernetes-failed"])
def test_ci_fails_where_something_fails(checkout: Path, failing: str):
    code, *_ = run_ci(checkout, build="", failing=failing)

    assert code != 0
