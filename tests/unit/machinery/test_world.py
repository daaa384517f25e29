"""The Mirror tells changes once, in order, and never goes back in time."""

import pytest

from volcano.api.core import Pod, PodSpec
from volcano.api.indexes import PODS_BY_NODE
from volcano.api.meta import Key, ObjectMeta, OwnerReference
from volcano.machinery.world import Mirror, frozen_world


def a_pod(name="p", *, uid="u1", version="1", node="", owner=""):
    owners = [OwnerReference(uid=owner)] if owner else []
    metadata = ObjectMeta(name=name, namespace="ns", uid=uid, resource_version=version, owner_references=owners)
    return Pod(metadata=metadata, spec=PodSpec(node_name=node))


def changes_of(mirror):
    seen = []
    mirror.listen(Pod, lambda change: seen.append((change.old, change.new)))
    return seen


def test_listeners_hear_what_is_there_and_what_comes():
    mirror = Mirror()
    first, second = a_pod(), a_pod(version="2")
    mirror.put(first)

    seen = changes_of(mirror)
    mirror.put(second)
    mirror.remove(Pod, second.key)

    assert seen == [(None, first), (first, second), (second, None)]


def test_an_older_or_equal_state_is_ignored():
    mirror = Mirror()
    mirror.put(a_pod(version="10"))
    seen = changes_of(mirror)

    mirror.put(a_pod(version="9"))
    mirror.put(a_pod(version="10"))

    assert len(seen) == 1


def test_an_answer_overtaken_by_the_deletion_brings_nothing_back():
    mirror = Mirror()
    mirror.put(a_pod(version="1"))
    mirror.remove(Pod, Key("ns", "p"), a_pod(version="5"))

    mirror.put(a_pod(version="4"))

    assert mirror.get(Pod, Key("ns", "p")) is None


def test_a_new_object_of_the_same_name_is_a_removal_and_an_addition():
    mirror = Mirror()
    old, new = a_pod(uid="u1", version="7"), a_pod(uid="u2", version="8")
    mirror.put(old)
    seen = changes_of(mirror)

    mirror.put(new)

    assert seen[1:] == [(old, None), (None, new)]


def test_indexes_follow_changes_and_answer_in_key_order():
    mirror = Mirror(indexes=PODS_BY_NODE)
    mirror.put(a_pod("b", uid="b", node="n1", owner="job"))
    mirror.put(a_pod("a", uid="a", node="n1"))
    mirror.put(a_pod("b", uid="b", version="2", node="n2", owner="job"))

    assert [pod.name for pod in mirror.where(Pod, "node", "n1")] == ["a"]
    assert [pod.name for pod in mirror.where(Pod, "owner", "job")] == ["b"]
    assert [pod.name for pod in mirror.all(Pod)] == ["a", "b"]


def test_an_index_added_late_knows_what_was_there_before():
    mirror = Mirror()
    mirror.put(a_pod("a", node="n1"))

    mirror.add_indexes({Pod: {"first-letter": lambda pod: [pod.name[0]]}})

    assert len(mirror.where(Pod, "first-letter", "a")) == 1


def test_an_index_that_is_not_declared_is_an_error_that_lists_the_others():
    with pytest.raises(LookupError, match="'node' is not declared; there are namespace, owner"):
        Mirror().where(Pod, "node", "n1")


def test_an_index_has_one_rule():
    mirror = Mirror(indexes=PODS_BY_NODE)
    mirror.add_indexes(PODS_BY_NODE)

    with pytest.raises(ValueError, match="two rules for one index: node"):
        mirror.add_indexes({Pod: {"node": lambda pod: [pod.name]}})


def test_a_frozen_world_holds_what_it_was_given():
    world = frozen_world(a_pod())

    assert world.get(Pod, Key("ns", "p")) == a_pod()
