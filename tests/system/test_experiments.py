"""The experiments in examples/: gang against deadlock, fair share by weight."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from datetime import timedelta
from types import ModuleType

import pytest

from tests.system.real_system import EXAMPLES
from volcano.simulator.scenarios.scenario import comparison_of, read_scenario


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


@pytest.mark.parametrize(
    ("name", "finished"), [("gang-deadlock", {"without gang": 0, "with gang": 5}), ("task-topology", {"nodeorder": 3})]
)
def test_simulated_jobs_finish_as_the_page_says(name, finished):
    scenario = read_scenario(EXAMPLES / f"experiments/{name}.yaml")
    comparison = comparison_of(scenario)

    comparison.run(scenario.policies)

    found = {policy: of["finished"] for policy, of in comparison.report()["policies"].items()}
    assert found.items() >= finished.items()


def test_pods_that_exchange_data_run_faster_on_one_node():
    scenario = read_scenario(EXAMPLES / "experiments/task-topology.yaml")
    comparison = comparison_of(scenario)

    comparison.run(scenario.policies)

    times = {
        name: {round(outcome.ran, 3) for outcome in run.outcomes.values()} for name, run in comparison.runs.items()
    }
    assert times == {"nodeorder": {250.0}, "binpack": {170.0}, "task-topology": {170.0}}


def test_an_elastic_job_makes_room_for_inference_and_grows_again():
    scenario = read_scenario(EXAMPLES / "experiments/elastic.yaml")
    comparison = comparison_of(scenario)

    comparison.run(scenario.policies)

    outcomes = comparison.runs["preempting"].outcomes
    assert (outcomes["inference"].wait, outcomes["elastic"].evictions, outcomes["elastic"].end) == (0.0, 5, 7200.0)
    assert comparison.runs["without preempt"].outcomes["inference"].wait == 5400.0


def test_min_resources_keep_drivers_from_taking_what_their_executors_need():
    scenario = read_scenario(EXAMPLES / "experiments/spark.yaml")

    def finished(jobs):
        comparison = comparison_of(scenario)
        comparison.jobs = jobs
        comparison.run(scenario.policies)
        return sum(outcome.end is not None for outcome in comparison.runs["volcano-default"].outcomes.values())

    some = scenario.jobs[:40]
    assert finished(some) == 40
    assert finished([replace(job, min_resources=None) for job in some]) == 0


def test_min_resources_are_faster_than_nodes_kept_for_drivers():
    took = {}
    for name in ("spark", "spark-driver-nodes"):
        scenario = read_scenario(EXAMPLES / f"experiments/{name}.yaml")
        comparison = comparison_of(scenario)
        comparison.jobs = scenario.jobs[:30]
        comparison.run(scenario.policies)
        took[name] = max(outcome.end for outcome in comparison.runs["volcano-default"].outcomes.values())

    assert took["spark"] < 0.75 * took["spark-driver-nodes"]
