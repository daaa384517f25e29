"""From HyperNode objects to Domains. Contradictions (a cycle, two parents) make the whole not ready."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from volcano.api.hypernode_members import member_names
from volcano.api.topology import HyperNode
from volcano.scheduler.model.domain import Domain, Domains

MAX_HYPERNODE_DEPTH: Final = 64


def domains_from(hypernodes: Iterable[HyperNode], nodes: Mapping[str, Mapping[str, str]]) -> Domains:
    """`nodes`: name → labels of every node there is."""
    objects = {hypernode.name: hypernode for hypernode in hypernodes}
    found = {name: Domain(name, item.spec.tier, item.spec.tier_name) for name, item in objects.items()}
    domains = Domains(found)
    for name, item in objects.items():
        for child in dict.fromkeys(_child_names(item)):
            if child not in found:
                continue
            if found[child].parent:
                domains.problem = f"hypernode {child} is a member of both {found[child].parent} and {name}"
            else:
                found[child].parent = name
                found[name].children.append(child)
    known: dict[str, frozenset[str]] = {}
    for name in found:
        below = _nodes_below(name, objects, nodes, known, above=frozenset())
        if below is None:
            domains.problem = f"hypernode {name} has no end: it or one of its members contains itself"
        else:
            found[name].nodes = below
    return domains


def _child_names(hypernode: HyperNode) -> list[str]:
    exact = (m.selector.exact_match for m in hypernode.spec.members if m.type == "HyperNode")
    return [match.name for match in exact if match is not None]


def _nodes_below(
    name: str,
    objects: Mapping[str, HyperNode],
    nodes: Mapping[str, Mapping[str, str]],
    known: dict[str, frozenset[str]],
    *,
    above: frozenset[str],
) -> frozenset[str] | None:
    """The nodes of the whole subtree; None when it has no end."""
    if name in known:
        return known[name]
    if name in above or len(above) > MAX_HYPERNODE_DEPTH:
        return None
    below: set[str] = set()
    for member in objects[name].spec.members:
        if member.type == "Node":
            below |= member_names(member, nodes)
    for child in dict.fromkeys(_child_names(objects[name])):
        if child in objects:
            deeper = _nodes_below(child, objects, nodes, known, above=above | {name})
            if deeper is None:
                return None
            below |= deeper
    known[name] = frozenset(below)
    return known[name]
