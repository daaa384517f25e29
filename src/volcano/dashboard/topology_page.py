"""The network: HyperNodes as a tree, with what is allocated and free below each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

import msgspec

from volcano.api.hypernode_members import member_names
from volcano.api.pods.amounts import Amounts, added, amounts_of
from volcano.api.quantity import Quantity
from volcano.api.topology import HyperNode
from volcano.dashboard.overview_page import ResourceUse, resource_uses
from volcano.dashboard.view import CallerView

MAX_DOMAINS: Final = 1_000
MAX_DEPTH: Final = 32
MAX_MEMBERS: Final = 12


class DomainRow(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    tier: int
    tier_name: str
    depth: int
    nodes: int
    uses: list[ResourceUse]
    members: list[str]
    direct: int  # nodes that are its own members; `members` are the first of them


class TopologyPage(msgspec.Struct, frozen=True, rename="camel"):
    at: datetime
    domains: list[DomainRow]
    more: int
    sees_all_pods: bool
    has_tree_of_now: bool = False  # HyperNodes are not part of the history: amounts of then in the tree of now


async def topology_page(view: CallerView) -> TopologyPage:
    nodes = await view.nodes()
    loads, sees_all = await view.loads(nodes)
    have = {node.name: amounts_of(node.status.allocatable) for node in nodes}
    rows, more = domain_rows(await view.all(HyperNode), {node.name: node.labels for node in nodes}, have, loads)
    return TopologyPage(view.now, rows, more, sees_all)


def domain_rows(
    domains: Iterable[HyperNode],
    labels: Mapping[str, Mapping[str, str]],
    have: Mapping[str, Amounts],
    loads: Mapping[str, Mapping[str, Quantity]],
) -> tuple[list[DomainRow], int]:
    """The tree from the top, each with the sums of all nodes below it; and how many did not find a place in it."""
    hypernodes = {each.name: each for each in domains}
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
        own = sorted(leaves.get(name, ()))
        spec = hypernodes[name].spec
        rows.append(DomainRow(name, spec.tier, spec.tier_name, depth, len(members), use, own[:MAX_MEMBERS], len(own)))
        if depth < MAX_DEPTH:
            waiting += [
                (child, depth + 1) for child in sorted(below.get(name, ()), reverse=True) if child in hypernodes
            ]
    return rows, max(0, len(hypernodes) - len(rows))


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
