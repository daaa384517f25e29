"""Flows: every transition, dependencies, retain policies, vanished steps, crashes."""

from __future__ import annotations

from datetime import timedelta

import pytest
from flow_objects import a_flow, a_step, a_template, a_world, jobs, set_phase

from volcano.api.batch import Job
from volcano.api.flow import JobFlow, JobFlowStatus, JobTemplate
from volcano.controllers.jobflow import JobFlowController, JobTemplateController
from volcano.controllers.jobflow.status import next_phase
from volcano.testing.pure_world import Killed, PureWorld

DIAMOND = (
    a_template("a"), a_template("b"), a_template("c"), a_template("d"),
    a_flow(a_step("a"), a_step("b", "a"), a_step("c", "a"), a_step("d", "b", "c")),
)  # fmt: skip


def the_flow(world: PureWorld, name: str = "flow") -> JobFlow:
    flow = world.get(JobFlow, name)
    assert flow is not None
    return flow


def phase(world: PureWorld) -> str:
    return the_flow(world).status.state.phase


# -- starting -------------------------------------------------------------------------------------------------
def test_steps_without_dependencies_start_at_once():
    world = a_world(*DIAMOND)

    assert jobs(world) == {"flow-a": ""}
    assert phase(world) == "Pending"
    assert world.reasons() == ["Created"]


def test_a_job_is_a_copy_of_its_template_and_says_where_it_comes_from():
    template = a_template("a")
    template["spec"]["tasks"][0]["template"]["spec"]["somethingNew"] = {"kept": [1, 2]}

    world = a_world(template, a_flow(a_step("a")))

    job = world.raw(Job, "flow-a")
    assert job["spec"] == template["spec"]
    made_by = {"volcano.sh/createdByJobTemplate": "default.a", "volcano.sh/createdByJobFlow": "default.flow"}
    assert job["metadata"]["labels"] == made_by
    assert job["metadata"]["annotations"] == made_by
    (owner,) = job["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("JobFlow", "flow", True)


def test_a_step_starts_when_all_it_waits_for_is_completed():
    world = a_world(*DIAMOND)
    set_phase(world, "flow-a", "Completed")
    assert set(jobs(world)) == {"flow-a", "flow-b", "flow-c"}

    set_phase(world, "flow-b", "Completed")
    assert set(jobs(world)) == {"flow-a", "flow-b", "flow-c"}

    set_phase(world, "flow-c", "Completed")
    assert set(jobs(world)) == {"flow-a", "flow-b", "flow-c", "flow-d"}


def test_a_diamond_succeeds():
    world = a_world(*DIAMOND)

    for step in ("a", "b", "c", "d"):
        set_phase(world, f"flow-{step}", "Running")
        set_phase(world, f"flow-{step}", "Completed")

    assert phase(world) == "Succeed"
    assert the_flow(world).status.completed_jobs == ["flow-a", "flow-b", "flow-c", "flow-d"]
    assert "Succeeded" in world.reasons()


def test_a_step_whose_template_comes_later_starts_then():
    world = a_world(a_flow(a_step("a")))
    assert jobs(world) == {}
    assert set(world.reasons()) == {"SyncJobFlow"}
    assert phase(world) == "", "as in Volcano, there is no status before its templates exist"

    world.put(a_template("a"))
    world.settle()

    assert jobs(world) == {"flow-a": ""}


def test_a_job_of_that_name_that_is_not_the_flows_is_left_alone():
    foreign = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "flow-a"}}

    world = a_world(foreign, *DIAMOND)

    assert "ownerReferences" not in world.raw(Job, "flow-a")["metadata"]
    assert "ForeignJob" in world.reasons()
    assert the_flow(world).status.job_status_list == []


def test_a_new_flow_waits_for_the_jobs_of_an_earlier_one_to_go():
    world = a_world(*DIAMOND)
    world.change(Job, "flow-a", {"metadata": {"finalizers": ["example.com/hold"]}})
    world.delete(Job, "flow-a")
    world.delete(JobFlow, "flow")
    world.put(DIAMOND[-1])
    world.settle()
    old = world.raw(Job, "flow-a")["metadata"]["uid"]

    world.change(Job, "flow-a", {"metadata": {"finalizers": None}})
    world.settle()

    assert world.raw(Job, "flow-a")["metadata"]["uid"] != old


def test_names_too_long_for_a_label_are_annotations_only():
    name = "t" * 60

    world = a_world(a_template(name), a_flow(a_step(name)))

    metadata = world.raw(Job, f"flow-{name}")["metadata"]
    assert metadata["labels"] == {"volcano.sh/createdByJobFlow": "default.flow"}
    assert metadata["annotations"]["volcano.sh/createdByJobTemplate"] == f"default.{name}"


