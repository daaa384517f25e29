"""Allocation of devices: what kube-scheduler's own allocator (v0.36.3) answered on generated clusters, and its limits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.scheduler.core.dra.asking import answered
from tests.unit.scheduler.core.dra.device_clusters import NODE, DeviceCluster

RECORDED: list[Any] = json.loads((Path(__file__).parent / "data/allocations.json").read_text())
"""By number of the cluster: for each claim request, driver, pool and device; null for none, "error" for an error."""


@pytest.mark.parametrize("first", range(0, len(RECORDED), 100))
def test_every_cluster_gets_the_devices_that_kube_scheduler_chooses(first: int):
    for seed in range(first, first + 100):
        found, _ = answered(DeviceCluster(seed).question())

        recorded = RECORDED[seed]
        expected = [[tuple(each) for each in claim] for claim in recorded] if isinstance(recorded, list) else None
        assert found == expected, f"cluster {seed}"


def test_the_recorded_clusters_have_many_of_each_kind():
    assert sum(isinstance(each, list) for each in RECORDED) >= 100
    assert sum(each is None for each in RECORDED) >= 100
    assert sum(each == "error" for each in RECORDED) >= 50


# -- by hand -----------------------------------------------------------------------------------------------------------
def question(devices: list[dict[str, Any]], *requests: dict[str, Any], **more: Any) -> dict[str, Any]:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "d.example.com", "pool": pool, "nodeName": NODE, "devices": devices}
    return {
        "node": {"metadata": {"name": NODE, "labels": {}}},
        "slices": [{"metadata": {"name": "s"}, "spec": spec}],
        "classes": [{"metadata": {"name": "any"}, "spec": {}}],
        "claims": [{"spec": {"devices": {"requests": list(requests), **more}}}],
        "allocated": [],
    }


def exactly(name: str = "r", **ask: Any) -> dict[str, Any]:
    return {"name": name, "exactly": {"deviceClassName": "any", "allocationMode": "ExactCount", "count": 1, **ask}}


def test_devices_of_one_request_all_differ_where_a_constraint_says_so():
    """kube-scheduler compares the third device with the second alone, and accepts a, b, a."""
    devices = [{"name": f"n{i}", "attributes": {"rack": {"string": rack}}} for i, rack in enumerate("aba")]
    asked = question(devices, exactly(count=3), constraints=[{"distinctAttribute": "d.example.com/rack"}])

    assert answered(asked) == (None, "")


def test_a_search_that_takes_too_long_ends_with_a_reason():
    devices = [{"name": f"n{i:02}", "attributes": {"odd": {"int": i}}} for i in range(40)]
    requests = [exactly(f"r{i}", count=4) for i in range(4)]
    asked = question(
        devices,
        *requests,
        exactly("last"),
        constraints=[{"matchAttribute": "d.example.com/none", "requests": ["last"]}],
    )

    assert answered(asked) == (None, "timed out trying to allocate devices")


def test_a_request_without_a_kind_is_named():
    assert answered(question([{"name": "n"}], {"name": "r"})) == (
        None,
        "request r: it has neither exactly nor firstAvailable",
    )


def test_a_class_that_is_not_there_is_named():
    found = answered(question([{"name": "n"}], exactly(deviceClassName="gone")))

    assert found == (None, "request r: device class gone not found")


def test_more_devices_than_a_claim_may_have_are_refused():
    assert answered(question([{"name": "n"}], exactly(count=33)))[1] == "33 devices are requested, a claim may have 32"


# -- attributes with several values ------------------------------------------------------------------------------------
def on_networks(*networks: str) -> list[dict[str, Any]]:
    return [{"name": f"n{i}", "attributes": {"net": {"strings": list(each)}}} for i, each in enumerate(networks)]


def test_devices_match_when_they_all_have_a_value_in_common():
    asked = exactly(count=3), {"matchAttribute": "d.example.com/net"}
    found, _ = answered(question(on_networks("ab", "bc", "ca", "bd"), asked[0], constraints=[asked[1]]))

    assert found is not None
    assert [device for *_, device in found[0]] == ["n0", "n1", "n3"]


def test_devices_are_distinct_when_no_two_have_a_value_in_common():
    asked = exactly(count=2), {"distinctAttribute": "d.example.com/net"}
    found, _ = answered(question(on_networks("ab", "bc", "cd"), asked[0], constraints=[asked[1]]))

    assert found is not None
    assert [device for *_, device in found[0]] == ["n0", "n2"]


def test_one_value_matches_a_list_that_has_it():
    devices = [*on_networks("ab"), {"name": "single", "attributes": {"net": {"string": "b"}}}]
    found, _ = answered(question(devices, exactly(count=2), constraints=[{"matchAttribute": "d.example.com/net"}]))

    assert found is not None


def test_selectors_see_lists():
    selector = {"cel": {"expression": 'device.attributes["d.example.com"].net.exists(each, each == "c")'}}
    found, _ = answered(question(on_networks("ab", "bc"), exactly(selectors=[selector])))

    assert found is not None
    assert [device for *_, device in found[0]] == ["n1"]
