"""The experiments in examples/: gang against deadlock, fair share by weight."""

from __future__ import annotations

import importlib.util
import sys
from datetime import timedelta
from types import ModuleType

import pytest

from tests.system.real_system import EXAMPLES


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_with_gang_all_jobs_finish_one_after_the_other(jobs):
    outcome = example("gang_against_deadlock").experiment(jobs, gang=True)

    assert (outcome.finished, outcome.stuck_pods) == (jobs, 0)
    assert jobs * timedelta(minutes=5) <= outcome.took < jobs * timedelta(minutes=6)


@pytest.mark.parametrize("jobs", [2, 5])
def test_without_gang_they_hold_what_the_others_wait_for(jobs):
    outcome = example("gang_against_deadlock").experiment(jobs, gang=False)

    assert (outcome.finished, outcome.stuck_pods) == (0, 9)


def test_without_gang_a_job_that_is_alone_finishes():
    assert example("gang_against_deadlock").experiment(1, gang=False).finished == 1


def test_what_a_queue_borrowed_is_reclaimed_until_shares_are_as_weights():
    shares = example("fair_share").experiment()

    alone, both, after = (number for number, share in enumerate(shares) if share.event)
    capacity = 32
    assert [list(share.cpus.values()) for share in shares[alone + 1 : both]] == [[capacity, 0]] * (both - alone - 1)
    assert list(shares[after].cpus.values()) == [24, 8]
    assert list(shares[-1].cpus.values()) == [0, capacity]
    assert all(sum(share.cpus.values()) <= capacity for share in shares)