# -- phases ---------------------------------------------------------------------------------------------------
NO, ONE, TWO = [], ["x"], ["x", "y"]
RULES = [
    # before, running, completed, failed, terminated, after
    ("", NO, NO, NO, NO, "Pending"),
    ("Pending", NO, NO, NO, NO, "Pending"),
    ("Pending", ONE, NO, NO, NO, "Running"),
    ("Pending", NO, ONE, NO, NO, "Running"),
    ("Pending", NO, NO, ONE, NO, "Failed"),
    ("Pending", NO, NO, NO, ONE, "Failed"),
    ("Pending", ONE, NO, ONE, NO, "Failed"),
    ("Pending", ONE, NO, NO, ONE, "Running"),
    ("Running", ONE, ONE, NO, NO, "Running"),
    ("Running", NO, TWO, NO, NO, "Succeed"),
    ("Running", ONE, NO, ONE, NO, "Failed"),
    ("Running", ONE, NO, NO, ONE, "Failed"),
    ("Running", NO, NO, NO, NO, "Running"),
    ("Succeed", NO, NO, ONE, NO, "Succeed"),
    ("Failed", NO, TWO, NO, NO, "Failed"),
    ("Terminating", NO, TWO, NO, NO, "Terminating"),
]


@pytest.mark.parametrize(("before", "running", "completed", "failed", "terminated", "after"), RULES)
def test_the_phase_rule(before, running, completed, failed, terminated, after):
    status = JobFlowStatus(
        running_jobs=running, completed_jobs=completed, failed_jobs=failed, terminated_jobs=terminated
    )

    assert next_phase(before, status, 2) == after


@pytest.mark.parametrize("bad", ["Failed", "Terminated"])
def test_a_flow_fails_with_a_step_and_starts_no_more(bad: str):
    world = a_world(*DIAMOND)
    set_phase(world, "flow-a", "Completed")
    set_phase(world, "flow-b", bad)
    assert phase(world) == "Failed"

    set_phase(world, "flow-c", "Completed")

    assert "flow-d" not in jobs(world)
    assert phase(world) == "Failed"


def test_the_records_of_a_failed_flow_stay_true():
    world = a_world(*DIAMOND)
    set_phase(world, "flow-a", "Completed")
    set_phase(world, "flow-c", "Running")
    set_phase(world, "flow-b", "Failed")

    set_phase(world, "flow-c", "Completed")

    states = {record.name: record.state for record in the_flow(world).status.job_status_list}
    assert states == {"flow-a": "Completed", "flow-b": "Failed", "flow-c": "Completed"}


@pytest.mark.parametrize(
    ("job_phase", "field"),
    [
        ("Pending", "pending_jobs"),
        ("Running", "running_jobs"),
        ("Failed", "failed_jobs"),
        ("Completed", "completed_jobs"),
        ("Terminated", "terminated_jobs"),
        ("Aborting", "un_know_jobs"),
        ("Aborted", "un_know_jobs"),
        ("Restarting", "un_know_jobs"),
        ("Completing", None),
        ("Terminating", None),
    ],
)
def test_jobs_are_listed_by_phase(job_phase: str, field: str | None):
    world = a_world(*DIAMOND)

    set_phase(world, "flow-a", job_phase)

    status = the_flow(world).status
    fields = ("pending_jobs", "running_jobs", "failed_jobs", "completed_jobs", "terminated_jobs", "un_know_jobs")
    listed = [name for name in fields if "flow-a" in getattr(status, name)]
    assert listed == ([field] if field else [])


def test_each_step_has_its_times_and_its_history():
    world = a_world(*DIAMOND)
    start = world.now
    world.advance(timedelta(seconds=10))
    set_phase(world, "flow-a", "Pending")
    world.advance(timedelta(seconds=10))
    set_phase(world, "flow-a", "Running", taskStatusCount={"work": {"phase": {"Running": 1}}})
    world.advance(timedelta(seconds=30))
    set_phase(world, "flow-a", "Completed", runningDuration="50s", retryCount=2)

    record = the_flow(world).status.job_status_list[0]
    condition = the_flow(world).status.conditions["flow-a"]

    assert (record.name, record.state, record.restart_count) == ("flow-a", "Completed", 2)
    assert record.start_timestamp == start
    assert record.end_timestamp == start + timedelta(seconds=50)
    assert [(h.state, h.start_timestamp, h.end_timestamp) for h in record.running_histories] == [
        ("Pending", start + timedelta(seconds=10), start + timedelta(seconds=20)),
        ("Running", start + timedelta(seconds=20), start + timedelta(seconds=50)),
        ("Completed", start + timedelta(seconds=50), None),
    ]
    assert (condition.phase, condition.create_time, condition.running_duration) == ("Completed", start, "50s")
    assert condition.task_status_count["work"].phase == {"Running": 1}


# -- what is gone ---------------------------------------------------------------------------------------------
def test_a_completed_job_that_is_cleaned_up_stays_completed_and_is_not_run_again():
    world = a_world(*DIAMOND)
    set_phase(world, "flow-a", "Completed")

    world.delete(Job, "flow-a")
    world.settle()
    for step in ("b", "c", "d"):
        set_phase(world, f"flow-{step}", "Completed")

    assert "flow-a" not in jobs(world)
    assert phase(world) == "Succeed"


