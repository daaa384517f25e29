"""ReplicaSets, ReplicationControllers and Deployments."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from workload_objects import a_template, a_workload, images, pods, set_pod, start_all

from volcano.api.core import Deployment, Pod, ReplicaSet, ReplicationController
from volcano.embedded.cluster.owners import OwnerGarbageController
from volcano.embedded.cluster.workloads import (
    DeploymentController,
    ReplicaSetController,
    ReplicationControllerController,
)
from volcano.testing.pure_world import Killed, PureWorld


def a_world(*objects: dict) -> PureWorld:
    controllers = [
        DeploymentController(),
        ReplicaSetController(),
        ReplicationControllerController(),
        OwnerGarbageController(),
    ]
    return PureWorld(*objects, controllers=controllers).settle()


# -- ReplicaSets ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("kind", "api", "reader"),
    [("ReplicaSet", "apps/v1", ReplicaSet), ("ReplicationController", "v1", ReplicationController)],
)
def test_there_are_as_many_pods_as_wanted(kind: str, api: str, reader: type):
    world = a_world(a_workload(kind, api=api, replicas=3))
    assert len(pods(world)) == 3
    assert all(pod.name.startswith("w-") and len(pod.name) == 7 for pod in pods(world))
    assert all(pod.controller is not None and pod.controller.kind == kind for pod in pods(world))

    start_all(world)
    assert world.raw(reader, "w")["status"] == {
        "replicas": 3, "fullyLabeledReplicas": 3, "readyReplicas": 3, "availableReplicas": 3, "observedGeneration": 1,
    }  # fmt: skip

    world.change(reader, "w", {"spec": {"replicas": 1}})
    world.settle()
    assert len(pods(world)) == 1

    world.change(reader, "w", {"spec": {"replicas": 0}})
    world.settle()
    assert pods(world) == []
    assert world.raw(reader, "w")["status"] == {"replicas": 0, "observedGeneration": 3}


def test_a_pod_that_is_deleted_or_ends_is_made_up_for():
    world = a_world(a_workload("ReplicaSet", replicas=2))
    first, second = pods(world)

    world.delete(Pod, first.name)
    set_pod(world, second.name, "Failed")
    world.settle()

    assert len([pod for pod in pods(world) if not pod.is_finished]) == 2


def test_pods_that_serve_least_go_first():
    world = a_world(a_workload("ReplicaSet", replicas=3))
    a, b, c = pods(world)
    set_pod(world, a.name)
    set_pod(world, b.name, ready=False)
    world.settle()

    world.change(ReplicaSet, "w", {"spec": {"replicas": 2}})
    world.settle()
    assert c.name not in [pod.name for pod in pods(world)]

    world.change(ReplicaSet, "w", {"spec": {"replicas": 1}})
    world.settle()
    assert [pod.name for pod in pods(world)] == [a.name]


def test_a_pod_that_matches_and_is_nobodys_is_adopted():
    stray = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stray", "labels": {"app": "web"}}}

    world = a_world(stray, a_workload("ReplicaSet", replicas=2))

    assert len(pods(world)) == 2
    stray_now = world.get(Pod, "stray")
    assert stray_now is not None
    assert stray_now.controller is not None
    assert stray_now.controller.name == "w"


def test_a_pod_that_matches_no_more_is_let_go_and_made_up_for():
    world = a_world(a_workload("ReplicaSet", replicas=1))
    (pod,) = pods(world)

    world.change(Pod, pod.name, {"metadata": {"labels": {"app": "other"}}})
    world.settle()

    assert len(pods(world)) == 2
    let_go = world.get(Pod, pod.name)
    assert let_go is not None
    assert let_go.controller is None


def test_a_pod_counts_as_available_after_it_was_ready_for_a_while():
    world = a_world(a_workload("ReplicaSet", replicas=1, minReadySeconds=30))
    start_all(world)
    assert "availableReplicas" not in world.raw(ReplicaSet, "w")["status"]

    world.advance(timedelta(seconds=30))

    assert world.raw(ReplicaSet, "w")["status"]["availableReplicas"] == 1


def test_a_kill_after_any_write_makes_no_pod_too_many():
    whole = a_world(a_workload("ReplicaSet", replicas=3))

    for writes in range(whole.writes):
        world = PureWorld(a_workload("ReplicaSet", replicas=3), controllers=[ReplicaSetController()])
        world.stop_after = writes
        with pytest.raises(Killed):
            world.settle()
        world.stop_after = None
        world.restart()
        world.settle()
        assert {pod.name for pod in pods(world)} == {pod.name for pod in pods(whole)}


@settings(max_examples=40, deadline=None)
@given(st.lists(st.one_of(st.integers(0, 6), st.sampled_from(["delete", "fail", "start"])), max_size=12))
def test_whatever_happens_the_number_is_right_in_the_end(events: list):
    world = a_world(a_workload("ReplicaSet", replicas=2))
    wanted = 2

    for event in events:
        if isinstance(event, int):
            wanted = event
            world.change(ReplicaSet, "w", {"spec": {"replicas": event}})
        else:
            living = [pod for pod in pods(world) if not pod.is_finished]
            for pod in living[:1]:
                if event == "delete":
                    world.delete(Pod, pod.name)
                else:
                    set_pod(world, pod.name, "Failed" if event == "fail" else "Running")
        world.settle()
        assert len([pod for pod in pods(world) if not pod.is_finished]) == wanted


# -- Deployments ----------------------------------------------------------------------------------------------
def a_deployment(replicas: int = 4, **spec) -> dict:
    return a_workload("Deployment", "d", replicas=replicas, **spec)


def update(world: PureWorld, image: str = "two") -> None:
    world.change(Deployment, "d", {"spec": {"template": a_template(image)}})
    world.settle()


def replica_sets(world: PureWorld) -> dict[str, int]:
    """Replicas by image."""
    return {
        each.spec.template["spec"]["containers"][0]["image"]: each.spec.replicas or 0  # type: ignore[index]
        for each in world.all(ReplicaSet)
    }


def conditions(world: PureWorld) -> dict[str, tuple[str, str]]:
    return {c["type"]: (c["status"], c["reason"]) for c in world.raw(Deployment, "d")["status"]["conditions"]}


def test_a_deployment_runs_its_template():
    world = a_world(a_deployment(3))
    start_all(world)

    (replica_set,) = world.all(ReplicaSet)
    status = world.raw(Deployment, "d")["status"]

    hashed = replica_set.labels["pod-template-hash"]
    assert replica_set.name == f"d-{hashed}"
    assert {pod.labels["pod-template-hash"] for pod in pods(world)} == {hashed}
    assert (status["replicas"], status["updatedReplicas"], status["availableReplicas"]) == (3, 3, 3)
    assert status["observedGeneration"] == 1
    assert conditions(world) == {
        "Available": ("True", "MinimumReplicasAvailable"),
        "Progressing": ("True", "NewReplicaSetAvailable"),
    }
    assert world.raw(Deployment, "d")["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "1"


def test_a_new_template_is_rolled_out_within_the_limits():
    world = a_world(a_deployment(4))
    start_all(world)

    update(world)
    assert replica_sets(world) == {"one": 3, "two": 2}  # one too many, one too few

    while replica_sets(world) != {"one": 0, "two": 4}:
        before = replica_sets(world)
        available = sum(pod.status.phase == "Running" for pod in pods(world))
        assert available >= 3
        assert len(pods(world)) <= 5
        start_all(world)
        assert replica_sets(world) != before
    start_all(world)

    assert images(world) == ["two"] * 4
    assert conditions(world)["Progressing"] == ("True", "NewReplicaSetAvailable")
    assert world.raw(Deployment, "d")["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"


def test_a_rollout_that_does_not_come_up_stops_and_says_so():
    world = a_world(a_deployment(4, progressDeadlineSeconds=60))
    start_all(world)

    update(world, "broken")
    world.advance(timedelta(seconds=120))

    assert sum(pod.status.phase == "Running" for pod in pods(world)) == 3
    assert conditions(world)["Progressing"] == ("False", "ProgressDeadlineExceeded")
    assert conditions(world)["Available"][0] == "True"


def test_going_back_to_an_earlier_template_uses_its_replicaset_again():
    world = a_world(a_deployment(1))
    start_all(world)
    first = {each.name for each in world.all(ReplicaSet)}
    update(world)
    for _ in range(4):
        start_all(world)

    update(world, "one")
    for _ in range(4):
        start_all(world)

    assert replica_sets(world) == {"one": 1, "two": 0}
    assert first < {each.name for each in world.all(ReplicaSet)}
    revisions = sorted(each.annotations["deployment.kubernetes.io/revision"] for each in world.all(ReplicaSet))
    assert revisions == ["2", "3"]


def test_recreate_never_has_both():
    world = a_world(a_deployment(2, strategy={"type": "Recreate"}))
    start_all(world)

    update(world)

    assert set(images(world)) == {"two"}
    start_all(world)
    assert replica_sets(world) == {"one": 0, "two": 2}


def test_recreate_waits_for_the_last_pod_to_go():
    world = a_world(a_deployment(2, strategy={"type": "Recreate"}))
    start_all(world)
    slow = pods(world)[0].name
    world.change(Pod, slow, {"metadata": {"finalizers": ["example.com/hold"]}})

    update(world)
    assert images(world) == ["one"]

    world.change(Pod, slow, {"metadata": {"finalizers": None}})
    world.settle()
    assert images(world) == ["two", "two"]


def test_a_paused_deployment_scales_but_does_not_roll():
    world = a_world(a_deployment(2, paused=True))
    assert replica_sets(world) == {}

    world.change(Deployment, "d", {"spec": {"paused": False}})
    world.settle()
    start_all(world)
    world.change(Deployment, "d", {"spec": {"paused": True, "replicas": 3}})
    world.settle()
    assert len(pods(world)) == 3

    update(world)
    assert set(images(world)) == {"one"}


def test_scaling_a_deployment():
    world = a_world(a_deployment(2))
    start_all(world)

    for replicas in (5, 1, 0):
        world.change(Deployment, "d", {"spec": {"replicas": replicas}})
        world.settle()
        start_all(world)
        assert len(pods(world)) == replicas


def test_old_replicasets_are_kept_up_to_the_limit():
    world = a_world(a_deployment(1, revisionHistoryLimit=2))
    start_all(world)

    for number in range(5):
        update(world, f"image-{number}")
        for _ in range(4):
            start_all(world)

    assert replica_sets(world) == {"image-2": 0, "image-3": 0, "image-4": 1}


def test_a_deleted_deployment_takes_all_with_it():
    world = a_world(a_deployment(2))

    world.delete(Deployment, "d")
    world.settle()

    assert pods(world) == []
    assert world.all(ReplicaSet) == []


def test_a_kill_anywhere_in_a_rollout_ends_the_same():
    def live(world: PureWorld) -> None:
        world.settle()
        start_all(world)
        if world.raw(Deployment, "d")["spec"]["template"] != a_template("two"):
            update(world)
        for _ in range(8):
            start_all(world)

    controllers = lambda: [DeploymentController(), ReplicaSetController()]  # noqa: E731
    whole = PureWorld(a_deployment(3), controllers=controllers())
    live(whole)
    assert replica_sets(whole) == {"one": 0, "two": 3}

    for writes in range(whole.writes):
        world = PureWorld(a_deployment(3), controllers=controllers())
        world.stop_after = writes
        with pytest.raises(Killed):
            live(world)
        world.stop_after = None
        world.restart()
        live(world)
        assert replica_sets(world) == {"one": 0, "two": 3}
        assert images(world) == ["two"] * 3
