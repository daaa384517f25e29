"""The reason that is found: planted causes, by seed; tests/planted documents the causes and the campaign."""

from __future__ import annotations

from tests.planted.campaign import confusion, outcome_of, outcomes_behind_obstacles, runs_at_once
from tests.planted.causes import CAUSES
from volcano.api.why.tiers import Tier

SEEDS = 2 * len(CAUSES)
"""`make explain-campaign` plants 1,000."""


def test_the_planted_cause_is_the_reason_and_the_first_change_makes_the_job_run() -> None:
    outcomes = [outcome_of(seed) for seed in range(SEEDS)]

    wrong = [f"seed {each.seed} {each.planted}: {'; '.join(each.wrong)}" for each in outcomes if each.wrong]
    assert not wrong, "\n".join([*wrong, confusion(outcomes)])


def test_a_cause_that_needs_a_change_comes_before_obstacles_that_end_by_themselves() -> None:
    outcomes = [each for seed in range(len(CAUSES)) for each in outcomes_behind_obstacles(seed)]

    wrong = [f"seed {each.seed} {each.planted}: {'; '.join(each.wrong)}" for each in outcomes if each.wrong]
    assert outcomes and not wrong, "\n".join(wrong)


def test_at_least_forty_kinds_of_causes_are_planted() -> None:
    assert len(CAUSES) >= 40


def test_a_job_that_fits_never_gets_a_reason_that_needs_a_change() -> None:
    for seed in range(60):
        answer, running = runs_at_once(seed)

        assert running > 0 and Tier(answer.tier).waiting_helps, (seed, answer)
