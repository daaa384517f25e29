"""Strategic merge patch: results recorded from Kubernetes, each directive, and laws."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volcano.api.errors import BadRequest
from volcano.embedded.apiserver.schemas.apply.strategic import strategic_merge

POD = "io.k8s.api.core.v1.Pod"
VECTORS = json.loads((Path(__file__).parents[1] / "vectors/strategic.json").read_text())


def _merge(current, patch):
    before = copy.deepcopy((current, patch))
    try:
        return strategic_merge(current, patch, POD)
    finally:
        assert (current, patch) == before


@pytest.mark.parametrize("vector", VECTORS, ids=range(len(VECTORS)))
def test_the_result_is_that_of_kubernetes(vector):
    if vector["refused"]:
        with pytest.raises(BadRequest):
            _merge(vector["current"], vector["patch"])
    else:
        assert _merge(vector["current"], vector["patch"]) == vector["result"]


def _pod(*containers, **spec):
    return {"spec": {"containers": list(containers), **spec}}


def test_containers_are_merged_by_name_and_others_are_kept():
    merged = _merge(
        _pod({"name": "a", "image": "1"}, {"name": "b", "image": "2"}),
        _pod({"name": "b", "image": "3"}, {"name": "c", "image": "4"}),
    )

    images = {c["name"]: c["image"] for c in merged["spec"]["containers"]}
    assert images == {"a": "1", "b": "3", "c": "4"}


def test_an_element_is_deleted_by_its_key():
    merged = _merge(_pod({"name": "a"}, {"name": "b"}), _pod({"name": "a", "$patch": "delete"}))

    assert merged == _pod({"name": "b"})


def test_a_list_is_replaced_when_the_patch_says_so():
    merged = _merge(_pod({"name": "a"}), _pod({"name": "b"}, {"$patch": "replace"}))

    assert merged == _pod({"name": "b"})


def test_an_object_is_replaced_or_emptied_when_the_patch_says_so():
    current = _pod(nodeSelector={"a": "1"}, securityContext={"runAsUser": 1})

    merged = _merge(
        current,
        {"spec": {"nodeSelector": {"$patch": "replace", "b": "2"}, "securityContext": {"$patch": "delete"}}},
    )

    assert merged["spec"]["nodeSelector"] == {"b": "2"}
    assert merged["spec"]["securityContext"] == {}


def test_retained_keys_drop_the_other_source_of_a_volume():
    merged = _merge(
        _pod(volumes=[{"name": "v", "emptyDir": {}}]),
        {"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "configMap"], "configMap": {"name": "c"}}]}},
    )

    assert merged["spec"]["volumes"] == [{"name": "v", "configMap": {"name": "c"}}]


def test_finalizers_are_added_and_deleted_one_by_one():
    current = {"metadata": {"finalizers": ["a", "b"]}}

    merged = _merge(current, {"metadata": {"finalizers": ["c"], "$deleteFromPrimitiveList/finalizers": ["a"]}})

    assert sorted(merged["metadata"]["finalizers"]) == ["b", "c"]


def test_elements_come_in_the_order_the_patch_gives():
    merged = _merge(
        _pod({"name": "a"}, {"name": "b"}, {"name": "c"}),
        {"spec": {"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}]}},
    )

    assert [c["name"] for c in merged["spec"]["containers"]] == ["b", "c", "a"]


@pytest.mark.parametrize(
    "patch",
    [
        {"spec": {"$patch": "frobnicate"}},
        {"spec": {"containers": [{"$patch": "delete"}]}},
        {"spec": {"containers": [{"image": "x"}]}},
        {"spec": {"containers": ["text"]}},
        {"spec": {"$setElementOrder/containers": "x"}},
        {"spec": {"containers": [{"name": "b"}], "$setElementOrder/containers": [{"name": "z"}]}},
        {"spec": {"$retainKeys": "containers"}},
        {"spec": {"$retainKeys": [], "containers": []}},
        {"metadata": {"$deleteFromPrimitiveList/finalizers": 5}},
    ],
)
def test_a_patch_that_contradicts_itself_is_refused(patch):
    with pytest.raises(BadRequest):
        _merge({"metadata": {"finalizers": ["f"]}, **_pod({"name": "a"})}, patch)


def test_a_patch_nested_too_deep_is_refused():
    deep: dict = {"a": 1}
    for _ in range(300):
        deep = {"a": deep}

    with pytest.raises(BadRequest, match="deeper"):
        _merge({}, deep)


names = st.sampled_from(["a", "b", "c"])
envs = st.lists(names, unique=True, max_size=3).map(lambda ns: [{"name": n, "value": "1"} for n in ns])
containers = st.lists(
    st.fixed_dictionaries({"name": names}, optional={"image": names, "args": st.lists(names, max_size=2), "env": envs}),
    max_size=3,
    unique_by=lambda c: c["name"],
)
pods = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.fixed_dictionaries(
            {},
            optional={
                "labels": st.dictionaries(names, names, max_size=2),
                "finalizers": st.lists(names, unique=True, max_size=3),
            },
        ),
        "spec": st.fixed_dictionaries({"containers": containers}),
    },
)


@given(pods, pods)
def test_merging_twice_is_merging_once(current, patch):
    once = _merge(current, patch)

    assert _merge(once, patch) == once


@given(pods)
def test_an_empty_patch_changes_nothing_and_an_object_merged_into_itself_stays(current):
    assert _merge(current, {}) == current
    assert _merge(current, current) == current


garbage = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "spec",
                    "containers",
                    "name",
                    "$patch",
                    "$retainKeys",
                    "$setElementOrder/containers",
                    "volumes",
                    "$deleteFromPrimitiveList/finalizers",
                    "metadata",
                    "finalizers",
                    "labels",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
)


@given(st.dictionaries(st.sampled_from(["spec", "metadata"]), garbage), st.dictionaries(st.text(max_size=4), garbage))
def test_any_patch_is_merged_or_refused(current, patch):
    for one, other in ((current, patch), (current, current), (patch, current)):
        try:
            _merge(one, other)
        except BadRequest:
            pass
