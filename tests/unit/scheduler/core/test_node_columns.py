"""NodeTable, NodeView, Heap and Snapshot: columns follow what happens."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from volcano.api import core as api
from volcano.api.decode import decode_object
from volcano.api.scheduling import PodGroup
from volcano.api.selectors import Requirement, Selector
from volcano.scheduler.core.assemble import snapshot_from
from volcano.scheduler.core.heap import Heap
from volcano.scheduler.core.node_view import NodeView
from volcano.scheduler.core.snapshot import drop_group, drop_node, drop_pod, put_group, put_node, put_pod
from volcano.testing.clusters import MachineShape, cluster, gang, machine, running


def test_a_view_with_copies_shows_what_would_be() -> None:
    session = cluster(nodes={"n1": "cpu=4", "n2": "cpu=8"}, jobs={"a": gang(1, each="cpu=2")}).session("predicates")
    task = next(iter(session.snapshot.tasks.values()))
    rows = np.array([0, 0, 1])

    view = NodeView(session.table, rows, task=task, copies=np.array([0, 2, 1]))

    assert view.idle["cpu"].tolist() == [4000, 0, 6000]
    assert view.used["cpu"].tolist() == [0, 4000, 2000]
    assert view.pod_count.tolist() == [0, 2, 1]
    assert view.idle["nobody/has"].tolist() == [0, 0, 0]


def test_labels_answer_selectors_for_all_nodes_at_once() -> None:
    nodes = {"n1": machine(labels={"zone": "a", "gen": "3"}), "n2": machine(labels={"zone": "b"}), "n3": MachineShape()}
    labels = cluster(nodes=nodes).snapshot().table.labels

    def chosen(operator: str, *values: str, key: str = "zone") -> list[bool]:
        return labels.selected(Selector((Requirement(key, operator, values),))).tolist()

    assert chosen("In", "a", "c") == [True, False, False]
    assert chosen("NotIn", "a") == [False, True, True]
    assert chosen("Exists") == [True, True, False]
    assert chosen("DoesNotExist") == [False, False, True]
    assert chosen("Gt", "2", key="gen") == [True, False, False]


def test_changed_rows_are_told_since_a_mark() -> None:
    session = cluster(nodes={"n1": "cpu=4", "n2": "cpu=4"}, jobs={"a": gang(2)}).session("gang")
    mark = session.table.mark
    first, second = session.snapshot.tasks.values()

    for task in (first, second):
        session.table.occupy(task, session.table.nodes[1])

    assert session.table.changed_since(mark).tolist() == [1]


def test_an_object_that_cannot_be_read_is_set_aside() -> None:
    snapshot = snapshot_from(
        {
            "nodes": [{"metadata": {"name": "bad"}, "status": {"allocatable": {"cpu": "much"}}}],
            "queues": [{"metadata": {"name": "q"}, "spec": {"weight": "heavy"}}],
        }
    )

    assert len(snapshot.table) == 0
    assert set(snapshot.set_aside) == {"Node/bad", "Queue//q"}


def test_following_single_changes_leads_to_the_same_as_building_anew() -> None:
    built = cluster(nodes={"n1": "cpu=4", "n2": "cpu=2"}, jobs={"a": running(["n1", "n2"]), "b": gang(2)})
    whole, grown = built.snapshot(), cluster(nodes={}).snapshot()
    objects = built.objects

    for pod in objects["pods"]:
        put_pod(grown, decode_object(api.Pod, pod))
    for group in objects["podGroups"]:
        put_group(grown, decode_object(PodGroup, group))
    for node in (*objects["nodes"], *objects["nodes"]):
        put_node(grown, decode_object(api.Node, node))

    assert grown.table.idle.tolist() == whole.table.idle.tolist()
    assert grown.table.pod_count.tolist() == whole.table.pod_count.tolist()
    assert {j: sorted(job.tasks) for j, job in grown.jobs.items()} == {
        j: sorted(job.tasks) for j, job in whole.jobs.items()
    }


def test_what_leaves_takes_its_amounts_with_it() -> None:
    snapshot = cluster(nodes={"n1": "cpu=4", "n2": "cpu=2"}, jobs={"a": running(["n1", "n2"])}).snapshot()
    first, second = snapshot.tasks

    drop_pod(snapshot, first)
    drop_node(snapshot, "n2")
    drop_group(snapshot, "default/a")
    drop_pod(snapshot, second)

    assert snapshot.table.idle[0].tolist() == [4000.0]
    assert snapshot.jobs == {}
    assert snapshot.tasks == {}


@given(st.lists(st.integers(), max_size=50))
def test_a_heap_gives_the_first_first(items: list[int]) -> None:
    heap = Heap[int](lambda a, b: a < b, items)

    assert [heap.pop() for _ in range(len(heap))] == sorted(items)
