"""HyperNodes: counting members, and discovery by labels."""

from __future__ import annotations

import pytest

from volcano.api.core import ConfigMap, Node
from volcano.api.topology import HyperNode
from volcano.controllers.hypernode import HyperNodeController
from volcano.controllers.hypernode.discovery import SOURCE_LABEL, parse_discovery
from volcano.testing.pure_world import Killed, PureWorld

CONFIG = """
networkTopologyDiscovery:
- source: label
  enabled: true
  config:
    networkTopologyTypes:
      Type A:
      - nodeLabel: example.com/spine
      - nodeLabel: example.com/rack
      - nodeLabel: kubernetes.io/hostname
"""


def a_node(name: str, **labels: str) -> dict:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {f"example.com/{key}": value for key, value in labels.items()}},
    }


def a_domain(name: str, *selectors: dict, kind: str = "Node", tier: int = 1) -> dict:
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name},
        "spec": {"tier": tier, "members": [{"type": kind, "selector": selector} for selector in selectors]},
    }


def exact(name: str) -> dict:
    return {"exactMatch": {"name": name}}


def regex(pattern: str) -> dict:
    return {"regexMatch": {"pattern": pattern}}


def labels(**match: str) -> dict:
    return {"labelMatch": {"matchLabels": {f"example.com/{key}": value for key, value in match.items()}}}


def a_config(text: str = CONFIG) -> dict:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "volcano-controller-configmap", "namespace": "volcano-system"},
        "data": {"volcano-controller.conf": text},
    }


def a_world(*objects: dict) -> PureWorld:
    return PureWorld(*objects, controllers=[HyperNodeController()]).settle()


def count(world: PureWorld, name: str) -> int:
    domain = world.get(HyperNode, name)
    assert domain is not None
    return domain.status.node_count


NODES = (a_node("gpu-1", rack="a"), a_node("gpu-2", rack="b"), a_node("cpu-1", rack="a"))


@pytest.mark.parametrize(
    ("selectors", "expected"),
    [
        ([exact("gpu-1")], 1),
        ([exact("not-there")], 1),
        ([exact("gpu-1"), exact("gpu-1")], 1),
        ([regex("gpu-.*")], 2),
        ([regex("pu-1")], 2),  # a search, not a match of the whole name
        ([regex("^gpu-1$"), exact("gpu-1")], 1),
        ([regex("(")], 0),
        ([labels(rack="a")], 2),
        ([{"labelMatch": {}}], 0),
        ([labels(rack="a"), regex("gpu")], 3),
        ([], 0),
    ],
)
def test_members_are_counted_once_each(selectors: list[dict], expected: int):
    world = a_world(*NODES, a_domain("d", *selectors))

    assert count(world, "d") == expected


def test_hypernode_members_count_by_name():
    world = a_world(a_domain("d", exact("leaf-1"), exact("leaf-2"), kind="HyperNode", tier=2))

    assert count(world, "d") == 2


def test_a_node_that_comes_or_goes_is_counted():
    world = a_world(*NODES, a_domain("d", regex("gpu")))

    world.put(a_node("gpu-3"))
    world.settle()
    assert count(world, "d") == 3

    world.delete(Node, "gpu-1")
    world.settle()
    assert count(world, "d") == 2


