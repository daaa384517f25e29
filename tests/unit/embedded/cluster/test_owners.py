"""Garbage collection by owner references."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from volcano.api.core import ConfigMap, Pod
from volcano.api.meta import Key
from volcano.api.partial import partial_key
from volcano.embedded.cluster.owners import OwnerGarbageController
from volcano.machinery.plan import Delete, Found, Look
from volcano.testing.pure_world import PureWorld


def an_object(name: str, *owners: str, kind: str = "ConfigMap", block: bool = True, **metadata) -> dict:
    """A config map owned by other config maps, given by name."""
    references = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": owner,
            "uid": f"uid-{owner}",
            "controller": i == 0,
            "blockOwnerDeletion": block,
        }
        for i, owner in enumerate(owners)
    ]
    return {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {"name": name, "uid": f"uid-{name}", "ownerReferences": references, **metadata},
    }


def a_world(*objects: dict) -> PureWorld:
    return PureWorld(*objects, controllers=[OwnerGarbageController()]).settle()


def names(world: PureWorld) -> list[str]:
    return [each.name for each in world.all(ConfigMap)]


def test_what_belongs_to_a_deleted_object_goes_with_it():
    world = a_world(an_object("a"), an_object("b", "a"), an_object("c", "b"), an_object("free"))

    world.delete(ConfigMap, "a")
    world.settle()

    assert names(world) == ["free"]


def test_an_object_with_another_owner_left_stays_and_forgets_the_one_that_is_gone():
    world = a_world(an_object("a"), an_object("b"), an_object("c", "a", "b"))

    world.delete(ConfigMap, "a")
    world.settle()

    assert names(world) == ["b", "c"]
    assert [o["name"] for o in world.raw(ConfigMap, "c")["metadata"]["ownerReferences"]] == ["b"]


def test_an_owner_whose_uid_is_nobodys_does_not_count():
    world = a_world(an_object("a", uid="a newer one"), an_object("b", "a"))

    assert names(world) == ["a"]


def test_an_owner_in_another_namespace_does_not_count():
    world = a_world(an_object("a", namespace="elsewhere"), an_object("b", "a"))

    assert names(world) == ["a"]


def test_an_owner_that_was_not_seen_is_looked_up_before_anything_is_deleted():
    world = PureWorld(an_object("b", "a"))
    key = partial_key("", "ConfigMap", Key("default", "b"))
    controller = OwnerGarbageController()
    world.mirror.add_indexes(OwnerGarbageController.indexes)

    (step,) = controller.decide(key, world.mirror, ())
    assert isinstance(step, Look)
    assert step.target.key == Key("default", "a")

    there = controller.decide(key, world.mirror, (Found(step.target, present=True),))
    assert not any(isinstance(each, Delete) for each in there)

    (gone,) = controller.decide(key, world.mirror, (Found(step.target, present=False),))
    assert isinstance(gone, Delete)


def test_an_owner_of_a_kind_nobody_knows_is_not_judged():
    orphan = an_object("b", "a")
    orphan["metadata"]["ownerReferences"][0] |= {"apiVersion": "example.com/v1", "kind": "Thing"}

    world = a_world(orphan)

    assert names(world) == ["b"]


def test_an_owner_of_a_kind_that_someone_defined_is_looked_up():
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things"},
            "versions": [{"name": "v1", "served": True, "storage": True}],
        },
    }
    orphan = an_object("b", "a")
    orphan["metadata"]["ownerReferences"][0] |= {"apiVersion": "example.com/v1", "kind": "Thing"}

    world = a_world(crd, orphan)

    assert names(world) == []


def test_in_the_foreground_an_owner_goes_after_what_blocks_it():
    held = an_object("b", "a", finalizers=["example.com/hold"])
    world = a_world(an_object("a"), held, an_object("c", "a"))

    world.delete(ConfigMap, "a", propagation="Foreground")
    world.settle()
    assert names(world) == ["a", "b"]
    assert world.raw(ConfigMap, "b")["metadata"]["deletionTimestamp"]

    world.change(ConfigMap, "b", {"metadata": {"finalizers": None}})
    world.settle()
    assert names(world) == []


def test_in_the_foreground_grandchildren_go_first():
    world = a_world(an_object("a"), an_object("b", "a"), an_object("c", "b", finalizers=["example.com/hold"]))

    world.delete(ConfigMap, "a", propagation="Foreground")
    world.settle()
    assert names(world) == ["a", "b", "c"]

    world.change(ConfigMap, "c", {"metadata": {"finalizers": None}})
    world.settle()
    assert names(world) == []


def test_what_does_not_block_does_not_hold_the_owner_up_but_goes_too():
    world = a_world(an_object("a"), an_object("b", "a", block=False, finalizers=["example.com/hold"]))

    world.delete(ConfigMap, "a", propagation="Foreground")
    world.settle()

    assert names(world) == ["b"]
    assert world.raw(ConfigMap, "b")["metadata"]["deletionTimestamp"]


def test_two_that_own_each_other_do_not_wait_for_ever():
    world = a_world(an_object("a", "b"), an_object("b", "a"))

    world.delete(ConfigMap, "a", propagation="Foreground")
    world.settle()

    assert names(world) == []


def test_orphans_stay_and_forget_their_owner():
    world = a_world(an_object("a"), an_object("b", "a"), an_object("c", "b"))

    world.delete(ConfigMap, "a", propagation="Orphan")
    world.settle()

    assert names(world) == ["b", "c"]
    assert "ownerReferences" not in world.raw(ConfigMap, "b")["metadata"]


def test_pods_go_with_their_owner():
    pod = an_object("p", "a", kind="Pod")
    world = a_world(an_object("a"), pod)

    world.delete(ConfigMap, "a")
    world.settle()

    assert world.all(Pod) == []


def test_what_happened_while_nobody_watched_is_made_good():
    world = PureWorld(an_object("a"), an_object("b", "a"), controllers=[OwnerGarbageController()]).settle()
    world.delete(ConfigMap, "a")

    world.restart()
    world.settle()

    assert names(world) == []


@settings(max_examples=60, deadline=None)
@given(
    parents=st.lists(st.lists(st.integers(0, 8), max_size=3), min_size=3, max_size=9),
    policy=st.sampled_from(["Background", "Foreground"]),
)
def test_what_stays_is_what_can_still_be_reached(parents: list[list[int]], policy: str):
    """Objects may own each other in any way without cycles; after the first goes, no object hangs in the air."""
    objects = []
    for i, owners in enumerate(parents):
        mine = sorted({f"o{owner}" for owner in owners if owner < i})
        objects.append(an_object(f"o{i}", *mine))
    owned_by = {o["metadata"]["name"]: [r["name"] for r in o["metadata"]["ownerReferences"]] for o in objects}
    kept: set[str] = set()
    for name, owners in owned_by.items():
        if name != "o0" and (not owners or any(owner in kept for owner in owners)):
            kept.add(name)

    world = a_world(*objects)
    world.delete(ConfigMap, "o0", propagation=policy)
    world.settle()

    assert names(world) == sorted(kept)


@pytest.mark.parametrize("policy", ["Background", "Foreground", "Orphan"])
def test_deleting_something_alone_deletes_it(policy: str):
    world = a_world(an_object("a"))

    world.delete(ConfigMap, "a", propagation=policy)
    world.settle()

    assert names(world) == []
