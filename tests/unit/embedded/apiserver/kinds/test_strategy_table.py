"""The strategies of built-in kinds, kind by kind: what is prepared, kept, refused, and what a delete means."""

from __future__ import annotations

import base64

import pytest

from volcano.api.errors import BadRequest, MethodNotAllowed
from volcano.api.scheme import BUILT_IN
from volcano.embedded.apiserver.kinds.strategy import Strategy
from volcano.embedded.apiserver.kinds.strategy_table import STRATEGIES, strategy_for
from volcano.embedded.apiserver.store.memory_store import MemoryStore

ROWS = {row.qualified: row for row in BUILT_IN}


def strategy(resource: str) -> Strategy:
    return strategy_for(ROWS[resource])


@pytest.mark.parametrize("resource", ROWS)
def test_every_built_in_kind_has_a_strategy_that_can_read_an_empty_object(resource: str):
    one = strategy(resource)

    assert type(one) is STRATEGIES.get(resource, Strategy)
    assert set(one.field_texts({})) == set(one.selectable_fields)
    assert one.to_stored(one.from_stored({"kind": one.row.kind})) == {"kind": one.row.kind} or not one.has_stored_form


@pytest.mark.parametrize(
    ("resource", "status"),
    [
        ("namespaces", {"phase": "Active"}),
        ("services", {"loadBalancer": {}}),
        ("persistentvolumeclaims", {"phase": "Pending"}),
        ("deployments.apps", {}),
        ("nodes", {"given": 1}),
        ("configmaps", {"given": 1}),
        ("ingresses.networking.k8s.io", None),
    ],
)
def test_the_status_of_a_new_object(resource: str, status: dict | None):
    obj = {"metadata": {"name": "a", "uid": "u"}, "spec": {}, "status": {"given": 1}}

    strategy(resource).prepare_create(obj)

    assert obj.get("status") == status


@pytest.mark.parametrize("spec", [{"containers": [{"name": "c"}]}, None])
def test_the_status_of_a_new_pod_comes_with_its_shape(spec: dict | None):
    pod, _ = strategy("pods").shape_new({"metadata": {}, "spec": spec, "status": {"given": 1}}, mode="Ignore")

    assert pod["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


def test_the_initial_status_is_not_shared_between_objects():
    first, second = ({"metadata": {"name": name}} for name in "ab")
    services = strategy("services")
    services.prepare_create(first)
    first["status"]["loadBalancer"]["ingress"] = []

    services.prepare_create(second)

    assert second["status"] == {"loadBalancer": {}}


@pytest.mark.parametrize(
    ("spec", "status", "metadata", "asked", "expected"),
    [
        ({}, {}, {}, None, 0),
        ({"nodeName": "n"}, {}, {}, None, 30),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 5}, {}, {}, None, 5),
        ({"nodeName": "n"}, {}, {}, 0, 0),
        ({"nodeName": "n"}, {}, {}, 90, 90),
        ({"nodeName": "n"}, {"phase": "Failed"}, {}, 90, 0),
        ({"nodeName": "n"}, {}, {"deletionTimestamp": "t", "deletionGracePeriodSeconds": 20}, None, 20),
        ({"nodeName": "n"}, {}, {"deletionTimestamp": "t", "deletionGracePeriodSeconds": 20}, 5, 5),
        ({"nodeName": "n"}, {}, {"deletionTimestamp": "t", "deletionGracePeriodSeconds": 20}, 50, 20),
    ],
)
def test_a_pod_on_a_node_has_time_to_end(spec: dict, status: dict, metadata: dict, asked: int | None, expected: int):
    pod = {"metadata": metadata, "spec": spec, "status": status}

    assert strategy("pods").grace_seconds(pod, asked) == expected


def test_a_namespace_is_held_by_the_finalizers_of_its_spec():
    namespaces, obj = strategy("namespaces"), {"metadata": {"name": "a"}}
    namespaces.prepare_create(obj)

    assert namespaces.is_held(obj)
    assert obj["metadata"]["labels"] == {"kubernetes.io/metadata.name": "a"}
    obj["spec"]["finalizers"] = []
    assert not namespaces.is_held(obj)
    namespaces.mark_deleting(obj)
    assert obj["status"] == {"phase": "Terminating"}


def test_texts_of_a_secret_become_its_data_and_its_type_stays():
    secrets, obj = strategy("secrets"), {"metadata": {}, "stringData": {"a": "text"}}

    secrets.prepare_update(obj, {"type": "Opaque"})

    assert obj == {"metadata": {}, "data": {"a": base64.b64encode(b"text").decode()}, "type": "Opaque"}
    assert [error.path for error in secrets.validate_update({**obj, "type": "other"}, obj)] == ["type"]


def test_events_of_both_groups_are_stored_in_the_form_of_the_core_group():
    events = strategy("events.events.k8s.io")
    given = {"apiVersion": "events.k8s.io/v1", "kind": "Event", "note": "n", "regarding": {"name": "p"}}

    stored = events.to_stored(dict(given))

    assert events.storage == strategy("events").storage == "events"
    assert stored == {"apiVersion": "v1", "kind": "Event", "message": "n", "involvedObject": {"name": "p"}}
    assert events.from_stored(stored) == given


@pytest.mark.parametrize(
    ("resource", "obj", "fields"),
    [
        (
            "pods",
            {"status": {"podIPs": [{"ip": "1.2.3.4"}]}},
            {"status.podIPs": "1.2.3.4", "spec.hostNetwork": "false"},
        ),
        ("nodes", {"spec": {"unschedulable": True}}, {"spec.unschedulable": "true"}),
        ("events", {"source": {"component": "c"}}, {"source": "c", "reason": ""}),
        ("replicasets.apps", {}, {"status.replicas": "0"}),
    ],
)
def test_selectable_fields_are_texts(resource: str, obj: dict, fields: dict):
    texts = strategy(resource).field_texts(obj)

    assert {path: texts[path] for path in fields} == fields


def test_a_body_of_another_kind_is_refused():
    pods = strategy("pods")

    with pytest.raises(BadRequest, match="unknown conversion"):
        pods.check_kind({"kind": "Service", "apiVersion": "v1"}, is_known=lambda *_: True)
    with pytest.raises(BadRequest, match="no kind"):
        pods.check_kind({"kind": "Nothing", "apiVersion": "v1"}, is_known=lambda *_: False)


def test_only_pods_services_and_nodes_can_be_proxied_to():
    with pytest.raises(MethodNotAllowed):
        strategy("configmaps").proxy_address(MemoryStore(), "default", "a", "")
