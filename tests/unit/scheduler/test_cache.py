"""The cache: single changes in, the same snapshot as from everything at once."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from volcano.api import core, scheduling, topology
from volcano.api.decode import decode_object
from volcano.api.meta import Key, Resource
from volcano.machinery.world import Change, Mirror
from volcano.scheduler.cache import Cache, CacheSettings, PendingChanges, matters
from volcano.scheduler.cache.followed import wakes
from volcano.scheduler.model import Status
from volcano.scheduler.model.queue import UNCHARGED

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def node(name: str, cpu: str = "4", **more: Any) -> core.Node:
    amounts = {"cpu": cpu, "memory": "8Gi", "pods": "10"}
    body = {"metadata": {"name": name, **more}, "status": {"allocatable": amounts, "capacity": amounts}}
    return decode_object(core.Node, body)


def pod(name: str, on: str = "", group: str = "g", phase: str = "", uid: str = "", **spec: Any) -> core.Pod:
    body = {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": uid or name,
            "annotations": {"scheduling.k8s.io/group-name": group} if group else {},
        },
        "spec": {
            "schedulerName": "volcano",
            "nodeName": on,
            "containers": [{"resources": {"requests": {"cpu": "1"}}}],
            **spec,
        },
        "status": {"phase": phase or ("Running" if on else "Pending")},
    }
    return decode_object(core.Pod, body)


def group(name: str = "g", **spec: Any) -> scheduling.PodGroup:
    body = {"metadata": {"name": name, "namespace": "ns"}, "spec": {"minMember": 1, "queue": "q", **spec}}
    return decode_object(scheduling.PodGroup, body)


def queue(name: str = "q", **spec: Any) -> scheduling.Queue:
    return decode_object(scheduling.Queue, {"metadata": {"name": name}, "spec": spec, "status": {"state": "Open"}})


class Watched:
    """A cache that follows a mirror."""

    def __init__(self, *resources: Resource, chosen: CacheSettings | None = None) -> None:
        self.mirror, self.pending, self.cache = Mirror(lambda: NOW), PendingChanges(), Cache(chosen)
        self.changes = 0
        self.version = 0
        self.pending.follow(self.mirror, self.changed)
        self.put(*resources)

    def changed(self, urgent: bool = True) -> None:
        self.changes += 1

    def put(self, *resources: Resource) -> None:
        for resource in resources:
            self.version += 1
            meta = msgspec.structs.replace(resource.metadata, resource_version=str(self.version))
            self.mirror.put(msgspec.structs.replace(resource, metadata=meta))

    def remove(self, kind: type[Resource], name: str, namespace: str = "") -> None:
        self.mirror.remove(kind, Key(namespace, name))

    def refreshed(self):
        snapshot = self.cache.refresh(self.pending.take(), NOW, "turn")
        self.pending.confirm(self.cache.take_confirmed())
        return snapshot

    def assume(self, bound: dict[str, str] | None = None, evicted: tuple[str, ...] = ()) -> None:
        self.cache.assume(bound or {}, evicted)
        self.pending.assume(bound or {}, evicted)


def test_a_pod_takes_its_room_when_it_comes_and_leaves_it_when_it_goes():
    given_ = Watched(node("n1"), queue(), group(), pod("p", on="n1"))
    before = given_.refreshed().table.idle[0, 0]

    given_.remove(core.Pod, "p", "ns")

    assert (before, given_.refreshed().table.idle[0, 0]) == (3000.0, 4000.0)


def test_a_pod_of_the_same_name_made_anew_replaces_the_old_one():
    given_ = Watched(node("n1"), queue(), group(), pod("p", on="n1", uid="old"))
    given_.refreshed()

    given_.put(pod("p", uid="new"))
    snapshot = given_.refreshed()

    assert set(snapshot.tasks) == {"new"}
    assert snapshot.table.idle[0, 0] == 4000.0


def test_an_assumed_bind_holds_its_room_until_the_world_shows_it():
    given_ = Watched(node("n1"), queue(), group(), pod("p"))
    given_.refreshed()

    given_.assume({"p": "n1"})
    given_.put(pod("p", priorityClassName="x"))
    assumed = given_.refreshed()
    held = (assumed.tasks["p"].status, assumed.table.idle[0, 0])
    given_.put(pod("p", on="n1"))
    shown = given_.refreshed()

    assert held == (Status.BINDING, 3000.0)
    assert (shown.tasks["p"].status, shown.table.idle[0, 0]) == (Status.RUNNING, 3000.0)
    assert given_.pending.assumptions().assumed == {}


def test_a_failed_bind_gives_its_room_back():
    given_ = Watched(node("n1"), queue(), group(), pod("p"))
    given_.refreshed()
    given_.assume({"p": "n1"})

    given_.pending.forget("p", given_.mirror.get(core.Pod, Key("ns", "p")))
    snapshot = given_.refreshed()

    assert (snapshot.tasks["p"].status, snapshot.table.idle[0, 0]) == (Status.PENDING, 4000.0)


def test_an_assumed_eviction_counts_as_leaving():
    given_ = Watched(node("n1"), queue(), group(), pod("p", on="n1"))
    given_.refreshed()

    given_.assume(evicted=("p",))
    snapshot = given_.refreshed()

    assert snapshot.tasks["p"].status == Status.RELEASING
    assert snapshot.table.future_idle[0, 0] == 4000.0


def test_unassigned_pods_of_others_are_nobody_and_assigned_ones_take_room():
    foreign = {"schedulerName": "other", "group": ""}
    given_ = Watched(node("n1"), pod("waiting", **foreign), pod("running", on="n1", **foreign))

    snapshot = given_.refreshed()

    assert set(snapshot.tasks) == {"running"}
    assert snapshot.table.idle[0, 0] == 3000.0


def test_a_plain_pod_is_a_job_of_one_when_adopted():
    chosen = CacheSettings(adopt_plain_pods=True)
    given_ = Watched(queue("default"), pod("p", group="", schedulerName="default-scheduler"), chosen=chosen)
    (job,) = given_.refreshed().schedulable_jobs().values()

    given_.remove(core.Pod, "p", "ns")

    assert (job.queue, job.min_available, job.phase, len(job.tasks)) == (UNCHARGED, 1, "Inqueue", 1)
    assert given_.refreshed().jobs == {}


def test_an_adopted_pod_is_nobodys_victim():
    chosen = CacheSettings(adopt_plain_pods=True)
    given_ = Watched(queue("default"), pod("p", group="", schedulerName="default-scheduler"), chosen=chosen)

    snapshot = given_.refreshed()

    (job,) = snapshot.jobs.values()
    assert not snapshot.tasks["p"].preemptable
    assert (job.preemptable_stated, job.preemptable) == (True, False)


def test_no_pod_group_can_name_the_queue_of_pods_without_a_queue():
    chosen = CacheSettings(adopt_plain_pods=True)
    sly = msgspec.structs.replace(group(), spec=msgspec.structs.replace(group().spec, queue=UNCHARGED))
    given_ = Watched(queue("default"), sly, pod("p", group="", schedulerName="default-scheduler"), chosen=chosen)

    assert [job.queue for job in given_.refreshed().schedulable_jobs().values()] == [UNCHARGED]
    assert given_.refreshed().jobs["ns/g"].queue == ""


def test_changed_queues_leave_adopted_pods_schedulable():
    chosen = CacheSettings(adopt_plain_pods=True)
    given_ = Watched(queue("default"), pod("p", group="", schedulerName="default-scheduler"), chosen=chosen)
    given_.refreshed()

    given_.put(queue("later"))

    assert len(given_.refreshed().schedulable_jobs()) == 1


def test_an_adopted_pod_that_names_a_queue_is_a_task_like_others():
    chosen = CacheSettings(adopt_plain_pods=True)
    plain = pod("p", group="", schedulerName="default-scheduler")
    plain.metadata.annotations[scheduling.QUEUE_NAME_ANNOTATION] = "research"
    given_ = Watched(queue("default"), queue("research"), plain, chosen=chosen)

    snapshot = given_.refreshed()

    (job,) = snapshot.jobs.values()
    assert (job.queue, job.preemptable_stated, snapshot.tasks["p"].preemptable) == ("research", False, True)


def test_news_of_a_groups_status_leaves_its_tasks_where_they_are():
    given_ = Watched(queue(), group(), pod("p"))
    before = given_.refreshed().jobs["ns/g"]
    status = scheduling.PodGroupStatus(phase="Inqueue")

    given_.put(msgspec.structs.replace(group(), status=status))
    after = given_.refreshed().jobs["ns/g"]

    assert after is before
    assert after.phase == "Inqueue"


def test_a_changed_priority_class_changes_the_jobs_that_name_it():
    class_of = lambda value: decode_object(core.PriorityClass, {"metadata": {"name": "high"}, "value": value})  # noqa: E731
    given_ = Watched(queue(), class_of(5), group(priorityClassName="high"))
    first = given_.refreshed().jobs["ns/g"].priority

    given_.put(class_of(9))

    assert (first, given_.refreshed().jobs["ns/g"].priority) == (5, 9)


def test_queues_whose_parents_go_round_are_set_aside_and_come_back():
    given_ = Watched(queue("a", parent="b"), queue("b", parent="a"), queue("c", parent="root"))
    snapshot = given_.refreshed()
    aside, left = set(snapshot.set_aside), set(snapshot.queues)

    given_.put(queue("b", parent="root"))
    snapshot = given_.refreshed()

    assert (aside, left) == ({"Queue/a", "Queue/b"}, {"c"})
    assert (snapshot.set_aside, set(snapshot.queues)) == ({}, {"a", "b", "c"})


def test_an_amount_nobody_can_read_sets_only_that_object_aside():
    broken = decode_object(
        core.Pod,
        {
            "metadata": {"name": "bad", "namespace": "ns", "uid": "bad"},
            "spec": {"schedulerName": "volcano", "containers": [{"resources": {"requests": {"cpu": "lots"}}}]},
            "status": {"phase": "Pending"},
        },
    )
    given_ = Watched(node("n1"), queue(), group(), broken, pod("good"))

    snapshot = given_.refreshed()

    assert set(snapshot.tasks) == {"good"}
    assert "Pod/ns/bad" in snapshot.set_aside


def test_hypernodes_follow_nodes_that_match_them():
    body = {
        "metadata": {"name": "h"},
        "spec": {"tier": 1, "members": [{"type": "Node", "selector": {"regexMatch": {"pattern": "^n"}}}]},
    }
    given_ = Watched(node("n1"), node("x"), decode_object(topology.HyperNode, body))
    before = given_.refreshed().domains.by_name["h"].nodes

    given_.put(node("n2"))

    assert (before, given_.refreshed().domains.by_name["h"].nodes) == ({"n1"}, {"n1", "n2"})


def test_our_shard_is_what_it_wants_and_nobody_else_uses():
    def shard(name, desired, used=()):
        body = {
            "metadata": {"name": name},
            "spec": {"nodesDesired": list(desired)},
            "status": {"nodesInUse": list(used)},
        }
        return decode_object(topology.NodeShard, body)

    chosen = CacheSettings(sharding_mode="hard", shard_name="mine")
    given_ = Watched(shard("mine", ["n1", "n2"]), shard("other", [], ["n2"]), chosen=chosen)

    assert given_.refreshed().cluster.shard.nodes == {"n1"}


@pytest.mark.parametrize(("labels", "count"), [({"pool": "a"}, 1), ({"pool": "b"}, 0)])
def test_only_selected_nodes_enter(labels, count):
    chosen = CacheSettings(node_selector=(("pool", "a"),))
    given_ = Watched(node("n1", labels=labels), chosen=chosen)

    assert len(given_.refreshed().table) == count


def test_what_does_not_matter_neither_wakes_nor_touches_anything():
    given_ = Watched(node("n1"), queue(), group(), pod("p", on="n1"))
    given_.refreshed()
    given_.changes = 0
    beating = msgspec.structs.replace(node("n1"), status=msgspec.structs.replace(node("n1").status, conditions=[]))

    given_.put(beating)

    assert (given_.changes, given_.pending.has_objects) == (0, False)


@pytest.mark.parametrize(
    ("old", "new", "matter", "wake"),
    [
        (None, pod("p"), True, True),
        (pod("p"), pod("p", on="n1", phase="Pending"), True, True),
        (pod("p", on="n1"), pod("p", on="n1", phase="Succeeded"), True, True),
        (pod("p"), pod("p"), False, True),
        (queue(), queue(weight=3), True, True),
        (
            queue(),
            msgspec.structs.replace(queue(), status=scheduling.QueueStatus(state="Open", running=4)),
            False,
            False,
        ),
        (group(), msgspec.structs.replace(group(), status=scheduling.PodGroupStatus(phase="Running")), True, False),
    ],
)
def test_which_changes_matter_and_which_wake(old, new, matter, wake):
    change = Change(old, new)

    assert matters(change) is matter
    assert not matter or wakes(change) is wake


def test_after_a_failure_everything_is_taken_in_again():
    given_ = Watched(node("n1"), queue(), group(), pod("p", on="n1"), pod("q"))
    given_.refreshed()
    given_.assume({"q": "n1"})

    given_.cache.reset()
    given_.pending.reload(given_.mirror)
    snapshot = given_.refreshed()

    assert snapshot.table.idle[0, 0] == 2000.0
    assert snapshot.tasks["q"].status == Status.BINDING


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["run", "wait", "finish", "drop", "node", "no node", "group", "no group"]),
        st.integers(0, 3),
        st.integers(0, 2),
    ),
    max_size=30,
)


@settings(max_examples=60, deadline=None)
@given(OPERATIONS)
def test_changes_one_by_one_give_what_all_at_once_would(operations):
    followed = Watched(queue(), group("g0"), node("n0"))
    for kind, number, place in operations:
        match kind:
            case "run":
                followed.put(pod(f"p{number}", on=f"n{place}", group=f"g{number % 2}"))
            case "wait":
                followed.remove(core.Pod, f"p{number}", "ns")
                followed.put(pod(f"p{number}", group=f"g{number % 2}", uid=f"again{followed.version}"))
            case "finish":
                followed.put(pod(f"p{number}", on=f"n{place}", group=f"g{number % 2}", phase="Succeeded"))
            case "drop":
                followed.remove(core.Pod, f"p{number}", "ns")
            case "node":
                followed.put(node(f"n{place}", cpu=str(4 + number)))
            case "no node":
                followed.remove(core.Node, f"n{place}")
            case "group":
                followed.put(group(f"g{number % 2}", minMember=place))
            case "no group":
                followed.remove(scheduling.PodGroup, f"g{number % 2}", "ns")
        followed.refreshed()
    stepwise = followed.refreshed()
    at_once = Watched()
    at_once.mirror = followed.mirror
    at_once.pending, at_once.cache = PendingChanges(), Cache()
    at_once.pending.follow(followed.mirror, at_once.changed)
    whole = at_once.refreshed()

    assert set(stepwise.tasks) == set(whole.tasks)
    assert _jobs(stepwise) == _jobs(whole)
    for name, row in stepwise.table.index.items():
        other = whole.table.index[name]
        for amounts in ("idle", "used", "releasing", "future_idle", "requested"):
            mine, theirs = getattr(stepwise.table, amounts)[:3, row], getattr(whole.table, amounts)[:3, other]
            assert np.allclose(mine, theirs), (name, amounts)
    assert len(stepwise.table) == len(whole.table)


def _jobs(snapshot):
    return {
        job.id: (job.min_available, job.group is not None, sorted(job.tasks), list(job.counts.by_status))
        for job in snapshot.jobs.values()
    }
