"""The gates of a test run hold: seeds and skips are printed, failures are listed, and a second try hides nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.reporting.failures import without_group
from tests.reporting.suites import skipped_lines

ROOT = Path(__file__).resolve().parents[3]
PLUGINS = [f"-ptests.reporting.{name}" for name in ("properties", "suites", "failures")]
SETTINGS = """[pytest]
addopts = --strict-markers
markers =
    property:
    slow:
    kubernetes:
    kubectl:
    root:
"""
SUITE = """
import pathlib
import pytest
from hypothesis import given, settings, strategies

@given(strategies.integers())
@settings(max_examples=3)
def test_property(number):
    with open("examples", "a") as file:
        file.write("x")
    assert number != number + {wrong}

@pytest.mark.slow
def test_slow():
    pass

def test_second_time_lucky():
    tried = pathlib.Path("tried")
    assert tried.exists() or tried.touch()

@pytest.mark.xdist_group("g")
@pytest.mark.parametrize("text", ["a@b"])
def test_never(text):
    assert {fails} == 0
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text(SETTINGS)
    return tmp_path


def write_suite(folder: Path, *, wrong: int = 1, fails: int = 0) -> None:
    (folder / "test_suite.py").write_text(SUITE.format(wrong=wrong, fails=fails))


def run(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    known = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": " ".join(PLUGINS), **environment}
    for name in [name for name in known if name.startswith("PYTEST_XDIST") or name == "PYTEST_CURRENT_TEST"]:
        del known[name]
    return subprocess.run([sys.executable, *words], cwd=folder, env=known, capture_output=True, text=True, timeout=100)


def failures(folder: Path) -> dict[str, bool]:
    rows = json.loads((folder / ".pytest_cache" / "failures.json").read_text())["failed"]
    return {row["test"].rpartition("::")[2]: row["property"] for row in rows}


def second_try(folder: Path) -> tuple[int, list[str]]:
    done = run(folder, str(ROOT / "tools" / "ci" / "second_try.py"), "flaky")
    listed = folder / "flaky"
    return done.returncode, listed.read_text().split() if listed.exists() else []


def test_a_run_prints_its_seed_and_what_it_skipped(folder: Path):
    write_suite(folder)

    done = run(folder, "-m", "pytest", "--hypothesis-seed=77")

    assert "--hypothesis-seed=77" in done.stdout
    assert "takes minutes" in done.stdout and "make test-all" in done.stdout


def test_a_flaky_test_is_named_and_one_that_always_fails_fails(folder: Path):
    write_suite(folder, fails=1)

    assert run(folder, "-m", "pytest", "-n", "1", "--dist", "loadgroup").returncode == 1

    assert failures(folder) == {"test_second_time_lucky": False, "test_never[a@b]": False}
    assert second_try(folder) == (1, ["test_suite.py::test_second_time_lucky"])


def test_a_suite_that_is_only_flaky_passes_the_second_try_and_is_listed(folder: Path):
    write_suite(folder)

    assert run(folder, "-m", "pytest").returncode == 1

    assert second_try(folder) == (0, ["test_suite.py::test_second_time_lucky"])


def test_a_property_test_gets_no_second_try(folder: Path):
    write_suite(folder, wrong=0)
    (folder / "tried").touch()

    assert run(folder, "-m", "pytest").returncode == 1

    assert failures(folder) == {"test_property": True}
    assert second_try(folder) == (1, [])


def test_a_run_that_did_not_end_gets_no_second_try(folder: Path):
    assert second_try(folder) == (1, [])


def test_the_thorough_profile_runs_twenty_times_as_many_examples(folder: Path):
    write_suite(folder)

    run(folder, "-m", "pytest", "-m", "property", HYPOTHESIS_PROFILE="thorough")

    assert len((folder / "examples").read_text()) == 60


@pytest.mark.parametrize(
    ("nodeid", "plain"),
    [
        ("tests/a.py::test_b", "tests/a.py::test_b"),
        ("tests/a.py::test_b@group", "tests/a.py::test_b"),
        ("tests/a.py::test_b[x@y]@group", "tests/a.py::test_b[x@y]"),
        ("tests/a.py::test_b[x]y]@group", "tests/a.py::test_b[x]y]"),
    ],
)
def test_groups_are_no_part_of_a_name(nodeid: str, plain: str):
    assert without_group(nodeid) == plain


def test_skips_are_grouped_by_reason_with_the_command_that_helps():
    reasons = ["Skipped: no helm"] + ["Skipped: kubectl is not installed; to run them: make install"] * 2

    first, second = skipped_lines(reasons)

    assert first.split() == ["2", "kubectl", "is", "not", "installed", "make", "install"]
    assert second.startswith("     1  no helm")
