"""/hypernodes/validate: members of HyperNodes."""

import pytest
from admission_builders import refusal


def a_hypernode(*members):
    return {"kind": "HyperNode", "metadata": {"name": "h"}, "spec": {"tier": 1, "members": list(members)}}


def matching(pattern):
    return {"type": "Node", "selector": {"regexMatch": {"pattern": pattern}}}


EXACT = {"type": "Node", "selector": {"exactMatch": {"name": "node-1"}}}


@pytest.mark.parametrize(
    "members", [[EXACT], [matching("^node-[0-9]+$")], [matching("(a|b)+?")], [EXACT, matching(r"n\.x\\1")]]
)
def test_members_that_can_be_found_are_admitted(members):
    assert refusal(a_hypernode(*members)) == ""


def test_a_hypernode_without_members_is_refused():
    assert "member must have at least one member" in refusal(a_hypernode())
    assert "members" in refusal({"kind": "HyperNode", "metadata": {"name": "h"}, "spec": {"tier": 1}})


@pytest.mark.parametrize("pattern", ["node-[", "(", "*a", "a{2,1}", "(?=a)b", "(?<!a)b", r"(a)\1", "a++", "(?P=n)"])
def test_a_pattern_that_does_not_compile_is_refused_where_it_stands(pattern):
    message = refusal(a_hypernode(EXACT, matching(pattern)))

    assert "member regexMatch pattern is invalid" in message
    assert "spec.members[1].selector.regexMatch.pattern" in message
