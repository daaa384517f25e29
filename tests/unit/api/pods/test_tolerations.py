"""Whether a toleration matches a taint: scheduler, taint eviction, DaemonSets and admission ask the same function."""

from __future__ import annotations

import pytest

from volcano.api.core import Taint, Toleration
from volcano.api.pods.tolerations import is_tolerated, names, tolerates

TAINT = Taint(key="gpu", value="950", effect="NoSchedule")

CASES = {
    "an empty toleration": ({}, False),
    "everything": ({"operator": "Exists"}, True),
    "everything of another effect": ({"operator": "Exists", "effect": "NoExecute"}, False),
    "the key": ({"key": "gpu", "operator": "Exists"}, True),
    "another key": ({"key": "disk", "operator": "Exists"}, False),
    "the value": ({"key": "gpu", "operator": "Equal", "value": "950"}, True),
    "the value, by default": ({"key": "gpu", "value": "950"}, True),
    "another value": ({"key": "gpu", "value": "1"}, False),
    "no value": ({"key": "gpu"}, False),
    "a value without a key": ({"value": "950"}, False),
    "the effect": ({"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}, True),
    "less than": ({"key": "gpu", "operator": "Lt", "value": "951"}, True),
    "not less than": ({"key": "gpu", "operator": "Lt", "value": "950"}, False),
    "greater than": ({"key": "gpu", "operator": "Gt", "value": "750"}, True),
    "not greater than": ({"key": "gpu", "operator": "Gt", "value": "950"}, False),
    "greater than a negative number": ({"key": "gpu", "operator": "Gt", "value": "-3"}, True),
    "greater than what is no number": ({"key": "gpu", "operator": "Gt", "value": "many"}, False),
    "greater than a number with a leading zero": ({"key": "gpu", "operator": "Gt", "value": "0750"}, False),
    "less than a number beyond 64 bits": ({"key": "gpu", "operator": "Lt", "value": "9999999999999999999"}, False),
    "an unknown operator": ({"key": "gpu", "operator": "Near", "value": "950"}, False),
}


@pytest.mark.parametrize(("toleration", "expected"), CASES.values(), ids=CASES)
def test_tolerates(toleration: dict, expected: bool):
    assert tolerates(Toleration(**toleration), TAINT) is expected


def test_a_taint_value_that_is_no_number_is_not_compared():
    assert not tolerates(
        Toleration(key="gpu", operator="Gt", value="1"), Taint(key="gpu", value="big", effect="NoSchedule")
    )


def test_one_of_several_tolerations_is_enough():
    assert is_tolerated(TAINT, [Toleration(key="disk", operator="Exists"), Toleration(operator="Exists")])
    assert not is_tolerated(TAINT, [])


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        ({"key": "gpu", "operator": "Equal", "value": "other"}, True),
        ({"operator": "Near"}, True),
        ({"key": "disk"}, False),
        ({"effect": "NoExecute"}, False),
    ],
)
def test_naming_a_taint_looks_at_key_and_effect_alone(toleration: dict, expected: bool):
    assert names(Toleration(**toleration), "gpu", "NoSchedule") is expected
