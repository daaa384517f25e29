"""Resource limits as files of control groups, in both versions."""

from __future__ import annotations

from volcano.api.core import ResourceRequirements
from volcano.embedded.agent.processes.cgroups import limits_v1, limits_v2


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
