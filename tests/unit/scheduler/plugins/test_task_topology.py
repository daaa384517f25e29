"""task-topology: tasks of a job share nodes, or keep apart, by their roles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given as over
from hypothesis import settings
from hypothesis import strategies as st

from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Status, Task
from volcano.scheduler.plugins.task_topology.relations import InvalidRelations, relations_from
from volcano.scheduler.solve.backlog import TaskBacklog
from volcano.testing.clusters import Cluster, cluster, gang

KEY = "volcano.sh/task-topology-"
PLUGINS = "gang; predicates, task-topology"


def job(
    affinity: str = "", anti: str = "", order: str = "", roles: tuple[str, ...] = ("ps", "worker"), **more: Any
) -> Any:
    stated = {"affinity": affinity, "anti-affinity": anti, "task-order": order}
    annotations = {f"{KEY}{name}": text for name, text in stated.items() if text}
    return gang(more.pop("size", 4), roles=roles, annotations=annotations, **more)


def on(nodes: int, has: str = "cpu=8", **jobs: Any) -> Cluster:
    return cluster(nodes={f"n{i}": has for i in range(nodes)}, jobs=jobs)


def task_of(session: Session, name: str) -> Task:
    return next(task for task in session.snapshot.tasks.values() if task.name == name)


def scores(session: Session, name: str) -> list[float]:
    task = task_of(session, name)
    found: list[float] = session.nodes.scored(task).total(np.ones(len(session.table), dtype=bool), task).tolist()
    return found


def order(session: Session, job: str) -> list[str]:
    return [task.name for task in TaskBacklog(session, session.jobs[f"default/{job}"].tasks.values())]


# -- what the annotations say ------------------------------------------------------------------------------------------
def test_roles_in_a_group_relate_to_each_other_and_one_alone_to_itself() -> None:
    found = relations_from(
        {f"{KEY}affinity": "ps,worker;chief", f"{KEY}anti-affinity": "ps"}, {"ps", "worker", "chief"}, "j"
    )

    assert found is not None
    assert (found.of("ps", "worker"), found.of("worker", "ps"), found.of("chief", "chief")) == (1, 1, 1)
    assert (found.of("ps", "ps"), found.of("worker", "chief")) == (-1, 0)


@pytest.mark.parametrize(
    ("text", "problem"),
    [("ps,nobody", "task nobody do not exist in job <ns/j>"), ("ps,ps", "task ps is duplicate in job <ns/j>")],
)
def test_unknown_and_repeated_roles_are_refused(text: str, problem: str) -> None:
    with pytest.raises(InvalidRelations, match=problem):
        relations_from({f"{KEY}affinity": text}, {"ps"}, "ns/j")


def test_empty_names_are_overlooked() -> None:
    found = relations_from({f"{KEY}affinity": "ps,,chief,;"}, {"ps", "chief"}, "j")

    assert found is not None
    assert found.of("ps", "chief") == 1


def test_the_hardest_to_place_goes_first_unless_an_order_is_stated() -> None:
    stated = {f"{KEY}affinity": "a,b;c", f"{KEY}anti-affinity": "d;a,e", f"{KEY}task-order": "e"}

    found = relations_from(stated, set("abcde"), "j")

    assert found is not None
    assert sorted("abcde", key=found.importance, reverse=True)[0] == "e"
    assert [found.importance(role)[1] for role in "dabce"] == [4, 3, 3, 2, 1]


def test_a_job_that_says_nothing_or_something_wrong_is_left_alone_and_the_latter_is_told() -> None:
    outcome = on(1, odd=job(affinity="nobody"), plain=gang(2)).schedule(plugins=PLUGINS)

    assert len(outcome.binds) == 6
    notes = [note for note in outcome.decisions.notes if note.reason == "InvalidTaskTopology"]
    assert [(note.job, note.message) for note in notes] == [
        ("default/odd", "task nobody do not exist in job <default/odd>")
    ]


# -- together and apart ------------------------------------------------------------------------------------------------
def test_roles_that_want_to_be_together_share_a_node() -> None:
    outcome = on(4, j=job(affinity="ps,worker", anti="ps")).schedule(plugins=PLUGINS)

    pairs = {}
    for name, node in outcome.binds.items():
        pairs.setdefault(node, set()).add(int(name[-1]) % 2)
    assert list(pairs.values()) == [{0, 1}, {0, 1}]


def test_a_role_that_keeps_apart_is_spread_over_nodes() -> None:
    outcome = on(4, j=job(anti="ps", roles=("ps",))).schedule(plugins=PLUGINS)

    assert sorted(outcome.binds.values()) == ["n0", "n1", "n2", "n3"]


def test_a_task_goes_where_its_bucket_already_is() -> None:
    given = on(3, j=job(affinity="ps,worker", on=["n2"], phase="Running", min=1, size=2))

    session = given.session(PLUGINS)

    assert scores(session, "j-1") == [50.0, 50.0, 100.0]


def test_nodes_with_room_for_more_of_the_bucket_score_higher() -> None:
    given = cluster(
        nodes={"small": "cpu=1", "middle": "cpu=2", "large": "cpu=8", "full": "cpu=0"},
        jobs={"j": job(affinity="ps,worker", size=4)},
    )

    assert scores(given.session(PLUGINS), "j-0") == [25.0, 50.0, 100.0, 0.0]


def test_the_weight_multiplies() -> None:
    given = on(1, j=job(affinity="ps,worker"))

    session = given.session(PLUGINS, arguments={"task-topology": {"task-topology.weight": 7}})

    assert scores(session, "j-0") == [700.0]


def test_rivals_placed_in_this_session_make_a_node_worse_until_they_are_lifted() -> None:
    session = on(2, j=job(anti="ps", roles=("ps",), size=2)).session(PLUGINS)
    first = task_of(session, "j-0")
    before = scores(session, "j-1")

    session.moves.place(first, session.table.nodes[0], Status.ALLOCATED)
    beside = scores(session, "j-1")
    session.moves.lift(first)

    assert beside[0] < beside[1]
    assert scores(session, "j-1") == before


def test_the_order_of_roles_counts_within_a_bucket_and_tasks_in_none_go_last() -> None:
    given = on(1, j=job(affinity="a,b", order="b,a", roles=("x", "a", "b"), size=6))

    line = order(given.session(PLUGINS), "j")

    assert line == ["j-2", "j-5", "j-1", "j-4", "j-0", "j-3"]


def test_tasks_of_larger_buckets_go_first() -> None:
    given = on(1, j=job(anti="a;a,b", affinity="b", roles=("a", "b", "b"), size=3))

    assert order(given.session(PLUGINS), "j") == ["j-1", "j-2", "j-0"]


@settings(max_examples=60, deadline=None)
@over(
    st.lists(st.integers(0, 4), min_size=1, max_size=4),
    st.sampled_from(["a,b", "a;b", "a,b;a", ""]),
    st.sampled_from(["", "a", "a,b"]),
    st.integers(1, 6),
)
def test_whatever_is_wished_a_gang_that_fits_is_placed(sizes: list[int], together: str, apart: str, size: int) -> None:
    given = cluster(
        nodes={f"n{i}": f"cpu={cpus}" for i, cpus in enumerate(sizes)},
        jobs={"j": job(affinity=together, anti=apart, roles=("a", "b") if size > 1 else ("a",), size=size)},
    )

    binds = given.schedule(plugins=PLUGINS).binds

    assert len(binds) == (size if sum(sizes) >= size else 0)
