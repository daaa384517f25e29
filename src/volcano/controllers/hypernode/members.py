"""Who belongs to a HyperNode: by exact name, by a pattern, by labels."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from volcano.api.core import Node
from volcano.api.selectors import selector_from
from volcano.api.topology import HyperNode, Member


def node_count(domain: HyperNode, nodes: Iterable[Node]) -> int:
    """Distinct members. A name counts whether or not there is such a node; a pattern that is none matches nobody."""
    known = tuple(nodes)
    names: set[str] = set()
    for member in domain.spec.members:
        names |= member_names(member, known)
    return len(names)


def member_names(member: Member, nodes: tuple[Node, ...]) -> set[str]:
    selector = member.selector
    if selector.exact_match is not None:
        return {selector.exact_match.name} - {""}
    if selector.regex_match is not None:
        pattern = _compiled(selector.regex_match.pattern)
        return {node.name for node in nodes if pattern is not None and pattern.search(node.name)}
    if selector.label_match is not None:
        wanted = selector_from(selector.label_match)
        return {node.name for node in nodes if wanted and wanted.matches(node.labels)}
    return set()


def looks_at_nodes(domain: HyperNode) -> bool:
    """Whether the count depends on which nodes there are."""
    return any(member.selector.exact_match is None for member in domain.spec.members)


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    try:
        return re.compile(pattern) if pattern else None
    except re.error:
        return None
