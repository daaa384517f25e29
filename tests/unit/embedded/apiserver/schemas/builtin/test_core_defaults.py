"""Defaults of the built-in kinds, as recorded from Kubernetes."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volcano.api.scheme import BUILT_IN, find_resource_type
from volcano.embedded.apiserver.schemas.builtin.core_defaults import apply_core_defaults, canonical_quantity
from volcano.embedded.apiserver.schemas.builtin.type_defaults import pull_policy

VECTORS = json.loads((Path(__file__).parents[1] / "vectors/defaults.json").read_text())
KNOWN_DIFFERENCES = {
    ("Node", "status"),  # Go writes the empty strings of nodeInfo
    ("DaemonSet", "metadata"),  # an annotation that has been deprecated for years
    ("VolumeAttachment", "status"),
    ("CustomResourceDefinition", "status"),
}


def _resource(obj):
    return find_resource_type(obj["apiVersion"].rpartition("/")[0], obj["kind"])


def _without_empties(value):
    """Empty lists and nulls are left out by Go and kept by us: they mean the same."""
    if isinstance(value, dict):
        return {k: _without_empties(v) for k, v in value.items() if v is not None and v != []}
    return [_without_empties(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v["given"]["kind"])
def test_an_object_is_stored_as_kubernetes_stores_it(vector):
    obj = copy.deepcopy(vector["given"])

    apply_core_defaults(_resource(obj), obj)

    for field in obj.keys() | vector["stored"].keys():
        if (obj["kind"], field) not in KNOWN_DIFFERENCES:
            assert _without_empties(obj.get(field)) == _without_empties(vector["stored"].get(field)), field


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v["given"]["kind"])
def test_filling_in_twice_is_filling_in_once(vector):
    obj = copy.deepcopy(vector["given"])
    apply_core_defaults(_resource(obj), obj)
    once = copy.deepcopy(obj)

    apply_core_defaults(_resource(obj), obj)

    assert obj == once


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("busybox", "Always"),
        ("busybox:latest", "Always"),
        ("registry.io:5000/a/b", "Always"),
        ("busybox:1.36", "IfNotPresent"),
        ("registry.io:5000/a/b:v1", "IfNotPresent"),
        ("busybox@sha256:" + "a" * 64, "IfNotPresent"),
        ("lower/UPPER", "IfNotPresent"),
        ("", "IfNotPresent"),
        (None, "IfNotPresent"),
    ],
)
def test_only_the_latest_image_is_always_pulled(image, policy):
    assert pull_policy(image) == policy


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("1000m", "1"),
        (0.5, "500m"),
        ("1024Mi", "1Gi"),
        ("1.0001m", "2m"),
        (3, "3"),
        ("-1.0001m", "-2m"),
        ("x", "x"),
        (None, None),
    ],
)
def test_quantities_get_their_canonical_spelling(given, stored):
    assert canonical_quantity(given) == stored


def test_what_a_user_said_is_kept():
    spec = {"terminationGracePeriodSeconds": 0, "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}

    apply_core_defaults(find_resource_type("", "Pod"), pod)

    assert (spec["terminationGracePeriodSeconds"], spec["restartPolicy"]) == (0, "Never")
    assert spec["schedulerName"] == "default-scheduler"


fields = st.sampled_from(
    [
        "spec",
        "status",
        "metadata",
        "template",
        "containers",
        "volumes",
        "ports",
        "strategy",
        "type",
        "webhooks",
        "rules",
    ]
)
garbage = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(fields, inner, max_size=5),
)


@given(st.sampled_from(BUILT_IN), st.dictionaries(fields, garbage))
def test_garbage_is_left_for_the_type_check(resource, obj):
    apply_core_defaults(resource, obj)
