"""Every action is described, with the arguments that it takes."""

from __future__ import annotations

from volcano.scheduler.actions import ACTIONS
from volcano.scheduler.actions.action_descriptions import ACTION_DESCRIPTIONS
from volcano.scheduler.framework.lint import ACTION_ARGUMENTS


def test_every_action_is_described_with_its_arguments() -> None:
    described = {name: frozenset(policy.arguments) for name, policy in ACTION_DESCRIPTIONS.items()}

    assert described == {name: ACTION_ARGUMENTS[name] for name in ACTIONS}
