"""Which nodes a member of a HyperNode selects: by exact name, by a pattern (api.patterns) or by labels."""

from __future__ import annotations

from collections.abc import Mapping

from volcano.api.patterns import PatternError, compile_pattern
from volcano.api.selectors import selector_from
from volcano.api.topology import Member


def member_names(member: Member, nodes: Mapping[str, Mapping[str, str]]) -> set[str]:
    """The names selected from `nodes` (name to labels). An exact name counts whether or not the node exists.

    An empty selector and an invalid pattern select nothing.
    """
    selector = member.selector
    if selector.exact_match is not None:
        return {selector.exact_match.name} - {""}
    if selector.regex_match is not None:
        try:
            pattern = compile_pattern(selector.regex_match.pattern)
        except PatternError:
            return set()
        return {name for name in nodes if selector.regex_match.pattern and pattern.matches(name)}
    if selector.label_match is not None:
        wanted = selector_from(selector.label_match)
        return {name for name, labels in nodes.items() if wanted and wanted.matches(labels)}
    return set()
