"""Statement: operations applied at once, decided on commit, undone in reverse."""

from __future__ import annotations

from volcano.scheduler.framework.plan_check import check_plan
from volcano.scheduler.framework.session import Session
from volcano.scheduler.framework.statement import Statement
from volcano.scheduler.model import Node, Status, Task
from volcano.testing.clusters import cluster, gang, running


def given() -> tuple[Session, Task, Task, Node]:
    session = cluster(nodes={"n1": "cpu=2"}, jobs={"old": running(["n1"], min=0), "new": gang(1)}).session("gang")
    tasks = {task.name: task for task in session.snapshot.tasks.values()}
    return session, tasks["old-0"], tasks["new-0"], session.table.nodes[0]


def test_an_allocated_task_takes_room_and_gives_it_back() -> None:
    session, _, new, node = given()
    statement = Statement(session)

    statement.allocate(new, node)
    held = session.table.idle[0, 0]
    statement.roll_back()

    assert held == 0.0
    assert session.table.idle[0, 0] == 1000.0
    assert (new.status, new.node) == (Status.PENDING, "")


def test_a_checkpoint_keeps_what_came_before_it() -> None:
    session, old, new, node = given()
    statement = Statement(session)
    statement.evict(old, "test")
    checkpoint = statement.checkpoint()
    statement.pipeline(new, node)

    statement.roll_back(checkpoint)

    assert (old.status, new.status) == (Status.RELEASING, Status.PENDING)
    assert statement.has_evictions


def test_an_evicted_task_leaves_room_for_later_only() -> None:
    session, old, _, _ = given()

    Statement(session).evict(old, "test")

    assert session.table.idle[0, 0] == 1000.0
    assert session.table.future_idle[0, 0] == 2000.0


def test_commit_makes_decisions_and_discard_remembers_where_a_task_had_been() -> None:
    session, old, new, node = given()
    dropped, kept = Statement(session), Statement(session)

    dropped.allocate(new, node)
    dropped.discard()
    remembered = new.last_transaction
    kept.evict(old, "preempt", preemptor=new.key)
    kept.pipeline(new, node, eviction_occurred=True)
    kept.commit()

    assert remembered is not None
    assert remembered.node == "n1"
    assert new.last_transaction is None
    assert [e.task for e in session.record.evictions.values()] == ["default/old-0"]
    assert session.record.binds == {}
    assert len(kept) == 0


def test_merging_moves_operations_and_replaying_does_them_again() -> None:
    session, _, new, node = given()
    one, other = Statement(session), Statement(session)
    one.allocate(new, node)

    other.merge(one)
    operations = other.operations
    other.roll_back()
    objection = other.replay(operations)

    assert len(one) == 0
    assert objection is None
    assert new.status == Status.ALLOCATED


def test_the_plan_check_drops_a_bind_beyond_the_node_and_an_eviction_for_nobody() -> None:
    session, old, new, node = given()
    statement = Statement(session)
    for task in (new,):
        statement.allocate(task, node)
    statement.evict(old, "preempt", preemptor="default/nobody")
    statement.commit()
    session.table.idle[0, 0] -= 5000.0

    dropped = check_plan(session)

    assert dropped == {
        "default/new-0": "node n1 has not enough cpu free",
        "default/old-0": "default/nobody would have no place even so",
    }


def test_the_plan_check_drops_half_a_gang() -> None:
    session = cluster(nodes={"n1": "cpu=2"}, jobs={"a": gang(2)}).session("gang")
    task = next(iter(session.snapshot.tasks.values()))
    statement = Statement(session)
    statement.allocate(task, session.table.nodes[0])
    statement.commit()

    assert check_plan(session) == {task.key: "1 of at least 2 tasks of default/a would run"}
