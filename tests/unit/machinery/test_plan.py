"""Plans as values: what a patch of a status contains, and how owners are named."""

from typing import Any

import msgspec
import pytest

from volcano.api.core import ConfigMap, Pod
from volcano.api.decode import decode_object
from volcano.api.meta import Key
from volcano.api.scheme import resource_type
from volcano.machinery.plan import Create, merge_difference, owner_reference, patch_status, ref

POD = decode_object(
    Pod,
    {"metadata": {"name": "p", "namespace": "ns", "uid": "u", "resourceVersion": "7"}, "status": {"phase": "Pending"}},
)


@pytest.mark.parametrize(
    ("old", "new", "patch"),
    [
        pytest.param({"a": 1}, {"a": 1}, {}, id="nothing changed"),
        pytest.param({"a": 1}, {"a": 2}, {"a": 2}, id="changed"),
        pytest.param({"a": 1, "b": 2}, {"b": 2}, {"a": None}, id="what vanished is null"),
        pytest.param({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "d": 3}}, {"a": {"d": 3, "c": None}}, id="inside"),
        pytest.param({"a": [1]}, {"a": [1, 2]}, {"a": [1, 2]}, id="lists as a whole"),
        pytest.param({}, {"a": {"b": 1}}, {"a": {"b": 1}}, id="new objects as a whole"),
        pytest.param({"a": 1}, 5, 5, id="another type"),
    ],
)
def test_a_merge_patch_holds_only_the_difference(old: Any, new: Any, patch: Any):
    assert merge_difference(old, new) == patch


def test_a_status_patch_is_made_for_the_state_that_was_read():
    wanted = msgspec.structs.replace(POD.status, phase="Failed")

    patch = patch_status(POD, wanted)

    assert patch.body == {"status": {"phase": "Failed"}} and patch.subresource == "status"
    assert (patch.target.uid, patch.target.resource_version) == ("u", "7")
    assert patch_status(POD, wanted, fresh=False).target.resource_version == ""


def test_a_reference_names_the_very_object_and_on_demand_its_state():
    assert ref(POD).key == Key("ns", "p") and ref(POD).resource_version == ""
    assert ref(POD, fresh=True).resource_version == "7"


@pytest.mark.parametrize(
    ("options", "more"),
    [
        ({}, {"controller": True, "blockOwnerDeletion": True}),
        ({"controller": False, "block": False}, {}),
    ],
)
def test_owners_are_named_by_kind_and_uid(options: dict[str, bool], more: dict[str, bool]):
    assert owner_reference(POD, **options) == {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", **more}


def test_the_key_of_what_is_created_comes_from_its_body():
    maps = resource_type(ConfigMap)

    assert Create(maps, {"metadata": {"name": "a", "namespace": "ns"}}).key == Key("ns", "a")
    assert Create(maps, {}).key == Key("", "")
