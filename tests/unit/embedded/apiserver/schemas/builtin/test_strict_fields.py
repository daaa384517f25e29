"""Strict decoding of built-in kinds, in the words recorded from Kubernetes."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volcano.api.errors import BadRequest
from volcano.api.scheme import BUILT_IN, find_resource_type
from volcano.embedded.apiserver.schemas.builtin.strict_fields import (
    check_types,
    duplicate_fields,
    prune_core,
    strict_error,
    strict_messages,
)

FOLDER = Path(__file__).parents[1] / "vectors"
POD = find_resource_type("", "Pod")
DIFFERENT_WORDS = ("quantities must match", "ProbeHandler")  # we name the field of a bad quantity


def _decoded(obj):
    """What strict decoding says, or an empty text."""
    resource = find_resource_type(obj["apiVersion"].rpartition("/")[0], obj["kind"])
    try:
        check_types(resource, obj)
    except BadRequest as error:
        return str(error).partition(": ")[2]
    messages = strict_messages(prune_core(resource, copy.deepcopy(obj)), duplicate_fields(json.dumps(obj).encode()))
    return str(strict_error(messages)) if messages else ""


def _parts(text):
    return sorted(text.removeprefix("strict decoding error: ").split(", "))


@pytest.mark.parametrize(
    "vector", json.loads((FOLDER / "decoding.json").read_text()), ids=lambda v: str(v["object"])[-60:]
)
def test_an_object_is_decoded_or_refused_as_kubernetes_does(vector):
    said = _decoded(vector["object"])

    if any(words in vector["error"] for words in DIFFERENT_WORDS):
        assert said
    else:
        assert _parts(said) == _parts(vector["error"])


def test_a_bad_quantity_is_refused_with_the_path_of_its_field():
    pod = {"spec": {"containers": [{"resources": {"limits": {"cpu": "many"}}}]}}

    with pytest.raises(BadRequest, match=r"spec\.containers\[0\]\.resources\.limits\.cpu: quantities must match"):
        check_types(POD, pod)


def test_the_message_names_the_kind_and_its_version():
    with pytest.raises(BadRequest) as refusal:
        check_types(POD, {"spec": {"priority": "high"}})

    assert str(refusal.value) == (
        'Pod in version "v1" cannot be handled as a Pod: '
        "json: cannot unmarshal string into Go struct field PodSpec.spec.priority of type int32"
    )


def test_unknown_fields_and_nulls_are_dropped():
    pod = {
        "metadata": {"labels": None},
        "spec": {"nodeName": None, "foo": 1, "containers": [{"name": "a", "bar": {}}, None]},
    }

    removed = prune_core(POD, pod)

    assert sorted(removed) == ["spec.containers[0].bar", "spec.foo"]
    assert pod == {"metadata": {}, "spec": {"containers": [{"name": "a"}, {}]}}


def test_schemas_inside_definitions_are_known_at_any_depth():
    crd = find_resource_type("apiextensions.k8s.io", "CustomResourceDefinition")
    inner = {"type": "object", "foo": 1}
    schema = {"properties": {"a": {"items": inner, "additionalProperties": inner, "default": {"free": {"form": 1}}}}}
    obj = {"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}}

    place = "spec.versions[0].schema.openAPIV3Schema.properties.a"
    assert prune_core(crd, obj) == [f"{place}.items.foo", f"{place}.additionalProperties.foo"]


def test_fields_given_twice_are_found_wherever_they_are():
    raw = b'{"a":1,"b":{"c":1,"c":2,"c":3},"a":2,"l":[{"d":1,"d":1}]}'

    assert duplicate_fields(raw) == ["b.c", "a", "l[0].d"]


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b'{"a":1}', b"[" * 100_000, b'{"a":' * 5000, b"\xff"])
def test_texts_without_doubled_fields_or_without_sense_have_none(raw):
    assert duplicate_fields(raw) == []


@pytest.mark.parametrize("vector", json.loads((FOLDER / "defaults.json").read_text()), ids=lambda v: v["given"]["kind"])
def test_what_kubernetes_stores_has_no_unknown_field_and_no_wrong_type(vector):
    assert _decoded(vector["stored"]) == ""


fields = st.sampled_from(
    ["spec", "metadata", "containers", "name", "labels", "rules", "data", "resources", "limits", "cpu"]
)
garbage = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(fields | st.text(max_size=3), inner, max_size=5),
)


@given(st.sampled_from(BUILT_IN), garbage)
def test_any_json_is_checked_and_pruned(resource, obj):
    try:
        check_types(resource, obj)
    except BadRequest:
        pass

    prune_core(resource, obj)

    assert prune_core(resource, obj) == []
