"""The fault simulation itself: a seed is always the same run, known bugs are found, and the faults are minimized."""

from __future__ import annotations

import logging

import pytest

from volcano.testing.faults.minimize import minimized
from volcano.testing.faults.plan import Fault, faults_of
from volcano.testing.faults.run import RunResult, machine_names, run_seed
from volcano.testing.faults.workload import workload_of


@pytest.fixture(autouse=True)
def quiet_logs():
    logger = logging.getLogger("volcano")
    before, logger.propagate = logger.propagate, False
    yield
    logger.propagate = before


@pytest.mark.parametrize("seed", [3, 36])
def test_a_seed_is_always_the_same_run(seed: int):
    first, second = run_seed(seed), run_seed(seed)

    assert first.violations == []
    assert first.lines == second.lines
    assert first.digest == second.digest


CLOCK_OF_THE_SCHEDULER_IS_SET_BACK = (26, [Fault(0, 81.551, "scheduler0", "clock", seconds=3600.0)])


@pytest.mark.parametrize(("seed", "faults"), [CLOCK_OF_THE_SCHEDULER_IS_SET_BACK])
def test_what_the_simulation_found_stays_repaired(seed: int, faults: list[Fault]):
    assert run_seed(seed, faults).violations == []


def test_faults_are_removed_until_the_run_no_longer_fails_without_them():
    workload = workload_of(0)
    faults = faults_of(7, machine_names(workload), busy=[])
    guilty = {faults[0], faults[-1]}

    def run(seed: int, chosen) -> RunResult:
        return RunResult(seed, list(chosen), ["it fails"] if guilty <= set(chosen) else [], [], "")

    assert len(faults) > len(guilty)
    assert set(minimized(run(7, faults), run).faults) == guilty
