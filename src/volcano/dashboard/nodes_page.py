"""Nodes: a heat map by allocation, what runs where, and which shapes of pods still fit together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from volcano.api.batch import JOB_NAME_KEY
from volcano.api.core import Node
from volcano.api.meta import Key
from volcano.api.pods.amounts import amounts_of
from volcano.api.pods.stranded import PodShape, in_units, stranded_on
from volcano.api.quantity import NANO, Quantity, QuantityError, parse_quantity
from volcano.dashboard.job_page import PodCell, pod_cell
from volcano.dashboard.overview_page import ResourceUse, is_ready, ordered_resources, resource_uses
from volcano.dashboard.pod_shapes import is_device
from volcano.dashboard.view import CallerView

ZERO: Final = Quantity(0)
MAX_LISTED: Final = 50
MAX_CELLS: Final = 2_000
BANDS: Final = 10
MAX_PODS: Final = 500
SYSTEM_LABELS: Final = ("kubernetes.io/", "k8s.io/")
MAX_DEVICES: Final = 8
SMALLEST: Final = {"cpu": "1", "memory": "1Gi"}
"""What a pod that uses a device needs beside it, at the least."""
LEAST_STRANDED: Final = 0.05
"""Devices; less is rounding."""
SHAPES: Final = (
    {"cpu": "1"},
    {"cpu": "1", "memory": "4Gi"},
    {"cpu": "4", "memory": "16Gi"},
    {"cpu": "8", "memory": "64Gi"},
)


class NodeCell(msgspec.Struct, frozen=True, rename="camel"):
    """`share` is of the resource that the map shows; `band` is its tenth, from 0 to 10."""

    name: str
    state: str
    share: float
    band: int


class NodeRow(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    state: str
    uses: list[ResourceUse]
    labels: dict[str, str]
    taints: list[str]


class FreeShape(msgspec.Struct, frozen=True, rename="camel"):
    """How many pods of a shape fit now in all, and how many of them on the node with most room."""

    shape: dict[str, str]
    fits: int
    nodes: int
    largest: int


class NodesPage(msgspec.Struct, frozen=True, rename="camel"):
    at: datetime
    resource: str
    resources: list[str]
    cells: list[NodeCell]
    histogram: list[int]
    rows: list[NodeRow]
    total: int
    page: int
    pages: int
    shapes: list[FreeShape]
    stranded: dict[str, float]
    problem: str
    sees_all_pods: bool


class NodeDetails(msgspec.Struct, frozen=True, rename="camel"):
    at: datetime
    node: NodeRow
    pods: list[tuple[str, str, PodCell]]
    more: int
    conditions: dict[str, str]
    addresses: dict[str, str]


async def nodes_page(view: CallerView, query: Mapping[str, str]) -> NodesPage:
    nodes = await view.nodes()
    loads, sees_all = await view.loads(nodes)
    have = {node.name: amounts_of(node.status.allocatable) for node in nodes}
    names = ordered_resources({name for each in have.values() for name, amount in each.items() if amount})
    resource = query.get("resource") or (names[0] if names else "cpu")
    text = query.get("q", "").lower()
    chosen = [node for node in nodes if text in node.name.lower()]
    if query.get("state"):
        chosen = [node for node in chosen if query["state"] in state_of(node)]
    shares = {node.name: share(have[node.name], loads.get(node.name, {}), resource) for node in chosen}
    cells = [
        NodeCell(node.name, state_of(node), shares[node.name], min(round(shares[node.name] * BANDS), BANDS))
        for node in chosen[:MAX_CELLS]
    ]
    bands = Counter(min(int(each * BANDS), BANDS - 1) for each in shares.values())
    order = sorted(chosen, key=lambda node: (-shares[node.name], node.name))
    pages = max(1, -(-len(order) // MAX_LISTED))
    asked = query.get("page", "1")
    page = min(max(int(asked), 1), pages) if asked.isascii() and asked.isdigit() else 1
    usable = [node for node in chosen if is_ready(node) and not node.spec.unschedulable]
    shapes, problem = _shapes(query)
    return NodesPage(
        view.now,
        resource,
        names,
        cells,
        [bands[number] for number in range(BANDS)],
        [node_row(node, loads.get(node.name, {})) for node in order[(page - 1) * MAX_LISTED : page * MAX_LISTED]],
        len(chosen),
        page,
        pages,
        [free_shape(shape, usable, have, loads) for shape in shapes + device_shapes(have)] if sees_all else [],
        stranded_devices(usable, have, loads, view.device_shapes()) if sees_all else {},
        problem,
        sees_all,
    )


def _shapes(query: Mapping[str, str]) -> tuple[list[dict[str, str]], str]:
    """The shapes that are shown, and the one that the address asks for: `shape=cpu=4,memory=8Gi`."""
    asked: dict[str, str] = {}
    for item in filter(None, query.get("shape", "").split(",")):
        name, _, text = item.strip().partition("=")
        try:
            if not parse_quantity(text).nanos > 0:
                raise QuantityError
        except QuantityError:
            return list(SHAPES), f"{item!r} is not RESOURCE=AMOUNT, such as cpu=4"
        asked[name] = text
    return ([asked] if asked else []) + list(SHAPES), ""


def free_shape(
    shape: Mapping[str, str],
    nodes: Iterable[Node],
    have: Mapping[str, Mapping[str, Quantity]],
    loads: Mapping[str, Mapping[str, Quantity]],
) -> FreeShape:
    """By amounts alone: taints, labels and quotas are the scheduler's to check."""
    wanted = {**{name: parse_quantity(text) for name, text in shape.items()}, "pods": parse_quantity(1)}
    counts = []
    for node in nodes:
        allocatable, used = have[node.name], loads.get(node.name, {})
        rooms = [
            max(0, (allocatable.get(name, ZERO).nanos - used.get(name, ZERO).nanos) // amount.nanos)
            for name, amount in wanted.items()
        ]
        counts.append(min(rooms))
    return FreeShape(dict(shape), sum(counts), sum(1 for count in counts if count), max(counts, default=0))


def device_shapes(have: Mapping[str, Mapping[str, Quantity]]) -> list[dict[str, str]]:
    """A small pod with one device of each kind, and one with as many as a node has."""
    most: dict[str, int] = {}
    for amounts in have.values():
        for name, amount in amounts.items():
            if is_device(name) and amount:
                most[name] = max(most.get(name, 0), amount.nanos // NANO)
    counts = [(name, count) for name, largest in sorted(most.items())[:MAX_DEVICES] for count in sorted({1, largest})]
    return [{**SMALLEST, name: str(count)} for name, count in counts]


def stranded_devices(
    nodes: Iterable[Node],
    have: Mapping[str, Mapping[str, Quantity]],
    loads: Mapping[str, Mapping[str, Quantity]],
    shapes: Sequence[PodShape],
) -> dict[str, float]:
    """Free devices, by kind, that the pods of this cluster cannot use for lack of room beside them."""
    found: dict[str, float] = {}
    for node in nodes:
        devices = [name for name in have[node.name] if is_device(name)]
        if not devices:
            continue
        used = in_units(loads.get(node.name, {}))
        idle = {name: amount - used.get(name, 0.0) for name, amount in in_units(have[node.name]).items()}
        for name in devices:
            found[name] = found.get(name, 0.0) + stranded_on(node, idle, name, shapes)
    return {name: count for name, count in found.items() if count >= LEAST_STRANDED}


def share(have: Mapping[str, Quantity], used: Mapping[str, Quantity], resource: str) -> float:
    whole = have.get(resource, ZERO)
    return used.get(resource, ZERO).nanos / whole.nanos if whole.nanos else 0.0


def state_of(node: Node) -> str:
    return ("Ready" if is_ready(node) else "NotReady") + (", closed" if node.spec.unschedulable else "")


def node_row(node: Node, used: Mapping[str, Quantity]) -> NodeRow:
    labels = {name: text for name, text in node.labels.items() if not any(part in name for part in SYSTEM_LABELS)}
    taints = [f"{taint.key}={taint.value}:{taint.effect}".replace("=:", ":") for taint in node.spec.taints]
    return NodeRow(node.name, state_of(node), resource_uses(amounts_of(node.status.allocatable), used), labels, taints)


async def node_details(view: CallerView, name: str) -> NodeDetails:
    node = await view.get(Node, Key("", name))
    loads, _ = await view.loads([node])
    pods = await view.pods_on(name)
    unfinished = [pod for pod in pods if pod.status.phase in ("Pending", "Running", "Unknown")]
    listed = [
        (pod.namespace, pod.annotations.get(JOB_NAME_KEY) or pod.labels.get(JOB_NAME_KEY, ""), pod_cell(pod))
        for pod in unfinished[:MAX_PODS]
    ]
    return NodeDetails(
        view.now,
        node_row(node, loads.get(name, {})),
        listed,
        max(0, len(unfinished) - MAX_PODS),
        {each.type: f"{each.status} {each.reason}".strip() for each in node.status.conditions},
        {each.type: each.address for each in node.status.addresses},
    )
