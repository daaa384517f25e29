"""Every row of the state table, as decisions: what each action makes of each phase, and where the counts lead."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from volcano.api.batch import OUT_OF_SYNC_KEY, Action, Phase
from volcano.api.core import Pod
from volcano.api.meta import Key
from volcano.api.scheduling import PodGroup
from volcano.controllers.job import JobController
from volcano.controllers.job.states import (
    STATES,
    JobTally,
    Keep,
    Kill,
    KillTarget,
    Settles,
    effect_of,
    phase_from,
    settled,
)
from volcano.machinery.plan import Delete, Patch
from volcano.testing.pure_jobs import HOLD, JobWorld, a_command, a_job, a_task, flat, policy

P = Phase
JOB_ACTIONS = (Action.RESTART_JOB, Action.ABORT_JOB, Action.TERMINATE_JOB, Action.COMPLETE_JOB, Action.RESUME_JOB)
TARGETED = (Action.RESTART_TASK, Action.RESTART_POD, Action.RESTART_PARTITION)
SYNCING = (P.PENDING, P.RUNNING)
DRAINING = (P.ABORTING, P.COMPLETING, P.TERMINATING)
ENDED = (P.COMPLETED, P.FAILED, P.TERMINATED)

EXPECTED: dict[tuple[Phase, Action], tuple[str, Phase | None, int]] = {
    # (phase, action): what is kept, the phase that follows, retries
    **{(p, Action.RESTART_JOB): ("nothing", P.RESTARTING, 1) for p in SYNCING},
    **{(p, Action.ABORT_JOB): ("finished", P.ABORTING, 0) for p in SYNCING},
    **{(p, Action.TERMINATE_JOB): ("finished", P.TERMINATING, 0) for p in SYNCING},
    **{(p, Action.COMPLETE_JOB): ("finished", P.COMPLETING, 0) for p in SYNCING},
    **{(P.RESTARTING, action): ("nothing", None, 0) for action in JOB_ACTIONS},
    (P.ABORTING, Action.RESUME_JOB): ("finished", P.RESTARTING, 1),
    (P.ABORTED, Action.RESUME_JOB): ("finished", P.RESTARTING, 1),
}


def test_the_table_has_a_row_for_each_phase() -> None:
    assert set(STATES) == set(Phase) - {Phase.NONE}


@pytest.mark.parametrize("phase", STATES)
@pytest.mark.parametrize("action", JOB_ACTIONS)
def test_each_action_on_the_whole_job_has_the_effect_of_the_reference(phase: Phase, action: Action) -> None:
    effect = effect_of(phase, action)

    expected = EXPECTED.get((phase, action))
    if expected is None:
        assert effect is None
        return
    keep, then, retries = expected
    assert effect == Kill(Keep.NOTHING if keep == "nothing" else Keep.FINISHED, then, bool(retries))


@pytest.mark.parametrize("phase", STATES)
@pytest.mark.parametrize("action", TARGETED)
def test_each_targeted_restart_has_the_effect_of_the_reference(phase: Phase, action: Action) -> None:
    expected = {
        P.PENDING: KillTarget(P.RESTARTING, True),
        P.RUNNING: KillTarget(P.RESTARTING, True),
        P.RESTARTING: KillTarget(),
    }

    assert effect_of(phase, action) == expected.get(phase)


@pytest.mark.parametrize("action", [Action.SYNC_JOB, Action.ENQUEUE_JOB, Action.OPEN_QUEUE, "Nonsense", ""])
@pytest.mark.parametrize("phase", STATES)
def test_other_actions_change_nothing_in_any_phase(phase: Phase, action: str) -> None:
    assert effect_of(phase, action) is None


def test_an_absent_or_unknown_phase_counts_as_pending() -> None:
    assert phase_from("") is Phase.PENDING
    assert phase_from("Levitating") is Phase.PENDING


# -- the same rows as whole decisions ---------------------------------------------------------------------------
def in_phase(phase: Phase, *, retries: int = 0, max_retry: int = 5, **spec: Any) -> JobWorld:
    """A job of three pods in some phase: one runs, one has succeeded, one has failed; its PodGroup is there."""
    job = a_job(a_task(replicas=3), maxRetry=max_retry, **spec)
    job["status"] = {
        "state": {"phase": phase, "lastTransitionTime": "2025-12-31T23:00:00Z"},
        "minAvailable": 3,
        "version": 4,
        "retryCount": retries,
        "runningDuration": "1s",
    }
    world = JobWorld(job, graceful=True)
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "uid-j", "controller": True}
    for index, state in enumerate(("Running", "Succeeded", "Failed")):
        notes = {"volcano.sh/job-name": "j", "volcano.sh/task-spec": "worker", "volcano.sh/job-version": "4"}
        metadata = {"name": f"j-worker-{index}", "annotations": notes, "ownerReferences": [owner], "finalizers": [HOLD]}
        world.put({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}, "status": {"phase": state}})
    world.put(
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": "j-uid-j", "ownerReferences": [owner]},
            "spec": {"queue": "default", "minMember": 3},
            "status": {"phase": "Running"},
        }
    )
    return world


def decide(world: JobWorld, *causes: Any) -> list[Any]:
    return flat(JobController().decide(Key("default", "j"), world.mirror, causes))


def commanded(phase: Phase, action: Action, **options: Any) -> tuple[JobWorld, dict[str, Any]]:
    """What the status becomes when a Command is obeyed."""
    world = in_phase(phase, **options)
    world.put(a_command(action))
    for _ in range(2):  # noted, then carried out
        world.apply(tuple(decide(world)))
    return world, world.raw(type(world.job), "j")["status"]


@pytest.mark.parametrize(("phase", "action"), EXPECTED)
def test_a_command_writes_the_intent_of_its_row(phase: Phase, action: Action) -> None:
    keep, then, retries = EXPECTED[phase, action]

    world, status = commanded(phase, action)

    assert status["state"]["phase"] == (then or phase)
    assert status.get("retryCount", 0) == retries
    assert status["version"] == 5
    assert status["terminating"] == (3 if keep == "nothing" else 1)
    assert status.get("succeeded", 0) == status.get("failed", 0) == (0 if keep == "nothing" else 1)
    assert len(world.pods()) == 3, "the intent is written before anything is ended"


@pytest.mark.parametrize(("phase", "action"), EXPECTED)
def test_the_effects_follow_from_the_status_alone(phase: Phase, action: Action) -> None:
    keep, _, _ = EXPECTED[phase, action]
    world, _ = commanded(phase, action)

    plan = decide(world)

    ended = {"j-worker-0", "j-worker-1", "j-worker-2"} if keep == "nothing" else {"j-worker-0"}
    marked = [s.target.key.name for s in plan if isinstance(s, Patch) and OUT_OF_SYNC_KEY in str(s.body)]
    deleted = [s.target.key.name for s in plan if isinstance(s, Delete) and s.target.resource.kind == "Pod"]
    assert set(marked) == set(deleted) == ended
    assert plan.index(next(s for s in plan if isinstance(s, Delete))) >= len(marked), "marked before deleted"
    assert [s.target.key.name for s in plan if isinstance(s, Delete) and s.target.resource.kind == "PodGroup"] == [
        "j-uid-j"
    ]


@pytest.mark.parametrize(
    ("phase", "action"),
    [(p, a) for p in STATES for a in JOB_ACTIONS if (p, a) not in EXPECTED and p is not P.RESTARTING],
)
def test_a_command_that_the_phase_does_not_know_is_dropped(phase: Phase, action: Action) -> None:
    world = in_phase(phase)
    world.put(a_command(action))

    plan = decide(world)

    assert [type(step).__name__ for step in plan] == ["Delete", "Record"]


@pytest.mark.parametrize("phase", DRAINING)
def test_a_draining_phase_ends_once_no_pod_is_left_unfinished(phase: Phase) -> None:
    goal = {P.ABORTING: P.ABORTED, P.COMPLETING: P.COMPLETED, P.TERMINATING: P.TERMINATED}[phase]
    world = in_phase(phase)

    world.settle()
    during = world.phase
    world.reap()

    assert during == phase
    assert world.phase == goal
    assert world.pods() == {"j-worker-1": "Succeeded", "j-worker-2": "Failed"}
    assert (world.job.status.succeeded, world.job.status.failed, world.job.status.terminating) == (1, 1, 0)
    assert world.group is None


@pytest.mark.parametrize("phase", [*ENDED, P.ABORTED])
def test_a_finished_job_keeps_finished_pods_and_nothing_else(phase: Phase) -> None:
    world = in_phase(phase)

    world.settle()
    world.reap()

    assert world.phase == phase
    assert world.pods() == {"j-worker-1": "Succeeded", "j-worker-2": "Failed"}
    assert world.group is None


@pytest.mark.parametrize("phase", ENDED)
def test_cleaning_up_leaves_the_time_of_the_end_alone(phase: Phase) -> None:
    world = in_phase(phase)

    world.wait(100)
    world.reap()

    assert world.job.status.state.last_transition_time == datetime(2025, 12, 31, 23, tzinfo=UTC)


# -- counts -------------------------------------------------------------------------------------------------------
def then(rule: Settles | None) -> Phase | None:
    return rule.then if rule is not None else None


@pytest.mark.parametrize(
    ("tally", "expected"),
    [
        (JobTally(total=3, min_available=2, running=1, pending=2), None),
        (JobTally(total=3, min_available=2, running=2), P.RUNNING),
        (JobTally(total=3, min_available=2, running=1, succeeded=1), P.RUNNING),
        (JobTally(total=3, min_available=2, failed=2), P.RUNNING),
    ],
)
def test_pending_becomes_running_when_the_gang_is_up(tally: JobTally, expected: Phase | None) -> None:
    assert then(settled(P.PENDING, tally)) == expected


@pytest.mark.parametrize(
    ("tally", "expected"),
    [
        (JobTally(total=0, min_available=0), None),
        (JobTally(total=5, min_available=5, min_success=2, succeeded=2, running=3), P.COMPLETED),
        (JobTally(total=5, min_available=5, min_success=2, succeeded=1, running=4), None),
        (JobTally(total=2, min_available=2, succeeded=2), P.COMPLETED),
        (JobTally(total=2, min_available=1, succeeded=1, failed=1), P.COMPLETED),
        (JobTally(total=2, min_available=2, succeeded=1, failed=1), P.FAILED),
        (JobTally(total=2, min_available=1, min_success=2, succeeded=1, failed=1), P.FAILED),
        (JobTally(total=2, min_available=1, succeeded=1, failed=1, a_task_fell_short=True), P.FAILED),
        (JobTally(total=3, min_available=3, pending=1, running=2), P.PENDING),
        (JobTally(total=3, min_available=2, pending=1, running=2), None),
        (JobTally(total=3, min_available=2, pending=2, running=1), P.PENDING),
        (JobTally(total=3, min_available=2, succeeded=1, failed=1, running=1), None),
    ],
)
def test_running_ends_or_falls_back_as_the_counts_say(tally: JobTally, expected: Phase | None) -> None:
    assert then(settled(P.RUNNING, tally)) == expected


SHORT = JobTally(total=3, min_available=3, failed=1, pending=2, unplaced=2, gang_is_short=True)


@pytest.mark.parametrize("phase", [P.PENDING, P.RUNNING])
def test_a_gang_that_can_never_start_again_has_failed(phase: Phase) -> None:
    assert then(settled(phase, SHORT)) == P.FAILED
    assert then(settled(phase, replace(SHORT, pending=1, unplaced=1, succeeded=1))) == P.FAILED
    for hopeful in (
        replace(SHORT, gang_is_short=False),
        replace(SHORT, awaits_policy=True),  # which may restart the job
        replace(SHORT, unplaced=1),  # the other one is about to run
        replace(SHORT, pending=1, unplaced=1, running=1),
        replace(SHORT, pending=1, unplaced=1),  # one is missing and is made again
        replace(SHORT, pending=1, unplaced=1, terminating=1),
    ):
        assert then(settled(phase, hopeful)) != P.FAILED, hopeful


@pytest.mark.parametrize(
    ("tally", "expected"),
    [
        (JobTally(total=3, min_available=3, known_min_available=3, retries=3, max_retry=3), P.FAILED),
        (JobTally(total=3, min_available=3, known_min_available=3, retries=1, terminating=1), None),
        (JobTally(total=3, min_available=2, known_min_available=2, retries=1, terminating=1), P.PENDING),
        (JobTally(total=3, min_available=3, known_min_available=3, retries=1), P.PENDING),
    ],
)
def test_restarting_goes_on_when_there_is_room_or_fails_when_retries_are_used_up(
    tally: JobTally, expected: Phase | None
) -> None:
    assert then(settled(P.RESTARTING, tally)) == expected


def test_a_task_that_falls_short_of_its_own_minimum_fails_the_job() -> None:
    world = JobWorld(a_job(a_task("a", 2, minAvailable=2), a_task("b", 1, minAvailable=0), minAvailable=2)).started()

    world.fail("j-a-0")
    world.succeed("j-a-1", "j-b-0")

    assert world.phase == P.FAILED
    assert world.job.status.state.reason == "TooFewSucceeded"


def test_a_gang_smaller_than_its_tasks_needs_only_enough_successes() -> None:
    world = JobWorld(a_job(a_task("a", 2, minAvailable=2), a_task("b", 2, minAvailable=2), minAvailable=2)).started()

    world.fail("j-a-0", "j-a-1")
    world.succeed("j-b-0", "j-b-1")

    assert world.phase == P.COMPLETED


def test_a_targeted_restart_keeps_version_and_podgroup() -> None:
    world = in_phase(P.RUNNING, policies=[policy("RestartPod", "PodFailed")])

    world.settle()
    world.reap()

    assert world.job.status.version == 4
    assert world.job.status.retry_count == 1
    assert isinstance(world.group, PodGroup)
    assert world.pods() == {"j-worker-0": "Running", "j-worker-1": "Succeeded", "j-worker-2": "Pending"}
    made = world.get(Pod, "j-worker-2")
    assert made is not None and made.annotations["volcano.sh/job-retry-count"] == "1"
