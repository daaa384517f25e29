"""Which folders of the machine a pod may not mount."""

from __future__ import annotations

from pathlib import Path

import pytest

from volcano.embedded.agent.containers.environment import Missing
from volcano.embedded.agent.storage.protected_folders import ProtectedFolders


@pytest.fixture
def protected(tmp_path: Path) -> ProtectedFolders:
    data = tmp_path / "data"
    (data / "agent" / "storage" / "claim").mkdir(parents=True)
    (data / "pki").mkdir()
    (tmp_path / "link").symlink_to(data / "pki")
    (tmp_path / "data-of-others").mkdir()
    return ProtectedFolders((data / "agent", data), data / "agent" / "storage")


@pytest.mark.parametrize("path", ["data", "data/pki", "data/new", "link", "link/ca.key", ".", "data-of-others/../data"])
def test_what_reaches_into_a_protected_folder_is_refused(protected: ProtectedFolders, tmp_path: Path, path: str):
    for is_claimed in (False, True):
        with pytest.raises(Missing, match="reaches into the data directory"):
            protected.check(f"{tmp_path}/{path}", is_claimed=is_claimed)


def test_the_root_of_the_machine_is_refused(protected: ProtectedFolders):
    with pytest.raises(Missing, match="hostPath '/' is refused"):
        protected.check("/")


def test_other_folders_may_be_mounted(protected: ProtectedFolders, tmp_path: Path):
    protected.check(str(tmp_path / "data-of-others"))
    protected.check("/usr")


def test_a_provisioned_volume_is_mounted_by_its_claim_only(protected: ProtectedFolders, tmp_path: Path):
    claim = str(tmp_path / "data/agent/storage/claim")

    protected.check(claim, is_claimed=True)
    with pytest.raises(Missing):
        protected.check(claim)
    with pytest.raises(Missing):
        protected.check(str(tmp_path / "data/agent/storage"), is_claimed=True)


def test_a_real_path_has_no_links_and_is_checked_without_them(protected: ProtectedFolders, tmp_path: Path):
    (tmp_path / "other-link").symlink_to(tmp_path / "data-of-others")

    assert protected.real_path(f"{tmp_path}/other-link") == f"{tmp_path.resolve()}/data-of-others"
    with pytest.raises(Missing, match="reaches into the data directory"):
        protected.real_path(f"{tmp_path}/link")
