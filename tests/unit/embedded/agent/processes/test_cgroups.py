"""Resource limits as files of control groups, in both versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from volcano.api.core import ResourceRequirements
from volcano.embedded.agent.processes import cgroups
from volcano.embedded.agent.processes.cgroups import Cgroups, limits_v1, limits_v2


@pytest.fixture
def delegated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in place of the kernel's tree of groups. As there, only an empty one can be removed."""
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids")
    (tmp_path / "cgroup.subtree_control").write_text("cpu memory pids")
    (tmp_path / "own").mkdir()
    monkeypatch.setattr(cgroups, "CGROUP_ROOT", tmp_path)
    monkeypatch.setattr(cgroups, "_own_groups", lambda: {"": "/own"})
    monkeypatch.setattr(cgroups.os, "geteuid", lambda: 0)
    return tmp_path / "volcano-test"


def test_limits_become_settings_of_control_groups():
    resources = ResourceRequirements(limits={"cpu": "1500m", "memory": "64Mi"}, requests={"cpu": "500m"})

    assert limits_v1(resources) == {
        "cpu": {"cpu.shares": "512", "cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "150000"},
        "memory": {"memory.limit_in_bytes": str(64 * 1024 * 1024)},
    }
    assert limits_v2(resources)["cpu.max"] == "150000 100000"
    assert limits_v2(resources)["memory.max"] == str(64 * 1024 * 1024)


def test_a_container_without_limits_needs_no_group():
    assert limits_v1(ResourceRequirements()) == {} and limits_v2(ResourceRequirements()) == {}


def test_groups_that_a_killed_agent_left_are_removed_and_those_of_live_containers_stay(delegated: Path):
    for container in ("a_main_0", "b_main_0", "b_main_1"):
        (delegated / container / "made-by-the-container").mkdir(parents=True)
    groups = Cgroups("volcano-test")
    groups.open()

    groups.find_left(["b/main/1"])

    assert groups.remove_left()
    assert [each.name for each in delegated.iterdir() if each.is_dir()] == ["b_main_1"]


def test_a_group_whose_processes_are_still_ending_is_removed_later(delegated: Path):
    groups = Cgroups("volcano-test")
    groups.open()
    (delegated / "a_main_0").mkdir()
    process = delegated / "a_main_0" / "process"
    process.touch()

    groups.remove("a/main/0")
    assert not groups.remove_left()
    process.unlink()

    assert groups.remove_left()
    assert not (delegated / "a_main_0").exists()


def test_a_container_that_is_started_again_keeps_its_group(delegated: Path):
    groups = Cgroups("volcano-test")
    groups.open()
    (delegated / "a_main_0").mkdir()
    (delegated / "a_main_0" / "process").touch()
    groups.remove("a/main/0")

    groups.make("a/main/0", ResourceRequirements(limits={"cpu": "1"}))

    assert groups.remove_left()
    assert (delegated / "a_main_0").is_dir()


def test_containers_are_bound_to_cpus_where_cpusets_are_delegated(delegated: Path):
    groups = Cgroups("volcano-test")
    groups.open(cpusets=True)
    assert groups.has_cpusets

    (joined,) = groups.make("a/main/0", ResourceRequirements(), "2-3")

    assert Path(joined).parent == delegated / "a_main_0"
    assert (delegated / "a_main_0" / "cpuset.cpus").read_text() == "2-3"
    assert groups.set_cpus("a/main/0", "2")
    assert (delegated / "a_main_0" / "cpuset.cpus").read_text() == "2"
    assert not groups.set_cpus("b/main/0", "2")  # it was started without a group


def test_without_cpusets_no_group_is_made_for_cpus(delegated: Path):
    groups = Cgroups("volcano-test")
    groups.open()

    assert groups.make("a/main/0", ResourceRequirements(), "2-3") == ()
    assert not groups.set_cpus("a/main/0", "2")


def test_groups_of_version_1_get_the_memory_of_the_group_above(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for controller in ("cpu", "memory", "cpuset"):
        (tmp_path / controller).mkdir()
    (tmp_path / "cpuset" / "cpuset.cpus").write_text("0-3\n")
    (tmp_path / "cpuset" / "cpuset.mems").write_text("0-1\n")
    monkeypatch.setattr(cgroups, "CGROUP_ROOT", tmp_path)
    monkeypatch.setattr(cgroups, "_own_groups", dict)
    monkeypatch.setattr(cgroups.os, "geteuid", lambda: 0)
    groups = Cgroups("volcano-test")
    groups.open(cpusets=True)

    (joined,) = groups.make("a/main/0", ResourceRequirements(), "2-3")

    group = tmp_path / "cpuset" / "volcano-test" / "a_main_0"
    assert Path(joined).parent == group
    assert (group / "cpuset.mems").read_text() == "0-1" and (group / "cpuset.cpus").read_text() == "2-3"
