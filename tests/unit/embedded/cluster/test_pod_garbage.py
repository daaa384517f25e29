"""Finished pods beyond the limit: those that an owner still counts are kept, the oldest others go."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from volcano.api.batch import Job
from volcano.api.core import BatchJob, Pod
from volcano.api.meta import Resource
from volcano.api.scheduling import PodGroup
from volcano.embedded.cluster.pod_garbage import SWEEP_DEBOUNCE, PodGarbageController
from volcano.testing.pure_world import START, PureWorld

VOLCANO_JOB = "batch.volcano.sh/v1alpha1", "Job"
BATCH_JOB = "batch/v1", "Job"
POD_GROUP = "scheduling.volcano.sh/v1beta1", "PodGroup"
COMPLETE = {"conditions": [{"type": "Complete", "status": "True", "lastTransitionTime": START.isoformat()}]}
OWNERS: list[Any] = [
    pytest.param(VOLCANO_JOB, Job, {"state": {"phase": "Running"}}, {"state": {"phase": "Completed"}}, id="Job"),
    pytest.param(VOLCANO_JOB, Job, {"state": {"phase": "Aborted"}}, {"state": {"phase": "Terminated"}}, id="aborted"),
    pytest.param(BATCH_JOB, BatchJob, {"succeeded": 5}, COMPLETE, id="batch Job"),
    pytest.param(POD_GROUP, PodGroup, {"phase": "Running"}, {"phase": "Completed"}, id="PodGroup"),
]


def an_owner(kind: tuple[str, str], status: dict) -> dict:
    spec = {"template": {}} if kind == BATCH_JOB else {}
    return {
        "apiVersion": kind[0],
        "kind": kind[1],
        "metadata": {"name": "o", "uid": "u"},
        "spec": spec,
        "status": status,
    }


def a_finished_pod(name: str, age: int, owner: tuple[str, str] | None = None, *, uid: str = "u") -> dict:
    reference = {"apiVersion": owner[0], "kind": owner[1], "name": "o", "uid": uid, "controller": True} if owner else {}
    created = (START - timedelta(minutes=age)).isoformat()
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "creationTimestamp": created, "ownerReferences": [reference] if reference else []},
        "spec": {"nodeName": ""},
        "status": {"phase": "Succeeded"},
    }


def swept(*objects: dict, limit: int) -> PureWorld:
    world = PureWorld(*objects, controllers=[PodGarbageController(max_finished_pods=limit)]).settle()
    return world.advance(SWEEP_DEBOUNCE)


def names(world: PureWorld) -> list[str]:
    return [pod.name for pod in world.all(Pod)]


@pytest.mark.parametrize(("kind", "reader", "running", "finished"), OWNERS)
def test_finished_pods_of_an_owner_that_still_runs_are_kept_until_it_has_finished(
    kind: tuple[str, str], reader: type[Resource], running: dict, finished: dict
):
    counted = [a_finished_pod(f"counted-{age}", age, kind) for age in range(5, 10)]
    world = swept(an_owner(kind, running), *counted, a_finished_pod("free", 1), limit=2)
    assert names(world) == [f"counted-{age}" for age in range(5, 10)]

    world.change(reader, "o", {"status": finished})
    world.advance(SWEEP_DEBOUNCE)

    assert names(world) == ["counted-5", "counted-6"]


@pytest.mark.parametrize(("kind", "reader", "running", "finished"), OWNERS)
def test_pods_of_an_earlier_owner_of_that_name_are_not_counted(
    kind: tuple[str, str], reader: type[Resource], running: dict, finished: dict
):
    world = swept(an_owner(kind, running), a_finished_pod("old", 9, kind, uid="earlier"), limit=1)
    assert names(world) == ["old"]

    world.put(a_finished_pod("young", 1))
    world.advance(SWEEP_DEBOUNCE)

    assert names(world) == ["young"]


@pytest.mark.parametrize(("kind", "reader", "running", "finished"), OWNERS)
def test_when_the_owner_is_deleted_its_pods_no_longer_count(
    kind: tuple[str, str], reader: type[Resource], running: dict, finished: dict
):
    world = swept(an_owner(kind, running), *(a_finished_pod(f"p{age}", age, kind) for age in range(3)), limit=1)
    assert len(names(world)) == 3

    world.delete(reader, "o")
    world.advance(SWEEP_DEBOUNCE)

    assert names(world) == ["p0"]
