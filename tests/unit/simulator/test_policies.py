"""Shipped policies and configurations of users."""

from __future__ import annotations

import pytest

from volcano.simulator.policies import SHIPPED, InvalidPolicy, read_policy, shipped_policy


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_policy_is_fine(name: str) -> None:
    assert shipped_policy(name).doubts == ()


def test_an_unknown_policy_names_the_nearest() -> None:
    with pytest.raises(InvalidPolicy, match="no policy is called 'fcsf'; did you mean 'fcfs'"):
        shipped_policy("fcsf")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("actions: alocate", "mine: actions: no action is called 'alocate'; did you mean 'allocate'?"),
        (
            "actions: allocate\ntiers: [{plugins: [{name: gang}]}, {plugins: [{name: predicate}]}]",
            "mine: tiers[1].plugins: no plugin is called 'predicate'; did you mean 'predicates'?",
        ),
        ("[]", "mine: the configuration is not a map"),
    ],
)
def test_a_configuration_that_cannot_be_used(text: str, reason: str) -> None:
    with pytest.raises(InvalidPolicy) as raised:
        read_policy("mine", text)

    assert str(raised.value) == reason


def test_doubts_about_a_configuration_are_kept() -> None:
    policy = read_policy("mine", "actions: allocate\ntiers: [{plugins: [{name: predicates}]}]")

    assert policy.doubts == ("without plugin gang a job may be started in part",)
