"""The network: HyperNodes as a tree, with what is allocated and free below each."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import msgspec

from volcano.api.hypernode_members import member_names
from volcano.api.pods.amounts import added, amounts_of
from volcano.api.topology import HyperNode
from volcano.dashboard.overview_page import ResourceUse, resource_uses
from volcano.dashboard.view import CallerView

MAX_DOMAINS: Final = 1_000
MAX_DEPTH: Final = 32


class DomainRow(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    tier: int
    tier_name: str
    depth: int
    nodes: int
    uses: list[ResourceUse]
    members: list[str]


class TopologyPage(msgspec.Struct, frozen=True, rename="camel"):
    at: datetime
    domains: list[DomainRow]
    more: int
    sees_all_pods: bool


async def topology_page(view: CallerView) -> TopologyPage:
    hypernodes = {each.name: each for each in await view.all(HyperNode)}
    nodes = await view.nodes()
    loads, sees_all = await view.loads(nodes)
    labels = {node.name: node.labels for node in nodes}
    have = {node.name: amounts_of(node.status.allocatable) for node in nodes}
    below, leaves = members_of(hypernodes, labels)
    children = {name for members in below.values() for name in members}
    rows: list[DomainRow] = []
    roots = sorted((each for each in hypernodes.values() if each.name not in children), key=_rank)
    waiting = [(each.name, 0) for each in reversed(roots)]
    while waiting and len(rows) < MAX_DOMAINS:
        name, depth = waiting.pop()
        members = nodes_below(name, below, leaves)
        use = resource_uses(
            added(*(have[node] for node in members if node in have)), added(*(loads.get(node, {}) for node in members))
        )
        domain = hypernodes[name]
        shown = sorted(leaves.get(name, ()))
        rows.append(DomainRow(name, domain.spec.tier, domain.spec.tier_name, depth, len(members), use, shown))
        if depth < MAX_DEPTH:
            waiting += [
                (child, depth + 1) for child in sorted(below.get(name, ()), reverse=True) if child in hypernodes
            ]
    return TopologyPage(view.now, rows, max(0, len(hypernodes) - len(rows)), sees_all)


def _rank(each: HyperNode) -> tuple[int, str]:
    return (-each.spec.tier, each.name)


def members_of(
    hypernodes: Mapping[str, HyperNode], nodes: Mapping[str, Mapping[str, str]]
) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """The HyperNodes and the nodes directly below each HyperNode."""
    of_domains = {name: each.labels for name, each in hypernodes.items()}
    below: dict[str, set[str]] = {}
    leaves: dict[str, set[str]] = {}
    for name, each in hypernodes.items():
        for member in each.spec.members:
            if member.type == "HyperNode":
                below.setdefault(name, set()).update(member_names(member, of_domains) - {name})
            else:
                leaves.setdefault(name, set()).update(member_names(member, nodes))
    return below, leaves


def nodes_below(name: str, below: Mapping[str, set[str]], leaves: Mapping[str, set[str]]) -> set[str]:
    found, seen, waiting = set[str](), set[str](), [name]
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        found |= leaves.get(current, set())
        waiting += below.get(current, ())
    return found
