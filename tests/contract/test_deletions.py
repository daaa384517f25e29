"""Deletion: preconditions, finalizers, propagation, grace, collections, evictions."""

from __future__ import annotations

from tests.contract.bodies import a_config, a_pod
from tests.running_server import Client


def test_an_object_without_finalizers_goes_at_once(api: Client, configs: str):
    api.create(configs, a_config("c"))

    answer = api.delete(f"{configs}/c")

    assert (answer.status, answer.body["status"]) == (200, "Success")
    assert api.get(f"{configs}/c").status == 404
    assert api.delete(f"{configs}/c").status == 404


def test_a_finalizer_holds_an_object_until_it_is_taken_off(api: Client, configs: str):
    config = a_config("c")
    config["metadata"]["finalizers"] = ["example.com/hold"]
    api.create(configs, config)

    held = api.delete(f"{configs}/c").body
    assert held["metadata"]["deletionTimestamp"]
    assert api.get(f"{configs}/c").status == 200
    refused = api.merge(f"{configs}/c", {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}})
    api.merge(f"{configs}/c", {"metadata": {"finalizers": None}})

    assert refused.status == 422
    assert api.get(f"{configs}/c").status == 404


def test_preconditions_must_hold(api: Client, configs: str):
    made = api.create(configs, a_config("c")).body

    wrong_uid = api.delete(f"{configs}/c", {"preconditions": {"uid": "other"}})
    wrong_revision = api.delete(f"{configs}/c", {"preconditions": {"resourceVersion": "1"}})
    right = api.delete(f"{configs}/c", {"preconditions": {"uid": made["metadata"]["uid"]}})

    assert (wrong_uid.status, wrong_revision.status, right.status) == (409, 409, 200)


def test_foreground_and_orphan_deletion_leave_a_finalizer_to_the_collector(api: Client, configs: str):
    for name, policy, finalizer in (("f", "Foreground", "foregroundDeletion"), ("o", "Orphan", "orphan")):
        api.create(configs, a_config(name))

        held = api.delete(f"{configs}/{name}", {"propagationPolicy": policy}).body

        assert held["metadata"].get("finalizers") == [finalizer]


def test_a_policy_that_is_none_is_refused(api: Client, configs: str):
    api.create(configs, a_config("c"))

    assert api.delete(f"{configs}/c", {"propagationPolicy": "Sideways"}).status == 422


def test_an_unbound_pod_goes_at_once_and_a_bound_one_is_given_time(api: Client, pods: str):
    api.create(pods, a_pod("free"))
    api.create(pods, a_pod("bound", nodeName="n1", terminationGracePeriodSeconds=7))

    api.delete(f"{pods}/free")
    going = api.delete(f"{pods}/bound").body

    assert api.get(f"{pods}/free").status == 404
    assert going["metadata"]["deletionGracePeriodSeconds"] == 7
    assert going["metadata"]["deletionTimestamp"]
    assert api.get(f"{pods}/bound").status == 200
    api.delete(f"{pods}/bound", gracePeriodSeconds=0)
    assert api.get(f"{pods}/bound").status == 404


def test_a_second_deletion_can_only_shorten_the_grace(api: Client, pods: str):
    api.create(pods, a_pod("p", nodeName="n1"))
    api.delete(f"{pods}/p", gracePeriodSeconds=20)

    longer = api.delete(f"{pods}/p", gracePeriodSeconds=60).body
    shorter = api.delete(f"{pods}/p", gracePeriodSeconds=5).body

    assert longer["metadata"]["deletionGracePeriodSeconds"] == 20
    assert shorter["metadata"]["deletionGracePeriodSeconds"] == 5
    api.delete(f"{pods}/p", gracePeriodSeconds=0)


def test_a_dry_deletion_deletes_nothing(api: Client, configs: str):
    api.create(configs, a_config("c"))

    assert api.delete(f"{configs}/c", dryRun="All").status == 200
    assert api.get(f"{configs}/c").status == 200


def test_a_collection_is_deleted_by_selector(api: Client, pods: str):
    for name in ("a", "b", "c"):
        api.create(pods, a_pod(name))

    answer = api.delete(pods, labelSelector="app in (a,b)")

    assert answer.status == 200
    assert [item["metadata"]["name"] for item in api.get(pods).body["items"]] == ["c"]


def test_a_pod_is_bound_once(api: Client, pods: str):
    api.create(pods, a_pod())
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "p"},
        "target": {"kind": "Node", "name": "n1"},
    }

    first, second = api.create(f"{pods}/p/binding", binding), api.create(f"{pods}/p/binding", binding)

    assert first.status == 201
    assert second.status == 409
    assert 'already assigned to node "n1"' in second.body["message"]
    pod = api.get(f"{pods}/p").body
    assert pod["spec"]["nodeName"] == "n1"
    assert ("PodScheduled", "True") in [(c["type"], c["status"]) for c in pod["status"]["conditions"]]
    api.delete(f"{pods}/p", gracePeriodSeconds=0)


def test_a_deleted_pod_cannot_be_bound(api: Client, pods: str):
    pod = a_pod()
    pod["metadata"]["finalizers"] = ["example.com/hold"]
    api.create(pods, pod)
    api.delete(f"{pods}/p")

    answer = api.create(f"{pods}/p/binding", {"target": {"name": "n1"}, "metadata": {"name": "p"}})

    assert answer.status == 409
    api.merge(f"{pods}/p", {"metadata": {"finalizers": None}})


def test_an_eviction_respects_the_budget(api: Client, namespace: str, pods: str):
    budgets = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "p"}}}
    made = api.create(budgets, {"metadata": {"name": "b"}, "spec": spec}).body
    status = {
        "observedGeneration": made["metadata"]["generation"],
        "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1,
    }  # fmt: skip
    api.create(pods, a_pod("p", nodeName="n1"))
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    api.merge(f"{pods}/p/status", {"status": ready})
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}

    api.merge(f"{budgets}/b/status", {"status": status})
    refused = api.create(f"{pods}/p/eviction", eviction)
    api.merge(f"{budgets}/b/status", {"status": status | {"disruptionsAllowed": 1}})
    allowed = api.create(f"{pods}/p/eviction", eviction)

    assert refused.status == 429
    assert "would violate the pod's disruption budget" in refused.body["message"]
    assert allowed.status == 201
    assert api.get(f"{pods}/p").body["metadata"]["deletionTimestamp"]
    api.delete(f"{pods}/p", gracePeriodSeconds=0)


def test_the_default_namespace_stays(api: Client):
    answer = api.delete("/api/v1/namespaces/default")

    assert answer.status == 403
    assert "this namespace may not be deleted" in answer.body["message"]


def test_nothing_is_made_in_a_namespace_that_ends(api: Client):
    api.create("/api/v1/namespaces", {"metadata": {"name": "ending", "finalizers": ["example.com/hold"]}})
    api.delete("/api/v1/namespaces/ending")

    answer = api.create("/api/v1/namespaces/ending/configmaps", a_config())

    assert answer.status == 403
    assert "because it is being terminated" in answer.body["message"]
    assert api.get("/api/v1/namespaces/ending").body["status"]["phase"] == "Terminating"
    api.merge("/api/v1/namespaces/ending", {"metadata": {"finalizers": None}})
