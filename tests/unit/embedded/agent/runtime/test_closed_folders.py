"""What a container's user sees of folders that it may not enter."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from volcano.api.kubelet import AgentContainer, EnvVar, VolumeMount
from volcano.embedded.agent.containers.images import CommandLine
from volcano.embedded.agent.runtime import closed_folders
from volcano.embedded.agent.runtime.closed_folders import UserView, closed_folder, view_of

STRANGER = (os.geteuid() + 4321, os.getegid() + 4321)


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A closed folder with a virtual environment; nothing of this machine is needed, and /tmp is not special."""
    monkeypatch.setattr(closed_folders, "is_covered", lambda _path: False)
    monkeypatch.setattr(closed_folders, "own_programs", dict)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid() and folder != Path("/") and folder.is_relative_to("/tmp/"):
            folder.chmod(folder.stat().st_mode | 0o011)
    house = tmp_path / "house"
    (house / "venv" / "bin").mkdir(parents=True)
    (house / "venv" / "pyvenv.cfg").touch()
    house.chmod(0o700)
    return house


def view(container: AgentContainer, *argv: str, home: Path, **given: object) -> UserView:
    return view_of(STRANGER, (), container, CommandLine(argv), home=home, **given)  # type: ignore[arg-type]


def test_the_topmost_closed_folder_on_the_way_counts(house: Path):
    (house / "venv").chmod(0o700)

    assert closed_folder(house / "venv" / "bin", *_ids(STRANGER)) == house
    assert closed_folder(house / "venv", os.geteuid(), ()) is None
    assert closed_folder(house.parent / "missing", *_ids(STRANGER)) is None


def test_a_group_that_may_enter_is_no_stranger(house: Path):
    house.chmod(0o710)

    assert closed_folder(house, STRANGER[0], {house.stat().st_gid}) is None
    assert closed_folder(house, *_ids(STRANGER)) == house


def test_nothing_that_is_needed_opens_nothing(house: Path, tmp_path: Path):
    assert view(AgentContainer(), "cat", str(house / "notes.txt"), home=tmp_path) == UserView()


@pytest.mark.parametrize("names", ["command", "variable"])
def test_an_environment_that_is_named_is_seen_alone(house: Path, tmp_path: Path, names: str):
    python = str(house / "venv" / "bin" / "python")
    container = AgentContainer(env=[EnvVar("PYTHON", python)] if names == "variable" else [])

    found = view(container, *([python] if names == "command" else ["true"]), home=tmp_path)

    assert found == UserView((house,), {house / "venv": house / "venv"})


def test_the_interpreter_of_an_environment_elsewhere_is_seen_if_it_is_one(house: Path, tmp_path: Path):
    open_place, base = tmp_path / "open", house / "python"
    for folder in (open_place, base / "bin", base / "lib" / "python3.12"):
        folder.mkdir(parents=True)
    (open_place / "pyvenv.cfg").write_text(f"home = {base}/bin\n")
    before = view(AgentContainer(), f"{open_place}/bin/python", home=tmp_path)
    for file in (base / "bin" / "python3", base / "lib" / "python3.12" / "os.py"):
        file.touch()

    after = view(AgentContainer(), f"{open_place}/bin/python", home=tmp_path)

    assert before == UserView()
    assert after == UserView((house,), {base: base})


def test_a_closed_home_is_a_folder_of_the_containers_own_and_never_mounted_whole(house: Path):
    (house / "pyvenv.cfg").touch()  # an environment in the home itself

    assert view(AgentContainer(), f"{house}/bin/python", home=house) == UserView((house,), has_own_home=True)


def test_volumes_and_writable_folders_within_closed_ones_are_reached(house: Path, tmp_path: Path):
    container = AgentContainer(volume_mounts=[VolumeMount(name="v", mount_path=str(house / "work"))])

    assert view(container, "true", home=tmp_path).closed == (house,)
    assert view(AgentContainer(), "true", home=tmp_path, writable=[house / "venv"]).closed == (house,)


def test_the_installation_of_a_program_that_the_images_file_names_is_seen(house: Path):
    (house / "flink" / "bin").mkdir(parents=True)
    program = house / "flink" / "bin" / "flink"
    program.touch()
    chosen = CommandLine((str(program), "run"), program=str(program))

    found = view_of(STRANGER, (), AgentContainer(name="c"), chosen, home=Path("/nowhere"))
    typed = view_of(STRANGER, (), AgentContainer(name="c"), CommandLine((str(program), "run")), home=Path("/nowhere"))
    at_home = view_of(STRANGER, (), AgentContainer(name="c"), chosen, home=house / "flink")

    assert found.programs == {house / "flink": Path(os.path.realpath(house / "flink"))}
    assert typed.programs == {}
    assert at_home.programs == {program: Path(os.path.realpath(program))}


def _ids(user: tuple[int, int]) -> tuple[int, tuple[int]]:
    return user[0], (user[1],)
