"""`.ci/run`: what it runs in which order, what it says when no control plane can be built, and when it fails."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
MAKE = """#!/bin/sh
echo "made $1"
case " $FAILING " in *" $1 "*) exit 1 ;; esac
"""

SECOND_TRY = """import os, pathlib, sys
flaky = os.environ["FLAKY"].split()
pathlib.Path(sys.argv[1]).open("a").writelines(name + "\\n" for name in flaky)
sys.exit(not flaky)
"""
"""Finds what $FLAKY names to be flaky, and that everything else failed twice."""
START = ["programs", "install", "audit", "check", "docs"]
REST = ["test-coverage", "coverage", "test-pythons", "vectors", "test-frameworks", "faults"]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """CI's script, with a `make` that only tells what it is asked for."""
    root = tmp_path / "checkout"
    (root / ".venv" / "bin").mkdir(parents=True)
    (root / ".venv" / "bin" / "python").symlink_to(sys.executable)
    (root / "tools" / "kubernetes").mkdir(parents=True)
    (root / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", root / ".ci" / "run")
    (root / "tools" / "ci").mkdir()
    (root / "tools" / "ci" / "second_try.py").write_text(SECOND_TRY)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in (
        "bash",
        "sh",
        "dirname",
        "mktemp",
        "timeout",
        "nice",
        "cat",
        "rm",
        "tail",
        "id",
        "sleep",
        "od",
        "tr",
        "wc",
        "sed",
    ):
        (programs / name).symlink_to(shutil.which(name) or "")
    (programs / "make").write_text(MAKE)
    (programs / "make").chmod(0o755)
    return root


def run_ci(checkout: Path, *, build: str, failing: str = "", flaky: str = "") -> tuple[int, list[str], str]:
    (checkout / "tools" / "kubernetes" / "build.py").write_text(build)
    environment = {
        "PATH": str(checkout.parent / "bin"),
        "FAILING": failing,
        "FLAKY": flaky,
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

    assert (code, made) == (0, [*START, *REST, "test-kubernetes"])
    assert "built it" in said


@pytest.mark.parametrize(
    "build", ["raise SystemExit('no Go here')", "import time; print('no Go here', flush=True); time.sleep(60)"]
)
def test_ci_says_loudly_that_it_goes_on_without_one(checkout: Path, build: str):
    code, made, said = run_ci(checkout, build=build)

    assert (code, made) == (0, [*START, *REST])
    assert said.count("THE SUITES ON A REAL KUBERNETES DID NOT RUN") == 2
    assert "no Go here" in said.rpartition("DID NOT RUN")[2]


def test_ci_names_what_passed_only_on_its_second_try(checkout: Path):
    code, made, said = run_ci(checkout, build="", failing="test-coverage test-kubernetes", flaky="test_a test_b")

    assert (code, made[-1]) == (1, "test-kubernetes")
    assert "4 FLAKY" in said and said.count("    test_a") == 2

    code, _, said = run_ci(checkout, build="", failing="test-kubernetes", flaky="test_a")

    assert code == 0
    assert "1 FLAKY" in said and "    test_a" in said


@pytest.mark.parametrize("failing", [*START[2:], *REST, "test-kubernetes"])
def test_ci_fails_where_something_fails(checkout: Path, failing: str):
    code, *_ = run_ci(checkout, build="", failing=failing)

    assert code != 0


def test_ci_prints_the_seed_of_its_property_tests(checkout: Path):
    *_, said = run_ci(checkout, build="")

    assert "SEED=" in said
