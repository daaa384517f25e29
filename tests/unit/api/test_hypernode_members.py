"""What a member of a HyperNode selects."""

from __future__ import annotations

import msgspec
import pytest

from volcano.api.hypernode_members import member_names
from volcano.api.topology import Member

NODES = {"gpu-1": {"rack": "a"}, "gpu-2": {"rack": "b"}, "cpu-1": {"rack": "a"}}


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ({"exactMatch": {"name": "gpu-1"}}, {"gpu-1"}),
        ({"exactMatch": {"name": "absent"}}, {"absent"}),
        ({"exactMatch": {"name": ""}}, set()),
        ({"regexMatch": {"pattern": "pu-1"}}, {"gpu-1", "cpu-1"}),
        ({"regexMatch": {"pattern": "^gpu-"}}, {"gpu-1", "gpu-2"}),
        ({"regexMatch": {"pattern": r"^\pLpu-[[:digit:]]$"}}, {"gpu-1", "gpu-2", "cpu-1"}),
        ({"regexMatch": {"pattern": "(?!gpu)"}}, set()),
        ({"regexMatch": {"pattern": "("}}, set()),
        ({"regexMatch": {"pattern": ""}}, set()),
        ({"labelMatch": {"matchLabels": {"rack": "a"}}}, {"gpu-1", "cpu-1"}),
        ({"labelMatch": {}}, set()),
        ({}, set()),
    ],
)
def test_a_selector_names_nodes(selector, names):
    assert member_names(msgspec.convert({"type": "Node", "selector": selector}, Member), NODES) == names


def test_a_pattern_that_takes_others_exponential_time_is_matched_in_linear_time():
    nodes = {"a" * 60 + "b": {}, "a" * 60: {}}

    member = msgspec.convert({"type": "Node", "selector": {"regexMatch": {"pattern": "^(a+)+$"}}}, Member)

    assert member_names(member, nodes) == {"a" * 60}
