"""Virtual environments below /tmp that a container names."""

from __future__ import annotations

from pathlib import Path

import pytest

from volcano.embedded.agent.containers.images import CommandLine
from volcano.embedded.agent.runtime.covered_programs import MAX_PATHS_TRIED, covered_environments


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    folder = tmp_path / "venv"
    (folder / "bin").mkdir(parents=True)
    (folder / "pyvenv.cfg").touch()
    return folder


@pytest.mark.parametrize("word", ["{}/bin/python", "exec {}/bin/ray start; true", "--python={}/bin/python"])
def test_a_word_of_the_command_names_the_environment(venv: Path, word: str):
    assert covered_environments(CommandLine(("sh", "-c", word.format(venv)))) == {venv: venv}


def test_a_row_or_a_variable_names_it_and_it_is_mounted_once(venv: Path):
    line = CommandLine(("true",), venv=str(venv), env={"VIRTUAL_ENV": str(venv)})
    assert covered_environments(line, [f"{venv}/bin:/usr/bin"]) == {venv: venv}


def test_what_is_no_environment_or_lies_elsewhere_is_not_mounted(tmp_path: Path, venv: Path):
    words = (str(tmp_path), "/usr/bin/python3", f"{venv}/../other", "/tmp")
    assert covered_environments(CommandLine(words)) == {}


def test_only_so_many_paths_are_tried(venv: Path):
    words = (*(f"/tmp/none/{number}" for number in range(MAX_PATHS_TRIED)), str(venv))
    assert covered_environments(CommandLine(words)) == {}
