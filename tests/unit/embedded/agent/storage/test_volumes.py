"""The folders of persistent volumes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from volcano.api.core import PersistentVolume
from volcano.embedded.agent.containers.environment import Missing, MissingPath
from volcano.embedded.agent.storage.protected_folders import ProtectedFolders
from volcano.embedded.agent.storage.provisioner import PROVISIONED_BY, PROVISIONER
from volcano.embedded.agent.storage.volumes import volume_folder

UNPROTECTED = ProtectedFolders()


def a_volume(annotations: dict[str, str] | None = None, **spec: Any) -> PersistentVolume:
    return msgspec.convert(
        {"metadata": {"name": "v", "annotations": annotations or {}}, "spec": spec}, PersistentVolume
    )


def test_a_local_volume_without_its_folder_is_not_made(tmp_path: Path):
    path = tmp_path / "disk"

    with pytest.raises(MissingPath) as raised:
        volume_folder(a_volume(local={"path": str(path)}), UNPROTECTED)

    assert str(raised.value) == (
        f'MountVolume.NewMounter initialization failed for volume "v" : path "{path}" does not exist'
    )
    assert not path.exists()


def test_a_local_volume_is_its_folder_unchanged(tmp_path: Path):
    tmp_path.chmod(0o750)
    assert volume_folder(a_volume(local={"path": str(tmp_path)}), UNPROTECTED) == str(tmp_path)
    assert tmp_path.stat().st_mode & 0o777 == 0o750


def test_only_a_provisioned_volume_is_writable_by_all(tmp_path: Path):
    own, other = tmp_path / "own", tmp_path / "other"

    for path, marks in ((own, {PROVISIONED_BY: PROVISIONER}), (other, {})):
        volume = a_volume(marks, hostPath={"path": str(path), "type": "DirectoryOrCreate"})
        volume_folder(volume, UNPROTECTED)

    assert own.stat().st_mode & 0o777 == 0o777
    assert other.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("spec", [{"nfs": {"server": "x"}}, {"local": {"path": "a/b"}}, {"local": {"path": "/a/../b"}}])
def test_a_volume_that_is_no_folder_of_this_machine_is_refused(spec):
    with pytest.raises(Missing):
        volume_folder(a_volume(**spec), UNPROTECTED)


def test_a_volume_inside_a_protected_folder_is_refused(tmp_path: Path):
    with pytest.raises(Missing, match="refused"):
        volume_folder(a_volume(local={"path": str(tmp_path)}), ProtectedFolders((tmp_path,)))
