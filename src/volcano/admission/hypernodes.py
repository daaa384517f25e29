"""/hypernodes/validate: a HyperNode has members, and its patterns compile (api.patterns)."""

from __future__ import annotations

from volcano.admission.review import Reader, ReviewAnswer, Settings, read, refuse_all
from volcano.api.patterns import PatternError, compile_pattern
from volcano.api.topology import HyperNode
from volcano.machinery.admission import Attributes


def validate_hypernode(attributes: Attributes, _reader: Reader, _settings: Settings) -> ReviewAnswer:
    node = read(HyperNode, attributes.object)
    if isinstance(node, ReviewAnswer):
        return node
    if not node.spec.members:
        return refuse_all(["spec.members: Required value: member must have at least one member"])
    problems = []
    for index, member in enumerate(node.spec.members):
        if member.selector.regex_match is None:
            continue
        try:
            compile_pattern(member.selector.regex_match.pattern)
        except PatternError as error:
            path = f"spec.members[{index}].selector.regexMatch.pattern"
            problems.append(f"{path}: Invalid value: member regexMatch pattern is invalid: {error}")
    return refuse_all(problems)
