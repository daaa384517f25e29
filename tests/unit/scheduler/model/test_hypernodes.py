"""From HyperNode objects to domains."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from volcano.api.topology import HyperNode
from volcano.scheduler.model.hypernodes import domains_from

NODES = {"n1": {"rack": "a"}, "n2": {"rack": "a"}, "m1": {"rack": "b"}}


def hypernode(name: str, tier: int, *members: dict[str, Any]) -> HyperNode:
    return msgspec.convert({"metadata": {"name": name}, "spec": {"tier": tier, "members": list(members)}}, HyperNode)


def node(**selector: Any) -> dict[str, Any]:
    return {"type": "Node", "selector": selector}


def child(name: str) -> dict[str, Any]:
    return {"type": "HyperNode", "selector": {"exactMatch": {"name": name}}}


@pytest.mark.parametrize(
    ("selector", "nodes"),
    [
        ({"exactMatch": {"name": "n1"}}, {"n1"}),
        ({"exactMatch": {"name": "unknown"}}, {"unknown"}),
        ({"regexMatch": {"pattern": "^n"}}, {"n1", "n2"}),
        ({"regexMatch": {"pattern": "["}}, set()),
        ({"labelMatch": {"matchLabels": {"rack": "b"}}}, {"m1"}),
        ({"labelMatch": {}}, set()),
    ],
)
def test_members_are_nodes_by_name_pattern_or_label(selector: dict[str, Any], nodes: set[str]) -> None:
    domains = domains_from([hypernode("r", 1, node(**selector))], NODES)

    assert domains.by_name["r"].nodes == nodes


def test_a_domain_holds_all_nodes_of_those_below_it() -> None:
    rack = hypernode("r", 1, node(regexMatch={"pattern": "^n"}))
    row = hypernode("s", 2, child("r"), child("r"), child("gone"), node(exactMatch={"name": "m1"}))

    domains = domains_from([rack, row], NODES)

    assert domains.ready
    assert domains.by_name["s"].nodes == set(NODES)
    assert (domains.by_name["r"].parent, domains.by_name["s"].children) == ("s", ["r"])


def test_two_parents_are_a_contradiction() -> None:
    domains = domains_from([hypernode("r", 1), hypernode("s", 2, child("r")), hypernode("t", 2, child("r"))], NODES)

    assert domains.problem == "hypernode r is a member of both s and t"


def test_a_circle_is_found_however_often_its_members_name_each_other() -> None:
    names = [f"h{i}" for i in range(40)]
    circle = [
        hypernode(name, 1, *(child(other) for other in names if other != name), *(child(names[0]) for _ in range(3)))
        for name in names
    ]

    assert not domains_from(circle, NODES).ready


def test_a_long_line_has_an_end_for_us() -> None:
    line = [hypernode(f"h{i:03}", i, child(f"h{i + 1:03}")) for i in range(200)]

    assert not domains_from(line, NODES).ready
