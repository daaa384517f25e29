"""A short part of the fuzzing: all kept inputs, and some mutations of them. `make fuzz` runs the long one."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.learning import FuzzFailure, LineTrace, kept_inputs, mutated, run_once
from tests.fuzz.targets import TARGETS, FuzzTarget


@pytest.mark.parametrize("name", TARGETS)
def test_kept_inputs_raise_only_the_parsers_own_errors_within_bounded_steps(name: str):
    target = TARGETS[name]

    for content in (*target.seeds, *kept_inputs(name)):
        with LineTrace():
            run_once(target, content)


@pytest.mark.parametrize("name", TARGETS)
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(chance=st.randoms(use_true_random=False))
def test_mutations_raise_only_the_parsers_own_errors(name: str, chance: random.Random):
    target = TARGETS[name]

    run_once(target, mutated(chance, [*target.seeds, *kept_inputs(name)], target.words))


def test_an_error_that_is_not_the_parsers_own_is_a_failure():
    def parse(content: bytes) -> None:
        raise KeyError(content)

    with pytest.raises(FuzzFailure, match="input b'x'"):
        run_once(FuzzTarget(parse, (ValueError,), (b"x",), (b"x",)), b"x")
