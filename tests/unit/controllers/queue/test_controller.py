"""Queues: every row of the state table, the cascade over the hierarchy, Commands, counters."""

from __future__ import annotations

from datetime import timedelta

import pytest

from volcano.api.bus import Command
from volcano.api.meta import Key
from volcano.api.scheduling import PodGroup, Queue
from volcano.controllers.queue import QueueController
from volcano.controllers.queue.controller import CLOSED_BY_PARENT, COUNTERS_DELAY, QueueRequest
from volcano.controllers.queue.states import QueueAction, QueueState
from volcano.machinery.plan import Delete, Patch, ref
from volcano.testing.pure_world import Killed, PureWorld


def a_queue(name: str, *, state: str = "", parent: str = "root", **more) -> dict:
    spec = {"parent": parent} if parent else {}
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name, **more.pop("metadata", {})},
        "spec": spec,
        "status": {"state": state, **more} if state else {**more},
    }


def a_group(name: str, *, queue: str, phase: str = "Pending") -> dict:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"queue": queue, "minMember": 1},
        "status": {"phase": phase},
    }


def a_command(queue: str, action: str, *, name: str = "", uid: str = "") -> dict:
    return {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {"name": name or f"{queue}-{action.lower()}"},
        "action": action,
        "target": {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "name": queue, "uid": uid},
    }


def a_world(*objects: dict) -> PureWorld:
    root = a_queue("root", parent="", state="Open")
    return PureWorld(root, *objects, controllers=[QueueController()]).settle()


def counted(world: PureWorld) -> PureWorld:
    """After the moment for which numbers are gathered."""
    return world.advance(COUNTERS_DELAY)


def state(world: PureWorld, name: str) -> str:
    queue = world.get(Queue, name)
    assert queue is not None
    return queue.status.state


OPEN, CLOSING, CLOSED, UNKNOWN = QueueState.OPEN, QueueState.CLOSING, QueueState.CLOSED, QueueState.UNKNOWN
TABLE = [
    # state, asked, busy, ends in
    ("", QueueAction.SYNC, False, OPEN),
    ("", QueueAction.OPEN, False, OPEN),
    ("", QueueAction.CLOSE, False, CLOSED),
    ("", QueueAction.CLOSE, True, CLOSING),
    (OPEN, QueueAction.SYNC, True, OPEN),
    (OPEN, QueueAction.OPEN, True, OPEN),
    (OPEN, QueueAction.CLOSE, True, CLOSING),
    (OPEN, QueueAction.CLOSE, False, CLOSED),
    (CLOSING, QueueAction.SYNC, True, CLOSING),
    (CLOSING, QueueAction.SYNC, False, CLOSED),
    (CLOSING, QueueAction.CLOSE, True, CLOSING),
    (CLOSING, QueueAction.CLOSE, False, CLOSED),
    (CLOSING, QueueAction.OPEN, True, OPEN),
    (CLOSED, QueueAction.SYNC, False, CLOSED),
    (CLOSED, QueueAction.SYNC, True, CLOSED),
    (CLOSED, QueueAction.CLOSE, True, CLOSED),
    (CLOSED, QueueAction.OPEN, False, OPEN),
    (UNKNOWN, QueueAction.SYNC, False, UNKNOWN),
    (UNKNOWN, QueueAction.OPEN, False, OPEN),
    (UNKNOWN, QueueAction.CLOSE, True, CLOSING),
    (UNKNOWN, QueueAction.CLOSE, False, CLOSED),
]


@pytest.mark.parametrize(("before", "asked", "busy", "after"), TABLE)
def test_the_state_table(before: str, asked: QueueAction, busy: bool, after: QueueState):
    groups = [a_group("g", queue="q")] if busy else []

    world = a_world(a_queue("q", state=before), *groups, a_command("q", asked))

    assert state(world, "q") == after
    assert world.all(Command) == []


def test_a_command_is_deleted_before_it_is_acted_on():
    world = PureWorld(a_queue("q", state="Open"), a_command("q", "CloseQueue"))
    controller = QueueController()
    world.mirror.add_indexes(controller.indexes)
    command = world.get(Command, "q-closequeue")
    assert command is not None
    plan = controller.decide(Key("", "q"), world.mirror, (QueueRequest(QueueAction.CLOSE, ref(command)),))

    assert isinstance(plan[0], Delete)
    assert isinstance(plan[1], Patch)
    assert plan[1].body == {"status": {"state": "Closed"}}


