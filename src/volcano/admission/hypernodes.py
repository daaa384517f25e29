"""/hypernodes/validate: a HyperNode has members, and its patterns can be used.

Patterns are Go's: what Go's engine lacks (looking around, references back) is refused even though ours has it.
"""

from __future__ import annotations

import re
import warnings
from typing import Final

from volcano.admission.review import Answer, Attributes, Reader, Settings, read, refuse_all
from volcano.api.topology import HyperNode

LONGEST_PATTERN: Final = 1000
FOREIGN: Final = re.compile(r"(?<!\\)(?:\\\\)*(?:\(\?(?:[=!>#(]|<[=!]|P[=>])|\\[1-9]|[*+?}]\+)")


def validate_hypernode(attributes: Attributes, _reader: Reader, _settings: Settings) -> Answer:
    node = read(HyperNode, attributes.object)
    if isinstance(node, Answer):
        return node
    if not node.spec.members:
        return refuse_all(["spec.members: Required value: member must have at least one member"])
    problems = []
    for index, member in enumerate(node.spec.members):
        if member.selector.regex_match is None:
            continue
        problem = pattern_problem(member.selector.regex_match.pattern)
        if problem:
            place = f"spec.members[{index}].selector.regexMatch.pattern"
            problems.append(f"{place}: Invalid value: member regexMatch pattern is invalid: {problem}")
    return refuse_all(problems)


def pattern_problem(pattern: str) -> str:
    """Why the pattern cannot be used; empty when it can."""
    if len(pattern) > LONGEST_PATTERN:
        return f"{len(pattern)} characters are over the limit of {LONGEST_PATTERN}"
    if foreign := FOREIGN.search(pattern):
        return f"{foreign.group()!r} is not supported"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return str(error)
    return ""
