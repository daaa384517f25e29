"""The status of disruption budgets."""

from __future__ import annotations

from datetime import timedelta

import pytest

from volcano.api.core import Pod, PodDisruptionBudget
from volcano.embedded.cluster.disruption import DisruptionController
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