def test_a_command_for_a_queue_that_is_gone_is_deleted():
    world = a_world(a_command("nowhere", "CloseQueue"))

    assert world.all(Command) == []


def test_a_command_meant_for_an_earlier_queue_of_that_name_is_not_acted_on():
    world = a_world(a_queue("q", state="Open"), a_command("q", "CloseQueue", uid="another"))

    assert state(world, "q") == "Open"
    assert world.all(Command) == []


def test_a_closing_queue_closes_when_its_last_podgroup_is_gone():
    world = a_world(a_queue("q", state="Open"), a_group("g", queue="q"), a_command("q", "CloseQueue"))
    assert state(world, "q") == "Closing"

    world.delete(PodGroup, "g")
    world.settle()

    assert state(world, "q") == "Closed"


def test_a_queue_without_a_parent_gets_root():
    world = a_world(a_queue("q", parent=""))

    queue = world.get(Queue, "q")

    assert queue is not None
    assert queue.spec.parent == "root"
    root = world.get(Queue, "root")
    assert root is not None
    assert root.spec.parent == ""


def test_root_is_never_closed():
    world = a_world(a_command("root", "CloseQueue"))

    assert state(world, "root") == "Open"


def test_counters_follow_the_podgroups():
    phases = ["Pending", "Pending", "Running", "Inqueue", "Unknown", "Completed", ""]
    groups = [a_group(f"g{i}", queue="q", phase=phase) for i, phase in enumerate(phases)]
    world = counted(a_world(a_queue("q", state="Open"), *groups))
    assert world.raw(Queue, "q")["status"] == {
        "state": "Open", "pending": 2, "running": 1, "inqueue": 1, "unknown": 1, "completed": 1,
    }  # fmt: skip

    world.change(PodGroup, "g2", {"status": {"phase": "Completed"}})
    counted(world)

    assert world.raw(Queue, "q")["status"] == {
        "state": "Open",
        "pending": 2,
        "inqueue": 1,
        "unknown": 1,
        "completed": 2,
    }


def test_what_the_scheduler_wrote_in_the_status_stays():
    queue = a_queue("q", state="Open", allocated={"cpu": "3"}, reservation={"nodes": ["n1"]})

    world = counted(a_world(queue, a_group("g", queue="q")))

    status = world.raw(Queue, "q")["status"]
    assert status == {"state": "Open", "pending": 1, "allocated": {"cpu": "3"}, "reservation": {"nodes": ["n1"]}}


def test_a_podgroup_that_moves_is_counted_in_both_queues():
    world = a_world(a_queue("a", state="Open"), a_queue("b", state="Open"), a_group("g", queue="a"))

    world.change(PodGroup, "g", {"spec": {"queue": "b"}})
    counted(world)

    assert "pending" not in world.raw(Queue, "a")["status"]
    assert world.raw(Queue, "b")["status"]["pending"] == 1


def test_many_changes_of_groups_are_one_write():
    world = counted(a_world(a_queue("q", state="Open"), *(a_group(f"g{i}", queue="q") for i in range(20))))
    before = world.writes

    for i in range(20):
        world.change(PodGroup, f"g{i}", {"status": {"phase": "Running"}})
        world.settle()
    counted(world)

    assert world.writes == before + 1
    assert world.raw(Queue, "q")["status"]["running"] == 20


def test_nothing_is_written_when_nothing_changed():
    world = a_world(a_queue("q", state="Open"), a_group("g", queue="q"))
    before = world.writes

    world.restart()
    world.settle()

    assert world.writes == before


# -- the hierarchy --------------------------------------------------------------------------------------------
FAMILY = (
    a_queue("q1", state="Open"),
    a_queue("q11", state="Open", parent="q1"),
    a_queue("q12", state="Closed", parent="q1"),
    a_queue("q111", state="Open", parent="q11"),
)


def test_closing_a_queue_closes_its_descendants_and_marks_them():
    world = a_world(*FAMILY, a_command("q1", "CloseQueue"))

    assert [state(world, name) for name in ("q1", "q11", "q12", "q111")] == ["Closed"] * 4
    assert world.raw(Queue, "q11")["metadata"]["annotations"] == {CLOSED_BY_PARENT: "true"}
    assert world.raw(Queue, "q111")["metadata"]["annotations"] == {CLOSED_BY_PARENT: "true"}
    assert "annotations" not in world.raw(Queue, "q12")["metadata"]