def test_a_heartbeat_wakes_nobody():
    world = a_world(*NODES, a_domain("d", regex("gpu")))
    before = world.writes

    world.change(Node, "gpu-1", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    world.settle()

    assert world.writes == before


# -- discovery ------------------------------------------------------------------------------------------------
RACKS = (
    a_node("n1", rack="a", spine="s"),
    a_node("n2", rack="a", spine="s"),
    a_node("n3", rack="b", spine="s"),
    a_node("n4", rack="c"),
    a_node("n5", spine="s"),
)


def found(world: PureWorld) -> dict[tuple[int, str, str], list[str]]:
    """(tier, tier name, label value) → members' label values or names."""
    values = {d.name: d.labels[d.spec.tier_name] for d in world.all(HyperNode) if d.spec.tier_name in d.labels}
    answer = {}
    for domain in world.all(HyperNode):
        members = [m.selector.exact_match.name for m in domain.spec.members if m.selector.exact_match]
        key = (domain.spec.tier, domain.spec.tier_name, domain.labels[domain.spec.tier_name])
        answer[key] = [values.get(member, member) for member in members]
    return answer


def test_labels_of_nodes_make_hypernodes_tier_by_tier():
    world = a_world(a_config(), *RACKS)

    assert found(world) == {
        (1, "example.com/rack", "a"): ["n1", "n2"],
        (1, "example.com/rack", "b"): ["n3"],
        (1, "example.com/rack", "c"): ["n4"],
        (2, "example.com/spine", "s"): sorted(["a", "b"], key=lambda v: _name(world, v)),
    }
    assert {domain.labels[SOURCE_LABEL] for domain in world.all(HyperNode)} == {"label"}
    assert all(d.name.startswith(f"hypernode-type-a-tier{d.spec.tier}-") for d in world.all(HyperNode))
    assert {d.labels[d.spec.tier_name]: d.status.node_count for d in world.all(HyperNode)} == {
        "a": 2, "b": 1, "c": 1, "s": 2,
    }  # fmt: skip


def _name(world: PureWorld, value: str) -> str:
    return next(d.name for d in world.all(HyperNode) if value in d.labels.values())


def test_removing_labels_removes_hypernodes():
    world = a_world(a_config(), *RACKS)

    for node in ("n1", "n2", "n3", "n4", "n5"):
        world.change(Node, node, {"metadata": {"labels": None}})
    world.settle()

    assert world.all(HyperNode) == []


def test_a_restart_keeps_names_and_uids():
    world = a_world(a_config(), *RACKS)
    before = {domain.name: domain.uid for domain in world.all(HyperNode)}
    writes = world.writes

    world.restart()
    world.settle()

    assert {domain.name: domain.uid for domain in world.all(HyperNode)} == before
    assert world.writes == writes


def test_a_hypernode_with_the_right_labels_keeps_its_name():
    given = a_domain("hypernode-type-a-tier1-zzzzz", exact("old"))
    given["metadata"]["labels"] = {SOURCE_LABEL: "label", "example.com/rack": "a", "mine": "kept"}

    world = a_world(a_config(), given, a_node("n1", rack="a"))

    (domain,) = world.all(HyperNode)
    assert domain.name == "hypernode-type-a-tier1-zzzzz"
    assert found(world) == {(1, "example.com/rack", "a"): ["n1"]}
    assert domain.labels["mine"] == "kept"


def test_one_that_someone_deletes_comes_back():
    world = a_world(a_config(), a_node("n1", rack="a"))
    (domain,) = world.all(HyperNode)

    world.delete(HyperNode, domain.name)
    world.settle()

    assert [d.name for d in world.all(HyperNode)] == [domain.name]


def test_hypernodes_of_others_are_left_alone():
    mine = a_domain("mine", exact("x"))
    theirs = a_domain("theirs", exact("x"))
    theirs["metadata"]["labels"] = {SOURCE_LABEL: "ufm"}

    world = a_world(a_config(), mine, theirs)

    assert [d.name for d in world.all(HyperNode)] == ["mine", "theirs"]


@pytest.mark.parametrize("text", ["", "no: thing", "networkTopologyDiscovery: 7", "]", CONFIG.replace("true", "false")])
def test_without_an_enabled_source_everything_stays(text: str):
    world = a_world(a_config(), *RACKS)
    before = found(world)

    world.change(
        ConfigMap, "volcano-controller-configmap", {"data": {"volcano-controller.conf": text}}, "volcano-system"
    )
    world.settle()

    assert found(world) == before


def test_types_with_odd_names_or_doubled_labels_are_skipped():
    text = CONFIG + "      a-name-that-is-far-too-long:\n      - nodeLabel: x\n      - nodeLabel: y\n"
    text += "      doubled:\n      - nodeLabel: x\n      - nodeLabel: x\n"

    assert list(parse_discovery(text).types) == ["Type A"]
    assert parse_discovery(text).types["Type A"] == ("example.com/rack", "example.com/spine")


def test_a_source_nobody_has_is_said():
    world = a_world(a_config("networkTopologyDiscovery: [{source: magic, enabled: true}]"))

    assert world.reasons() == ["UnsupportedSource"]


def test_a_kill_anywhere_ends_in_the_same_hypernodes():
    whole = a_world(a_config(), *RACKS)
    wanted = found(whole)

    for writes in range(whole.writes):
        world = PureWorld(a_config(), *RACKS, controllers=[HyperNodeController()])
        world.stop_after = writes
        with pytest.raises(Killed):
            world.settle()
        world.stop_after = None
        world.restart()
        world.settle()
        assert found(world) == wanted
