"""What `volcano up` refuses before it starts anything, and how it says so."""

from __future__ import annotations

import contextlib
import os
import resource
import stat
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from volcano.app.apiserver_command import apiserver_command
from volcano.app.data_directory_lock import UnusableDataDirectory, locked
from volcano.app.system import SystemSettings
from volcano.app.up_command import settings_from, up_command
from volcano.controllers.service.choice import SHARDING_CONTROLLER, is_enabled
from volcano.machinery.https_server import bind


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--data-dir", "{file}"], "nothing can be kept in {file}: File exists; choose another --data-dir"),
        (["--data-dir", "{file}/below"], "nothing can be kept in {file}/below: Not a directory"),
        (["--data-dir", "{folder}", "--scheduler-conf", "{folder}/nope"], "there is no file {folder}/nope"),
    ],
)
def test_what_cannot_work_is_told_in_a_line(tmp_path: Path, options: list[str], message: str):
    file, folder = tmp_path / "file", tmp_path / "folder"
    file.write_text("")
    given = [option.format(file=file, folder=folder) for option in options]

    result = CliRunner().invoke(up_command, [*given, "--port", "0"])

    assert result.exit_code in (1, 2)
    assert message.format(file=file, folder=folder) in result.output


def chosen(*arguments: str) -> SystemSettings:
    """What `volcano up` with these flags is made of."""
    with up_command.make_context("up", list(arguments)) as context:
        return settings_from(context.params)


def test_without_flags_no_scheduler_is_sharded_and_plain_pods_are_placed():
    settings = chosen()

    assert (settings.sharding_mode, settings.adopt_plain_pods) == ("none", True)
    assert not is_enabled(SHARDING_CONTROLLER, settings.controllers)


def test_a_sharded_scheduler_brings_the_sharding_controller():
    settings = chosen("--scheduler-sharding-mode", "hard", "--scheduler-sharding-name", "mine")

    assert (settings.sharding_mode, settings.shard_name) == ("hard", "mine")
    assert is_enabled(SHARDING_CONTROLLER, settings.controllers)
    assert is_enabled("job-controller", settings.controllers)


def test_feature_gates_and_adoption_are_those_of_the_separate_commands():
    settings = chosen("--feature-gates", "SchedulingGatesQueueAdmission=true", "--adopt-plain-pods=false")

    assert settings.gates["SchedulingGatesQueueAdmission"]
    assert settings.gates["VolcanoJobSupport"]
    assert not settings.adopt_plain_pods


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--feature-gates", "Nope=true"), "unrecognized feature gate: Nope"),
        (("--feature-gates", "Nope"), "'Nope' is not Name=true or Name=false"),
        (("--controllers", "nope"), "there is no controller 'nope'"),
    ],
)
def test_flags_that_name_nothing_are_refused(arguments: tuple[str, ...], message: str):
    with pytest.raises(click.BadParameter, match=message):
        chosen(*arguments)


@pytest.mark.parametrize("command", [up_command, apiserver_command])
def test_a_port_that_is_asked_for_and_taken_is_refused_with_who_has_it(command: click.Command, tmp_path: Path):
    with contextlib.closing(bind("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        done = CliRunner().invoke(command, ["--ephemeral", "--data-dir", str(tmp_path / "data"), "--port", str(port)])

    assert done.exit_code == 1
    assert f"port {port} of 127.0.0.1: Address already in use; process {os.getpid()}" in done.output


def test_a_data_directory_that_others_can_enter_is_tightened(tmp_path: Path):
    folder = tmp_path / "data"
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)

    with locked(folder):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("given", [".", "kubeconfig", "volcano.db.keys"])
def test_what_belongs_to_another_user_is_no_data_directory(tmp_path: Path, given: str):
    folder = tmp_path / "data"
    folder.mkdir()
    folder.chmod(0o777)
    (tmp_path / "victim").write_text("precious")
    if given != ".":
        (folder / given).symlink_to(tmp_path / "victim")
    os.lchown(folder / given, 65534, 65534)

    with pytest.raises(UnusableDataDirectory, match="belongs to another user"), locked(folder):
        pass


def test_a_directory_that_all_users_share_is_no_data_directory(tmp_path: Path):
    tmp_path.chmod(0o1777)

    with pytest.raises(UnusableDataDirectory, match="shared by all users"), locked(tmp_path):
        pass


def test_too_little_address_space_is_told_in_a_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (512 * 2**20, resource.RLIM_INFINITY))

    done = CliRunner().invoke(up_command, ["--data-dir", str(tmp_path / "data"), "--port", "0"])

    assert done.exit_code == 1
    assert "the limit of 512 MiB of address space (ulimit -v) is too small" in done.output
