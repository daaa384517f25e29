"""The cluster of a scenario: nodes in groups or from a file, hypernodes, and what happens to nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from volcano.api import core, topology
from volcano.api.bounded_yaml import BoundedYamlError, load_yaml
from volcano.simulator.clusters import MAX_NODES, InvalidCluster, equal_nodes, node
from volcano.simulator.draws import Draws
from volcano.simulator.fields import Fields, InvalidScenario
from volcano.simulator.node_changes import NodeChange, failure, maintenance, random_failures
from volcano.simulator.workloads.openb import InvalidTrace, read_openb_nodes

RACK_LABEL: Final = "topology.kubernetes.io/rack"
MAX_FILE_BYTES: Final = 64 * 1024 * 1024


@dataclass(slots=True)
class SimulatedCluster:
    nodes: list[core.Node]
    hypernodes: list[topology.HyperNode] = field(default_factory=list)
    changes: list[NodeChange] = field(default_factory=list)

    @property
    def racks(self) -> dict[str, str]:
        """The rack of each node: its label, or the lowest hypernode that names it."""
        named = {
            member.selector.exact_match.name: hyper.metadata.name
            for hyper in self.hypernodes
            if hyper.spec.tier <= 1
            for member in hyper.spec.members
            if member.selector.exact_match is not None
        }
        labelled = {
            n.metadata.name: n.metadata.labels[RACK_LABEL] for n in self.nodes if RACK_LABEL in n.metadata.labels
        }
        return {**named, **labelled}


def read_cluster(fields: Fields, folder: Path, seed: int, horizon: float) -> SimulatedCluster:
    """`horizon`: random failures are drawn up to this time."""
    nodes: list[core.Node] = []
    if fields.has("nodesFile"):
        nodes += nodes_from_file(folder / fields.text("nodesFile"), fields.at("nodesFile"))
    for path, entry in fields.items("nodes"):
        nodes += _group(Fields(entry, path))
    if not nodes:
        raise InvalidScenario(f"{fields.at('nodes')}: no nodes are given")
    names = [each.metadata.name for each in nodes]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidScenario(f"{fields.at('nodes')}: two nodes are named {twice}")
    cluster = SimulatedCluster(nodes, [_hypernode(path, entry) for path, entry in fields.items("hyperNodes")])
    _add_racks(fields, cluster)
    for path, entry in fields.items("events"):
        cluster.changes += _event(Fields(entry, path), cluster)
    if fields.has("failures"):
        random_ones = fields.fields("failures")
        mean, repair = random_ones.seconds("meanTimeBetween"), random_ones.seconds("repair", 3600.0)
        random_ones.done()
        if mean <= 0.0:
            raise InvalidScenario(f"{random_ones.at('meanTimeBetween')}: must be above 0")
        cluster.changes += random_failures(nodes, mean, repair, horizon, Draws(seed + 1))
    fields.done()
    return cluster


def _group(fields: Fields) -> list[core.Node]:
    prefix, count = fields.text("name", "node"), fields.integer("count", 1, least=1, most=MAX_NODES)
    cpu, memory, gpus = fields.quantity("cpu", "1"), fields.text("memory", ""), fields.integer("gpu", 0, most=1024)
    more, labels = fields.mapping("resources"), fields.mapping("labels")
    taints = [_struct(entry, core.Taint, path) for path, entry in fields.items("taints")]
    fields.done()
    try:
        made = equal_nodes(count, cpu, memory, gpus)
    except InvalidCluster as error:
        raise InvalidScenario(f"{fields.path}: {error}") from error
    found = []
    for each in made:
        name = prefix if count == 1 and fields.has("name") else f"{prefix}-{each.metadata.name.removeprefix('node-')}"
        whole = node(name, {**{k: str(v) for k, v in (each.status.allocatable or {}).items()}, **more}, labels)
        found.append(msgspec.structs.replace(whole, spec=core.NodeSpec(taints=taints)) if taints else whole)
    return found


def nodes_from_file(path: Path, where: str) -> list[core.Node]:
    """The node list of the Alibaba GPU trace (.csv), or Node manifests: a list, or `kubectl get nodes -o yaml`."""
    try:
        if path.suffix not in (".yaml", ".yml", ".json"):
            return read_openb_nodes(path)
        with path.open("rb") as opened:
            content = opened.read(MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            raise InvalidScenario(f"{where}: {path} is larger than {MAX_FILE_BYTES} bytes")
        document = msgspec.json.decode(content) if path.suffix == ".json" else load_yaml(content.decode())
    except (
        InvalidTrace,
        InvalidCluster,
        BoundedYamlError,
        UnicodeDecodeError,
        msgspec.DecodeError,
        RecursionError,
    ) as error:
        raise InvalidScenario(f"{where}: {path}: {error}") from error
    except OSError as error:
        raise InvalidScenario(f"{where}: {path}: {error.strerror}") from error
    items = document.get("items", [document]) if isinstance(document, dict) else document
    if not isinstance(items, list) or len(items) > MAX_NODES:
        raise InvalidScenario(f"{where}: {path}: must be a list of at most {MAX_NODES} Nodes")
    nodes = [_struct(item, core.Node, f"{where}: {path}: items[{index}]") for index, item in enumerate(items)]
    return [schedulable_node(each) for each in nodes]


def schedulable_node(each: core.Node) -> core.Node:
    return node(
        each.metadata.name, {k: str(v) for k, v in (each.status.allocatable or {}).items()}, each.metadata.labels
    )


def _hypernode(path: str, entry: Any) -> topology.HyperNode:
    """A whole HyperNode, or `{name, tier, nodes: […]}` or `{name, tier, hyperNodes: […]}`."""
    fields = Fields(entry, path)
    if fields.has("spec"):
        return _whole_hypernode(entry, path)
    members = [*_members(fields, "nodes", "Node"), *_members(fields, "hyperNodes", "HyperNode")]
    name, tier = fields.text("name"), fields.integer("tier", 1)
    fields.done()
    return _whole_hypernode({"metadata": {"name": name}, "spec": {"tier": tier, "members": members}}, path)


def _whole_hypernode(body: Any, path: str) -> topology.HyperNode:
    found: topology.HyperNode = _struct(body, topology.HyperNode, path)
    return found


def _members(fields: Fields, key: str, kind: str) -> list[dict[str, Any]]:
    return [{"type": kind, "selector": {"exactMatch": {"name": name}}} for name in fields.texts(key)]


def _add_racks(fields: Fields, cluster: SimulatedCluster) -> None:
    """`racks: 4` divides the nodes, in their order, into so many hypernodes of tier 1."""
    count = fields.integer("racks", 0, most=len(cluster.nodes))
    for index in range(count):
        of_rack = cluster.nodes[index * len(cluster.nodes) // count : (index + 1) * len(cluster.nodes) // count]
        members = [{"type": "Node", "selector": {"exactMatch": {"name": n.metadata.name}}} for n in of_rack]
        body = {"metadata": {"name": f"rack-{index}"}, "spec": {"tier": 1, "members": members}}
        cluster.hypernodes.append(_whole_hypernode(body, fields.at("racks")))


# -- what happens -----------------------------------------------------------------------------------------------------
def _event(fields: Fields, cluster: SimulatedCluster) -> Iterator[NodeChange]:
    """`{at: 2h, fail: [node-0], for: 30m}`; or maintain, drain, remove, add."""
    at, seconds = fields.seconds("at"), fields.seconds("for", None)
    kind = next((k for k in ("fail", "maintain", "drain", "remove", "add") if fields.has(k)), "")
    if not kind:
        raise InvalidScenario(f"{fields.path}: needs one of fail, maintain, drain, remove, add")
    if kind == "add":
        added = _group(fields.fields("add"))
        fields.done()
        yield from (NodeChange(at, each) for each in added)
        return
    chosen = _chosen(fields, kind, cluster.nodes)
    fields.done()
    for each in chosen:
        if kind in ("fail", "remove"):
            yield from failure(each, at, seconds if kind == "fail" else None)
        else:
            yield from maintenance(each, at, seconds, drain=kind == "drain")


def _chosen(fields: Fields, key: str, nodes: Iterable[core.Node]) -> list[core.Node]:
    known = {each.metadata.name: each for each in nodes}
    found = []
    for path, name in fields.items(key):
        if str(name) not in known:
            raise InvalidScenario(f"{path}: there is no node {name}")
        found.append(known[str(name)])
    return found


def _struct(value: Any, kind: type[Any], path: str) -> Any:
    try:
        return msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidScenario(f"{path}: {error}") from error
