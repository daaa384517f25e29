"""Server-side apply: sequences recorded from Kubernetes, ownership rules one by one, and laws."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volcano.api.errors import BadRequest, Conflict
from volcano.api.schemas.crds import crd_manifests
from volcano.embedded.apiserver.schemas.apply.field_sets import difference, from_fields, intersection, to_fields, union
from volcano.embedded.apiserver.schemas.apply.merge import apply_patch, track_update
from volcano.embedded.apiserver.schemas.crd.structural import compile_schema

DEPLOYMENT = "io.k8s.api.apps.v1.Deployment"
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
VECTORS = json.loads((Path(__file__).parents[1] / "vectors/apply.json").read_text())


def _apply(live, applied, manager="m", *, force=False, schema=DEPLOYMENT, now=NOW, **more):
    before = copy.deepcopy((live, applied))
    try:
        return apply_patch(live, applied, manager=manager, force=force, schema=schema, now=now, **more)
    finally:
        assert (live, applied) == before


def _update(old, new, manager="u", *, schema=DEPLOYMENT, now=NOW, **more):
    return track_update(old, new, manager=manager, schema=schema, now=now, **more)


def _deployment(*containers, labels=None, **spec):
    metadata = {"name": "d", "namespace": "n", **({"labels": labels} if labels else {})}
    if containers:
        spec["template"] = {"spec": {"containers": list(containers)}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, **({"spec": spec} if spec else {})}


def _fields(obj, manager, operation="Apply"):
    for entry in obj["metadata"]["managedFields"]:
        if (entry["manager"], entry["operation"]) == (manager, operation):
            return entry["fieldsV1"]
    return None


def _plain(value):
    """Without nulls and empties: what a typed Kubernetes object does not write."""
    if isinstance(value, dict):
        return {k: kept for k, v in value.items() if (kept := _plain(v)) not in (None, {}, [])}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _bare(obj):
    metadata = {k: v for k, v in obj.get("metadata", {}).items() if k != "managedFields"}
    return {**obj, "metadata": metadata}


@pytest.mark.parametrize("vector", VECTORS, ids=range(len(VECTORS)))
def test_a_sequence_of_writes_ends_as_in_kubernetes(vector):
    live = None
    for step in vector["steps"]:
        error = ""
        try:
            if step["do"] == "apply":
                live = _apply(live, step["obj"], step["manager"], force=step["force"])
            else:
                obj = copy.deepcopy(step["obj"])
                obj["metadata"]["managedFields"] = live["metadata"]["managedFields"]
                live = _update(live, obj, step["manager"])
        except Conflict as conflict:
            error = str(conflict)
        expected, entries = step["live"]

        assert error == step["error"]
        assert _plain(_bare(live or {})) == {k: v for k, v in expected.items() if live or k == "none"}
        found = [
            {"manager": e["manager"], "operation": e["operation"], "fields": e["fieldsV1"]}
            for e in (live or {}).get("metadata", {}).get("managedFields", [])
        ]
        order = lambda entry: (entry["operation"], entry["manager"])  # noqa: E731
        assert sorted(found, key=order) == sorted(entries, key=order)


def test_an_applier_owns_what_it_applied_and_nothing_else():
    live = _apply(None, _deployment({"name": "c", "image": "i"}, replicas=2, labels={"a": "b"}))

    assert _fields(live, "m") == {
        "f:metadata": {"f:labels": {"f:a": {}}},
        "f:spec": {
            "f:replicas": {},
            "f:template": {"f:spec": {"f:containers": {'k:{"name":"c"}': {".": {}, "f:image": {}, "f:name": {}}}}},
        },
    }


def test_applying_the_same_again_changes_nothing_not_even_a_time():
    live = _apply(None, _deployment({"name": "c", "image": "i"}, replicas=2))

    assert _apply(live, _deployment({"name": "c", "image": "i"}, replicas=2), now=LATER) is live


def test_what_is_not_applied_any_more_is_removed():
    live = _apply(None, _deployment({"name": "a"}, {"name": "b"}, replicas=2, labels={"x": "1", "y": "2"}))

    live = _apply(live, _deployment({"name": "a"}, labels={"x": "1"}))

    assert _bare(live) == _deployment({"name": "a"}, labels={"x": "1"})


def test_what_another_manager_also_has_stays():
    live = _apply(None, _deployment(replicas=2, labels={"x": "1"}), "one")
    live = _apply(live, _deployment(replicas=2), "two")

    live = _apply(live, _deployment(labels={"x": "1"}), "one")

    assert live["spec"]["replicas"] == 2
    assert _fields(live, "two") == {"f:spec": {"f:replicas": {}}}


def test_another_value_for_anothers_field_is_a_conflict_that_names_it():
    live = _apply(None, _deployment({"name": "c", "image": "1"}, replicas=2), "one")

    with pytest.raises(Conflict) as refusal:
        _apply(live, _deployment({"name": "c", "image": "2"}, replicas=3), "two")

    assert str(refusal.value) == (
        'Apply failed with 2 conflicts: conflicts with "one":\n'
        '- .spec.replicas\n- .spec.template.spec.containers[name="c"].image'
    )
    assert refusal.value.details["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".spec.replicas"},
        {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "one"',
            "field": '.spec.template.spec.containers[name="c"].image',
        },
    ]


def test_a_conflict_with_an_updater_names_the_version_and_the_subresource():
    live = _update(None, _deployment(replicas=2), "scaler", subresource="scale")

    with pytest.raises(Conflict) as refusal:
        _apply(live, _deployment(replicas=3), "two")

    assert str(refusal.value) == (
        'Apply failed with 1 conflict: conflict with "scaler" with subresource "scale" using apps/v1: .spec.replicas'
    )


def test_force_takes_the_field_over():
    live = _apply(None, _deployment(replicas=2), "one")

    live = _apply(live, _deployment(replicas=3), "two", force=True)

    assert live["spec"]["replicas"] == 3
    assert _fields(live, "one") is None
    assert _fields(live, "two") == {"f:spec": {"f:replicas": {}}}


def test_the_same_value_is_shared_without_conflict():
    live = _apply(None, _deployment(replicas=2), "one")

    live = _apply(live, _deployment(replicas=2), "two")

    assert _fields(live, "one") == _fields(live, "two")


def test_what_was_there_before_the_first_apply_belongs_to_nobody_in_particular():
    live = _deployment(replicas=2, paused=True)

    applied = _apply(live, _deployment(replicas=2), "m")

    assert "f:paused" in _fields(applied, "before-first-apply", "Update")["f:spec"]
    with pytest.raises(Conflict, match="before-first-apply"):
        _apply(live, _deployment(replicas=5), "m")


def test_kubectl_takes_over_what_it_had_applied_from_the_client_side():
    last = json.dumps(_deployment(replicas=2))
    live = _deployment(replicas=2)
    live["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": last}
    live = _update(None, live, "kubectl-client-side-apply")

    applied = _apply(live, _deployment(replicas=3), "kubectl")

    assert applied["spec"]["replicas"] == 3


def test_an_update_takes_what_it_changes_and_the_time_is_its_own():
    created = _update(None, _deployment(replicas=2, paused=False), "one")
    new = copy.deepcopy(created)
    new["spec"]["replicas"] = 3

    updated = _update(created, new, "two", now=LATER)

    assert _fields(updated, "one", "Update") == {"f:spec": {"f:paused": {}}}
    assert _fields(updated, "two", "Update") == {"f:spec": {"f:replicas": {}}}
    assert [e["time"] for e in updated["metadata"]["managedFields"]] == ["2026-01-02T03:04:05Z", "2026-01-02T04:04:05Z"]


def test_an_update_that_changes_nothing_changes_no_entry():
    created = _update(None, _deployment(replicas=2), "one")

    assert _update(created, copy.deepcopy(created), "two", now=LATER) == created


def test_a_request_may_forget_who_manages_what():
    created = _update(None, _deployment(replicas=2), "one")
    new = copy.deepcopy(created)
    new["metadata"]["managedFields"] = [{}]

    assert "managedFields" not in _update(created, new, "two")["metadata"]


def test_updaters_are_put_together_when_they_become_many():
    live = _update(None, _deployment(labels={"l": "x"}), "m0")
    for index in range(1, 15):
        new = copy.deepcopy(live)
        new["metadata"]["labels"][f"l{index}"] = "y"
        live = _update(live, new, f"m{index}", now=NOW + timedelta(seconds=index))

    managers = [entry["manager"] for entry in live["metadata"]["managedFields"]]
    assert len(managers) == 10
    assert "ancient-changes" in managers


def test_structs_that_are_always_there_are_not_owned_by_whoever_creates_a_pod():
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"},
    }

    created = _update(None, pod, "kubectl-create", schema="io.k8s.api.core.v1.Pod")

    assert _fields(created, "kubectl-create", "Update") == {
        "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
        "f:spec": {
            "f:containers": {'k:{"name":"c"}': {".": {}, "f:image": {}, "f:name": {}}},
            "f:restartPolicy": {},
        },
    }


QUEUES = compile_schema(
    next(c for c in crd_manifests() if c["metadata"]["name"] == "queues.scheduling.volcano.sh")["spec"]["versions"][0][
        "schema"
    ]["openAPIV3Schema"]
)


def _queue(**parts):
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "q"}, **parts}


def test_a_custom_resource_is_applied_by_its_schema():
    live = _apply(None, _queue(spec={"weight": 1, "capability": {"cpu": "1"}}), "one", schema=QUEUES)

    live = _apply(live, _queue(spec={"capability": {"memory": "1Gi"}}), "two", schema=QUEUES)

    assert live["spec"] == {"weight": 1, "capability": {"cpu": "1", "memory": "1Gi"}}
    assert _fields(live, "two") == {"f:spec": {"f:capability": {"f:memory": {}}}}


def test_the_status_of_a_queue_has_its_own_manager():
    live = _apply(None, _queue(spec={"weight": 1}), "user", schema=QUEUES)

    live = _apply(
        live, _queue(status={"state": "Open"}), "queue-controller", schema=QUEUES, subresource="status", force=True
    )

    entry = next(e for e in live["metadata"]["managedFields"] if e["manager"] == "queue-controller")
    assert (entry["subresource"], entry["fieldsV1"]) == ("status", {"f:status": {"f:state": {}}})
    assert live["spec"] == {"weight": 1}


def test_lists_without_keys_are_replaced_as_a_whole():
    schema = compile_schema(
        {
            "type": "object",
            "properties": {
                "plain": {"type": "array", "items": {"type": "string"}},
                "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                "whole": {
                    "type": "object",
                    "x-kubernetes-map-type": "atomic",
                    "additionalProperties": {"type": "string"},
                },
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            },
        }
    )
    first = {
        "apiVersion": "a/v1",
        "kind": "K",
        "plain": ["a"],
        "set": ["a"],
        "whole": {"a": "1"},
        "free": {"a": {"b": 1}},
    }
    second = {
        "apiVersion": "a/v1",
        "kind": "K",
        "plain": ["b"],
        "set": ["b"],
        "whole": {"b": "2"},
        "free": {"a": {"c": 2}},
    }

    live = _apply(_apply(None, first, "one", schema=schema), second, "two", schema=schema, force=True)

    assert (live["plain"], live["set"], live["whole"]) == (["b"], ["a", "b"], {"b": "2"})
    assert live["free"] == {"a": {"b": 1, "c": 2}}


@pytest.mark.parametrize(
    ("applied", "message"),
    [
        (_deployment(foo=1), r"\.spec\.foo: field not declared in schema"),
        (_deployment({"image": "i"}), 'omits key field "name"'),
        (_deployment({"name": "a"}, {"name": "a"}), "duplicate entries for key"),
        (_deployment(template=[]), "expected map, got list"),
        (_deployment(replicas={}), "expected scalar, got map"),
        ({**_deployment(), "metadata": {"managedFields": []}}, "metadata.managedFields must be nil"),
    ],
)
def test_a_patch_that_is_not_of_the_type_is_refused(applied, message):
    with pytest.raises(BadRequest, match=message):
        _apply(None, applied)


@pytest.mark.parametrize("fields", [[], {"x": {}}, {"f:a": 1}, {"k:{": {}}, {"v:": {}}])
def test_broken_managed_fields_are_refused_by_apply_and_forgotten_by_update(fields):
    entry = {
        "manager": "m",
        "operation": "Apply",
        "apiVersion": "apps/v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    live = _deployment(replicas=1)
    live["metadata"]["managedFields"] = [entry]

    if fields:
        with pytest.raises(BadRequest, match="managed fields"):
            _apply(live, _deployment(replicas=1))
    assert _update(live, _deployment(replicas=2))["spec"]["replicas"] == 2


# -- laws -----------------------------------------------------------------------------------------------------
names = st.sampled_from(["a", "b", "c"])
containers = st.lists(
    st.fixed_dictionaries({"name": names}, optional={"image": names, "args": st.lists(names, max_size=2)}),
    max_size=3,
    unique_by=lambda c: c["name"],
)
specs = st.fixed_dictionaries(
    {},
    optional={
        "replicas": st.integers(0, 3),
        "template": st.fixed_dictionaries({"spec": st.fixed_dictionaries({"containers": containers})}),
    },
)
deployments = specs.map(lambda spec: _deployment(**spec))
trees = st.recursive(
    st.just({".": {}}),
    lambda inner: st.dictionaries(names.map(lambda n: f"f:{n}"), inner, min_size=1, max_size=3),
    max_leaves=8,
)


@given(deployments, deployments, st.booleans())
def test_applying_twice_is_applying_once(first, second, force):
    live = _apply(None, first, "one")
    try:
        once = _apply(live, second, "two", force=force)
    except Conflict:
        return

    assert _apply(once, second, "two", force=force, now=LATER) is once


@given(deployments, deployments)
def test_a_forced_apply_leaves_what_it_applied(first, second):
    live = _apply(_apply(None, first, "one"), second, "two", force=True)

    assert _apply(live, second, "three") is not None


@given(deployments, deployments)
def test_a_sole_applier_has_exactly_what_it_applied_last(first, second):
    live = _apply(_apply(None, first), second)

    assert _plain(_bare(live)) == _plain(second)


@given(trees, trees)
def test_sets_of_fields_obey_the_laws_of_sets(one, other):
    assert union(difference(one, other), intersection(one, other)) == one
    assert difference(one, one) == {}
    assert intersection(one, union(one, other)) == one
    assert from_fields(to_fields(one)) == one


garbage = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["spec", "template", "containers", "name", "metadata", "labels", "x"]), inner, max_size=4
        )
    ),
)


@given(st.dictionaries(st.sampled_from(["spec", "metadata", "status", "x"]), garbage))
def test_any_json_is_applied_tracked_or_refused(obj):
    for schema in (DEPLOYMENT, QUEUES, None):
        try:
            live = _apply(None, obj, schema=schema)
            _apply(live, obj, "other", schema=schema)
        except (BadRequest, Conflict):
            pass
        _update(_deployment(replicas=1), obj, schema=schema)
        _update(None, obj, schema=schema)
