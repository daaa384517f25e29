"""A step's patch over its template."""

from __future__ import annotations

import copy

import pytest
from flow_objects import a_flow, a_step, a_template, a_world
from hypothesis import given
from hypothesis import strategies as st

from volcano.api.batch import Job
from volcano.controllers.jobflow.merge import merged_spec

TEMPLATE = {
    "queue": "gold",
    "maxRetry": 5,
    "minAvailable": 2,
    "plugins": {"ssh": [], "svc": ["--x=1"]},
    "policies": [{"event": "PodFailed", "action": "RestartJob"}],
    "networkTopology": {"mode": "soft", "highestTierAllowed": 2},
    "volumes": [{"mountPath": "/data", "volumeClaimName": "a"}, {"mountPath": "/logs", "volumeClaimName": "b"}],
    "tasks": [
        {
            "name": "master",
            "replicas": 1,
            "template": {
                "metadata": {"labels": {"role": "master"}},
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [
                        {
                            "name": "main",
                            "image": "one",
                            "command": ["a", "b"],
                            "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                            "ports": [{"containerPort": 80, "protocol": "TCP", "name": "web"}],
                        },
                        {"name": "side", "image": "two"},
                    ],
                    "volumes": [{"name": "tmp", "emptyDir": {}}, {"name": "conf", "configMap": {"name": "c"}}],
                    "tolerations": [{"key": "x", "operator": "Exists"}],
                },
            },
        },
        {"name": "worker", "replicas": 3, "template": {"spec": {"containers": [{"name": "main", "image": "one"}]}}},
    ],
}


def merged(patch: dict) -> dict:
    before = copy.deepcopy(TEMPLATE)
    answer = merged_spec(TEMPLATE, patch)
    assert before == TEMPLATE, "the template is not touched"
    return answer


def test_plain_fields_are_replaced_and_others_stay():
    assert merged({"queue": "silver", "minAvailable": 1}) == {**TEMPLATE, "queue": "silver", "minAvailable": 1}


@pytest.mark.parametrize(
    "patch",
    [
        {"queue": "default"},
        {"maxRetry": 3},
        {"networkTopology": {"mode": "hard"}},
        {"queue": "default", "maxRetry": 3, "tasks": [{"name": "worker"}]},
        {},
    ],
)
def test_a_value_that_is_only_a_default_does_not_override_the_template(patch: dict):
    assert merged(patch) == TEMPLATE


def test_nothing_is_a_value_where_there_is_no_default():
    patched = merged({"minAvailable": 0, "tasks": [{"name": "worker", "replicas": 0}]})

    assert patched["minAvailable"] == 0
    assert patched["tasks"][1]["replicas"] == 0


def test_tasks_merge_by_name():
    patched = merged({"tasks": [{"name": "worker", "replicas": 7}, {"name": "extra", "replicas": 1}]})

    assert [task["name"] for task in patched["tasks"]] == ["master", "worker", "extra"]
    assert patched["tasks"][0] == TEMPLATE["tasks"][0]
    assert patched["tasks"][1] == {**TEMPLATE["tasks"][1], "replicas": 7}


def test_volumes_merge_by_where_they_are_mounted():
    patched = merged(
        {"volumes": [{"mountPath": "/logs", "volumeClaimName": "z"}, {"mountPath": "/new", "volumeClaimName": "n"}]}
    )

    assert patched["volumes"] == [
        {"mountPath": "/data", "volumeClaimName": "a"},
        {"mountPath": "/logs", "volumeClaimName": "z"},
        {"mountPath": "/new", "volumeClaimName": "n"},
    ]


def test_plugins_merge_by_name_and_policies_are_replaced():
    patched = merged({"plugins": {"env": [], "svc": []}, "policies": [{"event": "*", "action": "AbortJob"}]})

    assert patched["plugins"] == {"ssh": [], "svc": [], "env": []}
    assert patched["policies"] == [{"event": "*", "action": "AbortJob"}]


def test_pod_templates_merge_as_kubernetes_merges_them():
    container = {
        "name": "main",
        "image": "three",
        "command": ["c"],
        "env": [{"name": "B", "value": "9"}, {"name": "C", "value": "3"}],
        "ports": [{"containerPort": 80, "protocol": "TCP", "hostPort": 8080}],
    }
    spec = {
        "containers": [container],
        "volumes": [{"name": "conf", "secret": {"secretName": "s"}}],
        "tolerations": [{"key": "y", "operator": "Exists"}],
    }
    patch = {"tasks": [{"name": "master", "template": {"metadata": {"labels": {"more": "yes"}}, "spec": spec}}]}

    template = merged(patch)["tasks"][0]["template"]

    main, side = template["spec"]["containers"]
    assert (main["image"], main["command"]) == ("three", ["c"])
    assert [(e["name"], e["value"]) for e in main["env"]] == [("A", "1"), ("B", "9"), ("C", "3")]
    assert main["ports"] == [{"containerPort": 80, "protocol": "TCP", "name": "web", "hostPort": 8080}]
    assert side == {"name": "side", "image": "two"}
    assert template["spec"]["volumes"] == [
        {"name": "tmp", "emptyDir": {}},
        {"name": "conf", "secret": {"secretName": "s"}},
    ]
    assert template["spec"]["tolerations"] == [{"key": "y", "operator": "Exists"}]
    assert template["spec"]["restartPolicy"] == "Never"
    assert template["metadata"]["labels"] == {"role": "master", "more": "yes"}


def test_tasks_without_names_pair_up_by_their_place():
    template = {"tasks": [{"replicas": 1}, {"replicas": 2}]}

    patched = merged_spec(template, {"tasks": [{"replicas": 5}]})

    assert patched == {"tasks": [{"replicas": 5}, {"replicas": 2}]}


def test_the_job_of_a_patched_step_is_the_patched_template():
    world = a_world(
        a_template("a", replicas=2),
        a_flow(a_step("a", patch={"tasks": [{"name": "work", "replicas": 5}], "queue": "gold"})),
    )

    spec = world.raw(Job, "flow-a")["spec"]

    assert spec["queue"] == "gold"
    assert spec["tasks"][0]["replicas"] == 5
    assert spec["tasks"][0]["template"] == a_template("a")["spec"]["tasks"][0]["template"]


@given(st.dictionaries(st.sampled_from(["queue", "minAvailable", "maxRetry", "schedulerName"]), st.integers(10, 20)))
def test_patching_twice_is_patching_once(patch: dict):
    assert merged_spec(merged_spec(TEMPLATE, patch), patch) == merged_spec(TEMPLATE, patch)
