"""JSON patch and merge patch: the RFCs' examples, bounds, and laws that hold for any JSON."""

from __future__ import annotations

import copy

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from volcano.machinery.patch import PatchError, json_patch, merge_diff, merge_patch

scalars = st.none() | st.booleans() | st.integers(-1000, 1000) | st.floats(allow_nan=False) | st.text(max_size=5)
json_values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
)


def _without_nulls(value):
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return value


# the examples of RFC 7386, appendix A
@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patch_follows_the_examples_of_the_rfc(target, patch, result):
    assert merge_patch(target, patch) == result


@settings(deadline=None)
@given(json_values, json_values)
def test_merging_twice_is_merging_once_and_nothing_given_is_changed(target, patch):
    before = copy.deepcopy((target, patch))

    once = merge_patch(target, patch)

    assert merge_patch(once, patch) == once
    assert (target, patch) == before


@settings(deadline=None)
@given(json_values, json_values)
def test_applying_a_difference_gives_the_new_value(old, new):
    new = _without_nulls(new)

    assert merge_patch(old, merge_diff(old, new)) == new


# the examples of RFC 6902, appendix A
@pytest.mark.parametrize(
    ("target", "operations", "result"),
    [
        ({"foo": "bar"}, [{"op": "add", "path": "/baz", "value": "qux"}], {"baz": "qux", "foo": "bar"}),
        (
            {"foo": ["bar", "baz"]},
            [{"op": "add", "path": "/foo/1", "value": "qux"}],
            {"foo": ["bar", "qux", "baz"]},
        ),
        ({"baz": "qux", "foo": "bar"}, [{"op": "remove", "path": "/baz"}], {"foo": "bar"}),
        ({"foo": ["bar", "qux", "baz"]}, [{"op": "remove", "path": "/foo/1"}], {"foo": ["bar", "baz"]}),
        ({"baz": "qux"}, [{"op": "replace", "path": "/baz", "value": "boo"}], {"baz": "boo"}),
        ({"baz": "qux"}, [{"op": "replace", "path": "/new", "value": "boo"}], {"baz": "qux", "new": "boo"}),
        ({"baz": "qux"}, [{"op": "test", "path": "/new", "value": None}], {"baz": "qux"}),
        (
            {"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}},
            [{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}],
            {"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}},
        ),
        (
            {"foo": ["all", "cows", "eat"]},
            [{"op": "move", "from": "/foo/0", "path": "/foo/2"}],
            {"foo": ["cows", "eat", "all"]},
        ),
        ({"baz": "qux"}, [{"op": "test", "path": "/baz", "value": "qux"}], {"baz": "qux"}),
        ({"foo": "bar"}, [{"op": "add", "path": "/child", "value": {"g": {}}}], {"foo": "bar", "child": {"g": {}}}),
        ({"/": 9, "~1": 10}, [{"op": "test", "path": "/~01", "value": 10}], {"/": 9, "~1": 10}),
        ({"foo": ["bar"]}, [{"op": "add", "path": "/foo/-", "value": ["abc"]}], {"foo": ["bar", ["abc"]]}),
        ({"a": {"b": 1}}, [{"op": "copy", "from": "/a", "path": "/c"}], {"a": {"b": 1}, "c": {"b": 1}}),
        ({"a": 1}, [{"op": "replace", "path": "", "value": {"b": 2}}], {"b": 2}),
    ],
)
def test_json_patch_follows_the_examples_of_the_rfc(target, operations, result):
    assert json_patch(target, operations) == result


@pytest.mark.parametrize(
    "operations",
    [
        [{"op": "test", "path": "/a", "value": "1"}],
        [{"op": "test", "path": "/a", "value": True}],
        [{"op": "add", "path": "/missing/child", "value": 1}],
        [{"op": "remove", "path": "/missing"}],
        [{"op": "replace", "path": "/missing/child", "value": 1}],
        [{"op": "add", "path": "/list/7", "value": 1}],
        [{"op": "add", "path": "/list/01", "value": 1}],
        [{"op": "add", "path": "a", "value": 1}],
        [{"op": "add", "path": "/a"}],
        [{"op": "frobnicate", "path": "/a"}],
        [{"op": "move", "from": "/object", "path": "/object/inner"}],
        [{"op": "remove", "path": ""}],
        ["not an operation"],
        [{"path": "/a", "value": 1}],
    ],
)
def test_a_patch_that_does_not_fit_is_refused(operations):
    with pytest.raises(PatchError):
        json_patch({"a": 1, "list": [1], "object": {}}, operations)


def test_copies_cannot_double_a_document_without_bound():
    doubling = [{"op": "copy", "from": "", "path": f"/{index}"} for index in range(60)]

    with pytest.raises(PatchError, match="copy operations"):
        json_patch({"a": "x" * 100}, doubling)


def test_a_patch_nested_too_deep_is_refused():
    deep: dict = {}
    for _ in range(400):
        deep = {"a": deep}

    with pytest.raises(PatchError, match="deeper"):
        merge_patch({}, deep)


operations = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]) | st.text(max_size=3)},
    optional={
        "path": st.text("/~01a-", max_size=6),
        "from": st.text("/~01a-", max_size=6),
        "value": json_values,
    },
)


@settings(deadline=None)
@given(json_values, st.lists(operations | json_values, max_size=5))
@example([1], [{"op": "remove", "path": "/--0"}])
@example([1], [{"op": "remove", "path": "/" + "1" * 5000}])
def test_any_list_of_operations_is_applied_or_refused(target, given_operations):
    before = copy.deepcopy(target)

    try:
        json_patch(target, given_operations)
    except PatchError:
        pass

    assert target == before
