"""A DAG written in Python runs as real processes and hands its results back."""

import pytest

from volcano.flow import Flow, FlowFailed

from .real_system import JOBS, running_up


@pytest.fixture(scope="module")
def system(tmp_path_factory):
    with running_up(tmp_path_factory.mktemp("flow")) as up:
        yield up


def test_steps_run_in_order_and_results_come_back(system):
    flow = Flow("sums")
    first = flow.command("first", ["sleep", "1"])
    halves = [flow.call(f"half-{i}", "math:fsum", [i, i + 1]) for i in range(2)]
    last = flow.command("last", ["true"])
    first >> halves >> last

    results = flow.submit(kubeconfig=str(system.data / "kubeconfig")).wait(seconds=90)

    assert results == {"half-0": 1.0, "half-1": 3.0}
    jobs = system.api.get(JOBS).body["items"]
    begun = {job["metadata"]["name"]: job["metadata"]["creationTimestamp"] for job in jobs}
    ended = {job["metadata"]["name"]: job["status"]["state"]["lastTransitionTime"] for job in jobs}
    for half in ("sums-sums-half-0", "sums-sums-half-1"):
        assert ended["sums-sums-first"] <= begun[half]
        assert ended[half] <= begun["sums-sums-last"]


def test_a_step_that_fails_fails_the_flow(system):
    flow = Flow("broken")
    bad = flow.call("bad", "math:sqrt", -1)
    bad >> flow.command("never", ["true"])
    running = flow.submit(kubeconfig=str(system.data / "kubeconfig"))

    with pytest.raises(FlowFailed, match="bad"):
        running.wait(seconds=90)

    running.delete()
