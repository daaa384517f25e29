"""Reads recorded and made trees of several sizes."""

from __future__ import annotations

import shutil
from collections import Counter

import pytest

from tests.cpu_trees import NAMES, as_folder, recorded
from volcano.embedded.agent.cpus.cpu_tree import UnreadableTree, read_machine


@pytest.mark.parametrize(
    ("name", "cpus", "numa", "sockets", "per_core"),
    [
        ("virtual-machine", 2, {0: 2}, 1, 1),
        ("one-socket", 4, {0: 4}, 1, 1),
        ("two-sockets", 40, {0: 20, 1: 20}, 2, 2),
        ("four-numa-nodes", 32, {0: 8, 1: 8, 2: 8, 3: 8}, 2, 2),
        ("memory-nodes", 8, {0: 8}, 1, 2),
        ("offline-cpus", 13, {0: 7, 1: 6}, 2, 1),
    ],
)
def test_every_cpu_is_on_its_numa_node_socket_and_core(name, cpus, numa, sockets, per_core, tmp_path):
    machine = read_machine(as_folder(recorded(name), tmp_path))

    assert len(machine.cpus) == cpus
    assert Counter(cpu.numa for cpu in machine.cpus) == numa
    assert len({cpu.socket for cpu in machine.cpus}) == sockets
    assert machine.per_core == per_core


def test_all_recorded_trees_are_read():
    assert NAMES == (
        "four-numa-nodes", "memory-nodes", "offline-cpus", "one-socket", "two-sockets", "virtual-machine",
    )  # fmt: skip


def test_the_real_machine_is_read():
    assert read_machine().ids


def test_only_usable_cpus_count(tmp_path):
    machine = read_machine(as_folder(recorded("two-sockets"), tmp_path), frozenset({3, 25, 99}))

    assert machine.ids == {3, 25}


def test_a_kernel_without_numa_has_one_node(tmp_path):
    tree = as_folder(recorded("one-socket"), tmp_path)
    shutil.rmtree(tree / "node")

    assert read_machine(tree).numa_nodes == (0,)


def test_a_machine_that_does_not_know_its_sockets_has_one(tmp_path):
    tree = recorded("one-socket") | {"cpu/cpu2/topology/physical_package_id": "-1"}

    assert {cpu.socket for cpu in read_machine(as_folder(tree, tmp_path)).cpus} == {0}


@pytest.mark.parametrize(
    ("path", "text"),
    [("cpu/online", ""), ("cpu/cpu0/topology/core_id", "x"), ("cpu/cpu1/topology/core_id", None), ("cpu/online", None)],
)
def test_what_cannot_be_read_is_named(path, text, tmp_path):
    tree = as_folder(recorded("one-socket"), tmp_path)
    (tree / path).unlink() if text is None else (tree / path).write_text(text)

    with pytest.raises(UnreadableTree, match=path):
        read_machine(tree)
