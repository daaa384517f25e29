"""Any flow, any order of events, killed at any moment: each step runs once, after what it waits for."""

from __future__ import annotations

from flow_objects import a_flow, a_step, a_template
from hypothesis import given, settings
from hypothesis import strategies as st

from volcano.api.batch import Job
from volcano.api.flow import JobFlow
from volcano.controllers.jobflow import JobFlowController
from volcano.testing.pure_world import Killed, PureWorld


@st.composite
def flows(draw: st.DrawFn) -> list[list[int]]:
    """For each step the earlier ones that it waits for."""
    size = draw(st.integers(1, 7))
    return [draw(st.lists(st.integers(0, i - 1), unique=True, max_size=3)) if i else [] for i in range(size)]


events = st.lists(
    st.one_of(
        st.tuples(st.just("finish"), st.integers(0, 6), st.sampled_from(["Completed"] * 6 + ["Failed"])),
        st.tuples(st.just("clean up"), st.integers(0, 6), st.none()),
        st.tuples(st.just("kill"), st.integers(0, 3), st.none()),
    ),
    max_size=25,
)


@settings(max_examples=120, deadline=None)
@given(targets=flows(), happenings=events)
def test_each_step_runs_once_and_in_its_turn(targets: list[list[int]], happenings: list[tuple]):
    templates = [a_template(f"s{i}") for i in range(len(targets))]
    flow = a_flow(*(a_step(f"s{i}", *(f"s{j}" for j in wanted)) for i, wanted in enumerate(targets)))
    world = PureWorld(*templates, flow, controllers=[JobFlowController()]).settle()
    done: set[int] = set()
    started: list[int] = []

    def look() -> None:
        for i in range(len(targets)):
            if i not in started and world.get(Job, f"flow-s{i}") is not None:
                assert set(targets[i]) <= done, f"s{i} started before {targets[i]}"
                started.append(i)

    look()
    for what, which, how in happenings:
        job = world.get(Job, f"flow-s{which}")
        if what == "kill":
            world.stop_after = world.writes + which
        elif what == "finish" and job is not None and not job.status.state.phase:
            if how == "Completed":
                done.add(which)
            world.change(Job, job.name, {"status": {"state": {"phase": how}}})
        elif what == "clean up" and job is not None and job.status.state.phase == "Completed":
            world.delete(Job, job.name)
        try:
            world.settle()
        except Killed:
            world.stop_after = None
            world.restart()
            world.settle()
        look()

    world.stop_after = None
    world.restart()
    world.settle()
    made = {key[2].name: count for key, count in world._incarnations.items() if key[1] == "Job"}
    assert all(count == 1 for count in made.values())
    (found,) = world.all(JobFlow)
    if len(done) == len(targets) and not found.status.failed_jobs:
        assert found.status.state.phase == "Succeed"
