"""The flags for pinning: what contradicts is refused, what cannot be read is said."""

from __future__ import annotations

from typing import Any

import click
import pytest

from tests.cpu_trees import as_folder, recorded
from volcano.app import machine_cpus as tested
from volcano.app.machine_cpus import WHAT_STATIC_LEAVES, MachineCpus, machine_cpus


@pytest.fixture
def tree(tmp_path, monkeypatch):
    monkeypatch.setattr(tested.os, "sched_getaffinity", lambda _process: set(range(64)))
    return as_folder(recorded("one-socket"), tmp_path)


def given(folder: Any, **flags: Any) -> MachineCpus:
    return machine_cpus(
        **{"manager": "static", "topology": "none", "reserved": "", "tree": str(folder), "nodes": 1, **flags}
    )


def test_one_cpu_is_reserved_unless_stated_and_pods_cannot_request_it(tree):
    assert given(tree).allocatable("4") == {"cpu": "3"}
    assert given(tree, reserved="cpu=1500m").allocatable("4") == {"cpu": "2500m"}
    assert given(tree, manager="none").allocatable("4") == {}
    assert given(tree).notes == (WHAT_STATIC_LEAVES,)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"manager": "none", "topology": "restricted"}, "needs --cpu-manager-policy static"),
        ({"manager": "none", "reserved": "cpu=1"}, "needs --cpu-manager-policy static"),
        ({"reserved": "memory=1Gi"}, "is not cpu=N"),
        ({"reserved": "cpu=0"}, "is not cpu=N"),
        ({"reserved": "cpu=x"}, "is not cpu=N"),
        ({"nodes": 2}, "static needs --nodes 1"),
        ({"tree": "/does/not/exist"}, "CPUs cannot be pinned"),
    ],
)
def test_flags_that_cannot_be_kept_are_refused(tree, flags, said):
    with pytest.raises(click.BadParameter, match=said):
        given(tree, **flags)


def test_without_pinning_an_unreadable_machine_is_a_note(tree):
    found = given(tree, manager="none", tree="/does/not/exist")

    assert found.pool is None and "is not published" in found.notes[0]


def test_several_nodes_of_one_machine_have_no_topology(tree):
    assert given(tree, manager="none", nodes=3).pool is None


def test_where_all_is_reserved_nothing_can_be_pinned(tree):
    assert given(tree, reserved="cpu=4").notes == ("no CPU can be pinned: 4 of 4 are reserved",)
