"""Structural schemas: messages as recorded from Kubernetes, pruning, defaults, ratcheting, and no surprise on garbage."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from volcano.api.schemas.crds import crd_manifests
from volcano.embedded.apiserver.schemas.crd.checks import TooDeep
from volcano.embedded.apiserver.schemas.crd.structural import compile_schema


def recorded(name):
    """Answers of Kubernetes 1.36 to the same input."""
    return json.loads((Path(__file__).parents[1] / "vectors" / f"{name}.json").read_text())


SCHEMAS = {crd["metadata"]["name"]: crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] for crd in crd_manifests()}
COMPILED = {name: compile_schema(schema) for name, schema in SCHEMAS.items()}
JOBS = COMPILED["jobs.batch.volcano.sh"]

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6)
names = st.sampled_from(["spec", "status", "tasks", "metadata", "template", "containers", "name", "x", "", "a.b"])
garbage = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names | st.text(max_size=4), inner, max_size=4)
)


def _wrapped(schema):
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": {"x": schema}}}}


def _job(**spec):
    task = {"name": "a", "replicas": 1, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {"tasks": [task], **spec},
    }


def _texts(errors):
    return [str(error) for error in errors]


@pytest.mark.parametrize("vector", recorded("structural"), ids=lambda v: f"{v['schema']}-{v['value']}"[:90])
def test_errors_and_defaults_are_those_of_kubernetes(vector):
    schema = compile_schema(_wrapped(vector["schema"]))
    obj = {"apiVersion": "a/v1", "kind": "K", "metadata": {"name": "x"}, "spec": {"x": copy.deepcopy(vector["value"])}}

    schema.prune(obj)
    schema.default(obj)
    errors = schema.validate(obj)

    found = [{"field": e.path, "message": e.message, "type": e.reason} for e in errors]
    assert sorted(found, key=str) == sorted(vector["errors"], key=str)
    assert obj["spec"] == vector["after"]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"minAvailable": -1},
            "spec.minAvailable: Invalid value: -1: spec.minAvailable in body should be greater than or equal to 0",
        ),
        ({"tasks": []}, "spec.tasks: Invalid value: 0: spec.tasks in body should have at least 1 items"),
        ({"volumes": [{}]}, "spec.volumes[0].mountPath: Required value"),
        (
            {"volumes": [{"mountPath": ""}]},
            'spec.volumes[0].mountPath: Invalid value: "": spec.volumes[0].mountPath in body should be at least 1 chars long',
        ),
        (
            {"maxRetry": "3"},
            'spec.maxRetry: Invalid value: "string": spec.maxRetry in body must be of type integer: "string"',
        ),
        (
            {"tasks": [{"name": "A"}]},
            "spec.tasks[0].name: Invalid value: \"A\": spec.tasks[0].name in body should match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'",
        ),
        ({"schedulerName": "s" * 64}, "spec.schedulerName: Too long: may not be more than 63 bytes"),
        (
            {"tasks": [{"topologyPolicy": "x"}]},
            'spec.tasks[0].topologyPolicy: Unsupported value: "x": supported values: '
            '"none", "best-effort", "restricted", "single-numa-node"',
        ),
    ],
)
def test_a_bad_job_is_refused_in_kubernetes_words(spec, message):
    assert _texts(JOBS.validate(_job(**spec))) == [message]


def test_a_good_job_is_pruned_filled_in_and_accepted():
    job = _job(plugins={"svc": []}, networkTopology={"highestTierAllowed": 1}, unknown=1)
    job["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["ports"] = [{"containerPort": 80}]

    removed = JOBS.prune(job)
    JOBS.default(job)

    assert removed == ["spec.unknown"]
    assert JOBS.validate(job) == []
    assert (job["spec"]["queue"], job["spec"]["maxRetry"]) == ("default", 3)
    assert job["spec"]["networkTopology"]["mode"] == "hard"
    assert job["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["ports"][0]["protocol"] == "TCP"


def test_a_null_from_a_typed_client_counts_as_absent():
    schema = compile_schema(SCHEMAS["queues.scheduling.volcano.sh"])
    queue = {"spec": {"weight": None}, "status": {"allocated": None}}

    schema.prune(queue)
    schema.default(queue)

    assert queue == {"spec": {"weight": 1, "dequeueStrategy": "traverse"}, "status": {}}
    assert schema.validate(queue) == []


def test_an_update_may_keep_what_was_already_wrong():
    old = _job(minAvailable=-1, maxRetry=-2)
    new = _job(minAvailable=-1, maxRetry=-3)

    errors = JOBS.validate(new, old=old)

    assert [error.path for error in errors] == ["spec.maxRetry"]


def test_an_empty_schema_keeps_nothing_but_metadata():
    schema = compile_schema({"type": "object"})
    obj = {"apiVersion": "a/v1", "kind": "K", "metadata": {"name": "x"}, "spec": {}, "data": 1}

    assert schema.prune(obj) == ["data", "spec"]
    assert set(obj) == {"apiVersion", "kind", "metadata"}


def test_a_schema_nested_without_end_is_refused():
    schema: dict = {"type": "string"}
    for _ in range(200):
        schema = {"type": "object", "properties": {"a": schema}}

    with pytest.raises(TooDeep):
        compile_schema(schema).validate({})


def test_a_text_that_makes_a_pattern_backtrack_is_refused_at_once():
    schema = compile_schema(_wrapped({"type": "string", "pattern": "^(a+)+$"}))

    assert schema.validate({"spec": {"x": "a" * 1000}}) == []
    assert schema.validate({"spec": {"x": "a" * 1000 + "!"}})


@settings(max_examples=300)
@given(st.sampled_from(sorted(SCHEMAS)), garbage)
def test_garbage_is_refused_and_never_an_accident(name, obj):
    schema = COMPILED[name]

    schema.prune(obj)
    schema.default(obj)
    errors = schema.validate(obj)

    assert isinstance(obj, dict) or errors
    assert all(error.path is not None and error.message for error in errors)


@given(garbage.filter(lambda value: isinstance(value, dict)))
def test_pruning_and_filling_in_twice_is_doing_it_once(spec):
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "spec": spec}
    JOBS.prune(job)
    JOBS.default(job)
    once = copy.deepcopy(job)

    removed = JOBS.prune(job)
    JOBS.default(job)

    assert removed == []
    assert repr(job) == repr(once)