def test_an_unfinished_job_that_is_deleted_is_vanished_not_unstarted():
    world = a_world(*DIAMOND)
    set_phase(world, "flow-a", "Running")

    world.delete(Job, "flow-a")
    world.settle()

    assert jobs(world) == {}
    assert phase(world) == "Failed"
    record = the_flow(world).status.job_status_list[0]
    assert record.state == "Vanished"
    assert [history.state for history in record.running_histories] == ["Running", "Vanished"]
    assert the_flow(world).status.terminated_jobs == ["flow-a"]
    assert "JobVanished" in world.reasons()


def test_a_job_that_vanished_while_nobody_watched_is_found_out():
    world = a_world(*DIAMOND)
    set_phase(world, "flow-a", "Running")
    world.delete(Job, "flow-a")

    world.restart()
    world.settle()

    assert the_flow(world).status.job_status_list[0].state == "Vanished"


def test_a_job_that_completes_and_goes_between_two_looks_is_completed():
    world = a_world(*DIAMOND)
    set_phase(world, "flow-a", "Running")

    world.change(Job, "flow-a", {"status": {"state": {"phase": "Completed"}}})
    world.delete(Job, "flow-a")
    world.settle()

    assert set(jobs(world)) == {"flow-b", "flow-c"}


# -- retain policies ------------------------------------------------------------------------------------------
def run_to_the_end(world: PureWorld) -> None:
    for _ in range(20):
        unfinished = [name for name, state in jobs(world).items() if state != "Completed"]
        if not unfinished:
            return
        set_phase(world, unfinished[0], "Completed")
    raise AssertionError("the flow does not end")


@pytest.mark.parametrize(("retain", "left"), [("", 4), ("retain", 4), ("delete", 0)])
def test_what_a_flow_that_succeeded_keeps(retain: str, left: int):
    steps = DIAMOND[-1]["spec"]["flows"]
    world = a_world(*DIAMOND[:-1], a_flow(*steps, retain=retain))

    run_to_the_end(world)

    assert phase(world) == "Succeed"
    assert len(jobs(world)) == left
    assert len(the_flow(world).status.completed_jobs) == 4


def test_a_failed_flow_keeps_its_jobs_whatever_its_policy():
    world = a_world(a_template("a"), a_flow(a_step("a"), retain="delete"))

    set_phase(world, "flow-a", "Failed")

    assert len(jobs(world)) == 1


# -- templates ------------------------------------------------------------------------------------------------
def test_a_template_lists_the_jobs_made_from_it():
    world = a_world(a_template("a.b"), a_flow(a_step("a.b"), name="one"), a_flow(a_step("a.b"), name="two"))

    template = world.get(JobTemplate, "a.b")

    assert template is not None
    assert template.status.job_depends_on_list == ["one-a.b", "two-a.b"]


def test_a_template_without_jobs_says_nothing():
    world = a_world(a_template("a"))

    assert world.writes == 0


# -- crashes --------------------------------------------------------------------------------------------------
def live(world: PureWorld) -> None:
    """The rest of the world: each Job that is there runs and completes, in turn."""
    for _ in range(30):
        world.settle()
        unfinished = sorted(name for name, state in jobs(world).items() if state != "Completed")
        if not unfinished:
            return
        current = jobs(world)[unfinished[0]]
        world.change(Job, unfinished[0], {"status": {"state": {"phase": {"": "Running"}.get(current, "Completed")}}})


def ran(world: PureWorld) -> dict[str, str]:
    return {job.name: job.uid for job in world.all(Job)}


@pytest.mark.parametrize("retain", ["retain", "delete"])
def test_a_kill_after_any_write_ends_as_no_kill_at_all(retain: str):
    steps = DIAMOND[-1]["spec"]["flows"]
    given = (*DIAMOND[:-1], a_flow(*steps, retain=retain))
    controllers = lambda: [JobFlowController(), JobTemplateController()]  # noqa: E731
    whole = PureWorld(*given, controllers=controllers())
    live(whole)
    assert phase(whole) == "Succeed"

    for writes in range(whole.writes):
        world = PureWorld(*given, controllers=controllers())
        world.stop_after = writes
        with pytest.raises(Killed):
            live(world)
        world.stop_after = None
        world.restart()
        live(world)

        assert phase(world) == "Succeed"
        assert ran(world) == ran(whole)  # the uids tell how often each name was made
        assert all(count == 1 for (_, kind, _), count in world._incarnations.items() if kind == "Job")


def test_a_flow_of_a_hundred_steps():
    templates = [a_template(f"s{i}") for i in range(100)]
    steps = [a_step(f"s{i}", *{f"s{j}" for j in (i - 1, i // 2) if 0 <= j < i}) for i in range(100)]
    world = a_world(*templates, a_flow(*steps))

    for _ in range(200):
        unfinished = [name for name, state in jobs(world).items() if state != "Completed"]
        if not unfinished:
            break
        for name in unfinished:
            world.change(Job, name, {"status": {"state": {"phase": "Completed"}}})
        world.settle()

    assert phase(world) == "Succeed"
    assert len(jobs(world)) == 100
