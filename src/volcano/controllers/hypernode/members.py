"""How many nodes a HyperNode has. What a member selects is known to api.hypernode_members."""

from __future__ import annotations

from collections.abc import Iterable

from volcano.api.core import Node
from volcano.api.hypernode_members import member_names
from volcano.api.topology import HyperNode


def node_count(domain: HyperNode, nodes: Iterable[Node]) -> int:
    """The number of distinct members."""
    labels = {node.name: node.labels for node in nodes}
    names: set[str] = set()
    for member in domain.spec.members:
        names |= member_names(member, labels)
    return len(names)


def looks_at_nodes(domain: HyperNode) -> bool:
    """Whether the count depends on which nodes there are."""
    return any(member.selector.exact_match is None for member in domain.spec.members)
