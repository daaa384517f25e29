"""The status of disruption budgets and of resource quotas."""

from __future__ import annotations

from datetime import timedelta

import pytest

from volcano.api.core import Pod, PodDisruptionBudget, ResourceQuota
from volcano.embedded.cluster.disruption import DisruptionController
from volcano.embedded.cluster.quotas import ResourceQuotaController
from volcano.testing.pure_world import START, PureWorld


def a_pod(name: str, *, ready: bool = True, owner: dict | None = None, requests: dict | None = None, **spec) -> dict:
    metadata: dict = {"name": name, "labels": {"app": "web"}}
    if owner is not None:
        metadata["ownerReferences"] = [
            {
                "apiVersion": "apps/v1",
                "kind": owner["kind"],
                "name": owner["metadata"]["name"],
                "uid": owner["metadata"]["uid"],
                "controller": True,
            }
        ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [{"name": "c", "resources": {"requests": requests or {}}}], **spec},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True" if ready else "False"}]},
    }


def a_budget(**spec) -> dict:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec},
    }


def a_replica_set(replicas: int) -> dict:
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "rs", "uid": "uid-rs"},
        "spec": {"replicas": replicas},
    }


def budget(world: PureWorld):
    found = world.get(PodDisruptionBudget, "b")
    assert found is not None
    return found.status


@pytest.mark.parametrize(
    ("spec", "expected", "desired", "allowed"),
    [
        ({"minAvailable": 2}, 4, 2, 1),
        ({"minAvailable": 3}, 4, 3, 0),
        ({"minAvailable": "50%"}, 5, 3, 0),
        ({"maxUnavailable": 1}, 5, 4, 0),
        ({"maxUnavailable": 3}, 5, 2, 1),
        ({"maxUnavailable": "60%"}, 5, 2, 1),
        ({"maxUnavailable": "100%"}, 5, 0, 3),
    ],
)
def test_how_many_may_go(spec: dict, expected: int, desired: int, allowed: int):
    owner = a_replica_set(5)
    pods = [a_pod(f"p{i}", owner=owner, ready=i < 3) for i in range(4)]

    world = PureWorld(a_budget(**spec), owner, *pods, controllers=[DisruptionController()]).settle()

    status = budget(world)
    assert (status.expected_pods, status.desired_healthy, status.current_healthy) == (expected, desired, 3)
    assert status.disruptions_allowed == allowed
    assert status.conditions[0].status == ("True" if allowed else "False")
    assert status.observed_generation == 1


def test_pods_that_change_are_counted_anew():
    world = PureWorld(a_budget(minAvailable=1), a_pod("a"), a_pod("b"), controllers=[DisruptionController()]).settle()
    assert budget(world).disruptions_allowed == 1

    world.delete(Pod, "a")
    world.settle()

    assert budget(world).disruptions_allowed == 0


def test_a_granted_eviction_counts_until_it_is_seen_or_forgotten():
    given = a_budget(minAvailable=1)
    given["status"] = {"disruptedPods": {"a": START.isoformat()}}
    world = PureWorld(given, a_pod("a"), a_pod("b"), controllers=[DisruptionController()]).settle()
    assert budget(world).disruptions_allowed == 0

    world.advance(timedelta(minutes=2))

    assert budget(world).disruptions_allowed == 1
    assert budget(world).disrupted_pods is None


def test_pods_without_a_scale_count_one_each():
    pods = [a_pod(f"p{i}") for i in range(4)]

    world = PureWorld(a_budget(maxUnavailable=1), *pods, controllers=[DisruptionController()]).settle()

    assert budget(world).disruptions_allowed == 1


# -- quotas ---------------------------------------------------------------------------------------------------
def a_quota(hard: dict, **spec) -> dict:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q"},
        "spec": {"hard": hard, **spec},
    }


def a_quota_world(*objects: dict) -> PureWorld:
    return PureWorld(*objects, controllers=[ResourceQuotaController()]).advance(timedelta(seconds=2))


def used(world: PureWorld) -> dict:
    return world.raw(ResourceQuota, "q")["status"]["used"]


def test_what_pods_ask_for_is_used():
    hard = {"cpu": "4", "requests.cpu": "4", "limits.cpu": "4", "pods": "10", "count/pods": "10"}
    finished = a_pod("done", requests={"cpu": "1"})
    finished["status"]["phase"] = "Succeeded"

    world = a_quota_world(
        a_quota(hard), a_pod("a", requests={"cpu": "500m"}), a_pod("b", requests={"cpu": "1"}), finished
    )

    assert used(world) == {"cpu": "1500m", "requests.cpu": "1500m", "limits.cpu": "0", "pods": "2", "count/pods": "3"}
    assert world.raw(ResourceQuota, "q")["status"]["hard"] == hard


def test_objects_and_storage_are_counted():
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c"},
        "spec": {"storageClassName": "fast", "resources": {"requests": {"storage": "3Gi"}}},
    }
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}}
    hard = {
        "configmaps": "5",
        "count/configmaps": "5",
        "persistentvolumeclaims": "2",
        "requests.storage": "10Gi",
        "fast.storageclass.storage.k8s.io/requests.storage": "5Gi",
        "count/jobs.batch.volcano.sh": "3",
    }

    world = a_quota_world(a_quota(hard), claim, config)

    assert used(world) == {
        "configmaps": "1",
        "count/configmaps": "1",
        "persistentvolumeclaims": "1",
        "requests.storage": "3Gi",
        "fast.storageclass.storage.k8s.io/requests.storage": "3Gi",
        "count/jobs.batch.volcano.sh": "0",
    }


@pytest.mark.parametrize(
    ("spec", "pods"),
    [
        ({"scopes": ["BestEffort"]}, "1"),
        ({"scopes": ["NotBestEffort"]}, "2"),
        ({"scopes": ["Terminating"]}, "1"),
        ({"scopes": ["NotTerminating"]}, "2"),
        (
            {
                "scopeSelector": {
                    "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]
                }
            },
            "1",
        ),
        ({"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "DoesNotExist"}]}}, "2"),
    ],
)
def test_a_quota_may_be_for_some_pods_only(spec: dict, pods: str):
    world = a_quota_world(
        a_quota({"pods": "10"}, **spec),
        a_pod("idle"),
        a_pod("busy", requests={"cpu": "1"}, priorityClassName="high"),
        a_pod("short", requests={"cpu": "1"}, activeDeadlineSeconds=60),
    )

    assert used(world) == {"pods": pods}


def test_a_pod_that_finishes_is_not_used_any_more():
    world = a_quota_world(a_quota({"pods": "10"}), a_pod("a"))

    world.change(Pod, "a", {"status": {"phase": "Failed"}})
    world.advance(timedelta(seconds=2))

    assert used(world) == {"pods": "0"}