def test_opening_it_again_opens_those_and_no_others():
    world = a_world(*FAMILY, a_command("q1", "CloseQueue"))

    world.put(a_command("q1", "OpenQueue"))
    world.settle()

    assert [state(world, name) for name in ("q1", "q11", "q12", "q111")] == ["Open", "Open", "Closed", "Open"]
    assert world.raw(Queue, "q11")["metadata"]["annotations"] == {CLOSED_BY_PARENT: "false"}


def test_a_child_stays_closed_while_its_parent_is_closed():
    world = a_world(*FAMILY, a_command("q1", "CloseQueue"))

    world.put(a_command("q11", "OpenQueue"))
    world.advance(timedelta(minutes=10))

    assert state(world, "q11") == "Closed"
    assert world.reasons().count("OpenQueue") == 1


def test_a_child_asked_to_open_opens_when_its_parent_does_so_soon_after():
    world = a_world(a_queue("q1", state="Closed"), a_queue("q11", state="Closed", parent="q1"))
    world.put(a_command("q11", "OpenQueue"))
    world.advance(timedelta(seconds=1))

    world.put(a_command("q1", "OpenQueue"))
    world.advance(timedelta(seconds=5))

    assert state(world, "q11") == "Open"


def test_a_new_child_of_a_closed_queue_closes():
    world = a_world(a_queue("q1", state="Closed"), a_queue("q11", parent="q1"))

    assert state(world, "q11") == "Closed"


def test_a_child_whose_parent_comes_later_follows_it():
    world = a_world(a_queue("q11", parent="q1", state="Open"))

    world.put(a_queue("q1", state="Closed"))
    world.settle()

    assert state(world, "q11") == "Closed"


def test_a_queue_closed_by_hand_after_a_cascade_stays_closed():
    marked = a_queue("q11", state="Open", parent="q1", metadata={"annotations": {CLOSED_BY_PARENT: "true"}})
    world = a_world(a_queue("q1", state="Open"), marked)

    world.put(a_command("q11", "CloseQueue"))
    world.settle()

    assert state(world, "q11") == "Closed"


def outcome(world: PureWorld) -> dict[str, tuple[str, bool]]:
    """State and mark of each queue; a mark that is not there and one that says false mean the same."""
    return {q.name: (q.status.state, q.annotations.get(CLOSED_BY_PARENT) == "true") for q in world.all(Queue)}


@pytest.mark.parametrize("action", ["CloseQueue", "OpenQueue"])
def test_a_cascade_cut_short_anywhere_ends_as_one_that_was_not(action: str):
    given = [*FAMILY]
    if action == "OpenQueue":
        given = [
            a_queue("q1", state="Closed"),
            a_queue("q11", state="Closed", parent="q1", metadata={"annotations": {CLOSED_BY_PARENT: "true"}}),
            a_queue("q111", state="Closed", parent="q11", metadata={"annotations": {CLOSED_BY_PARENT: "true"}}),
        ]
    whole = a_world(*given, a_command("q1", action))
    wanted = outcome(whole)
    begun = PureWorld(*given, controllers=[QueueController()]).settle().writes

    # After the first write the Command is gone: from there on the cascade must end by itself.
    for writes in range(begun + 2, whole.writes):
        world = PureWorld(a_queue("root", parent="", state="Open"), *given, controllers=[QueueController()]).settle()
        world.put(a_command("q1", action))
        world.stop_after = writes
        with pytest.raises(Killed):
            world.settle()
        world.stop_after = None
        world.restart()
        world.settle()

        assert outcome(world) == wanted


def test_commands_are_obeyed_in_the_order_in_which_they_were_asked_for():
    world = PureWorld(a_queue("q", state="Open"), controllers=[QueueController()])
    world.put(a_command("q", "CloseQueue", name="z"))
    world.put(a_command("q", "OpenQueue", name="a"))

    world.restart()  # which lists them by name
    world.settle()

    assert state(world, "q") == "Open"


def test_a_queue_that_is_closed_while_it_waits_to_be_opened_stays_closed():
    world = a_world(a_queue("q1", state="Closed"), a_queue("q11", state="Closed", parent="q1"))
    world.put(a_command("q11", "OpenQueue"))
    world.settle()
    world.put(a_command("q11", "CloseQueue"))
    world.settle()

    world.put(a_command("q1", "OpenQueue"))
    world.advance(timedelta(minutes=10))

    assert (state(world, "q1"), state(world, "q11")) == ("Open", "Closed")
