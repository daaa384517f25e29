from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.embedded.agent.kit import NOW, Driven, a_pod
from volcano.embedded.agent.lifecycle.pod_events import (
    Assigned,
    Clean,
    ContainerEnded,
    Deleted,
    Exited,
    Forget,
    FoundContainer,
    PodEvent,
    Prepare,
    Prepared,
    Probed,
    Remove,
    ShutDown,
    Start,
    Started,
    Stop,
    Unprepared,
    Unstarted,
    Vanished,
    WakeAt,
    Woken,
)
from volcano.embedded.agent.lifecycle.pod_lifecycle import begin, step
from volcano.embedded.agent.lifecycle.pod_record import ContainerRole, ContainerRunning, ContainerWaiting
from volcano.embedded.agent.lifecycle.pod_status import phase_of, status_of
from volcano.embedded.agent.lifecycle.restart_policy import backoff
from volcano.embedded.agent.lifecycle.resume import LOST_REASON


def test_a_fresh_pod_is_prepared_before_anything_starts():
    pod = Driven(a_pod())

    assert pod.commands == [Prepare()]
    assert phase_of(pod.record) == "Pending"


def test_a_prepared_pod_starts_all_its_containers_at_once():
    pod = Driven(a_pod("a", "b"))

    commands = pod.tell(Prepared("10.0.0.1"))

    assert commands == (Start("a", 0), Start("b", 0))


def test_a_pod_succeeds_when_every_container_has():
    pod = Driven(a_pod("a", "b"))
    pod.start_all()

    pod.exits("a")
    assert phase_of(pod.record) == "Running"
    commands = pod.exits("b")

    assert phase_of(pod.record) == "Succeeded"
    assert Clean() in commands


def test_a_pod_fails_when_one_container_has_and_none_comes_again():
    pod = Driven(a_pod("a", "b"))
    pod.start_all()

    pod.exits("a", 3)
    pod.exits("b")

    assert phase_of(pod.record) == "Failed"


def test_a_failed_container_comes_again_at_once_then_after_ten_seconds_then_twenty():
    pod = Driven(a_pod(restartPolicy="OnFailure"))
    pod.start_all()

    assert Start("main", 1) in pod.exits(code=1)
    pod.started()
    commands = pod.exits(code=1)
    assert WakeAt(NOW + timedelta(seconds=10)) in commands
    assert isinstance(pod.record.containers[0].state, ContainerWaiting)
    assert pod.record.containers[0].state.reason == "CrashLoopBackOff"

    pod.wait(10)
    assert Start("main", 2) in pod.tell(Woken())
    pod.started()
    assert WakeAt(pod.now + timedelta(seconds=20)) in pod.exits(code=1)


def test_a_container_that_ends_well_does_not_come_again_on_failure_only():
    pod = Driven(a_pod(restartPolicy="OnFailure"))
    pod.start_all()

    pod.exits(code=0)

    assert phase_of(pod.record) == "Succeeded"


def test_a_container_comes_again_always():
    pod = Driven(a_pod(restartPolicy="Always"))
    pod.start_all()

    commands = pod.exits(code=0)

    assert Start("main", 1) in commands


def test_a_crash_after_a_long_run_is_forgiven():
    pod = Driven(a_pod(restartPolicy="Always"))
    pod.start_all()
    pod.exits(code=1)
    pod.started()
    started = pod.now
    pod.wait(3600)

    commands = pod.tell(Exited("main", 1, ContainerEnded(1, started, pod.now)))

    assert Start("main", 2) in commands


@pytest.mark.parametrize(("crashes", "seconds"), [(0, 0), (1, 10), (2, 20), (5, 160), (6, 300), (60, 300)])
def test_the_back_off_doubles_up_to_five_minutes(crashes: int, seconds: int):
    assert backoff(crashes) == timedelta(seconds=seconds)


def with_inits(**spec: object):
    inits = [{"name": "one", "image": "x"}, {"name": "two", "image": "x"}]
    return a_pod(initContainers=inits, **spec)


def test_init_containers_run_one_after_another_and_then_the_others():
    pod = Driven(with_inits())

    assert pod.tell(Prepared("10.0.0.1")) == (Start("one", 0),)
    pod.started()
    assert pod.exits("one") == (Start("two", 0),)
    pod.started()
    assert pod.exits("two") == (Start("main", 0),)


def test_an_init_container_that_fails_fails_the_pod_that_never_restarts():
    pod = Driven(with_inits())
    pod.start_all()

    pod.exits("one", 1)

    assert phase_of(pod.record) == "Failed"


def test_an_init_container_that_fails_comes_again_in_a_pod_that_restarts():
    pod = Driven(with_inits(restartPolicy="Always"))
    pod.start_all()

    assert Start("one", 1) in pod.exits("one", 1)


def a_sidecar_pod(**spec: object):
    inits = [{"name": "side", "image": "x", "restartPolicy": "Always"}, {"name": "init", "image": "x"}]
    return a_pod(initContainers=inits, **spec)


def test_a_sidecar_only_needs_to_have_started():
    pod = Driven(a_sidecar_pod())
    pod.tell(Prepared("10.0.0.1"))

    pod.started()

    assert Start("init", 0) in pod.commands or pod.record.container("init").is_live


def test_a_sidecar_is_stopped_when_the_others_are_done():
    pod = Driven(a_sidecar_pod())
    pod.start_all()
    pod.started()
    pod.exits("init")
    pod.started()

    commands = pod.exits("main")

    assert commands == (Stop("side", 0, timedelta(seconds=30)),)
    assert phase_of(pod.record) == "Running"
    pod.exits("side", 143)
    assert phase_of(pod.record) == "Succeeded"


def test_a_sidecar_that_ends_comes_again_while_the_pod_runs():
    pod = Driven(a_sidecar_pod())
    pod.start_all()
    pod.started()

    assert Start("side", 1) in pod.exits("side", 0)


def test_deleting_stops_what_runs_and_removes_the_pod_at_the_end():
    pod = Driven(a_pod("a", "b"))
    pod.start_all()

    commands = pod.tell(Deleted(timedelta(seconds=5)))
    assert commands == (Stop("a", 0, timedelta(seconds=5)), Stop("b", 0, timedelta(seconds=5)))

    pod.exits("a", 143)
    commands = pod.exits("b", 143)
    assert commands == (Clean(), Remove())
    assert phase_of(pod.record) == "Failed"


def test_asking_again_with_a_shorter_grace_stops_sooner():
    pod = Driven(a_pod())
    pod.start_all()
    pod.tell(Deleted(timedelta(seconds=30)))

    assert Stop("main", 0, timedelta(0)) in pod.tell(Deleted(timedelta(0)))


def test_a_container_that_is_just_starting_is_stopped_once_it_has():
    pod = Driven(a_pod())
    pod.tell(Prepared("10.0.0.1"))

    assert pod.tell(Deleted(timedelta(seconds=5))) == ()
    assert pod.tell(Started("main", 0, NOW)) == (Stop("main", 0, timedelta(seconds=5)),)


def test_a_pod_deleted_before_it_is_prepared_is_simply_removed():
    pod = Driven(a_pod())

    assert pod.tell(Deleted(timedelta(seconds=5))) == (Clean(), Remove())


def test_a_pod_that_vanished_is_ended_and_forgotten():
    pod = Driven(a_pod())
    pod.start_all()

    commands = pod.tell(Vanished())
    assert [type(each) for each in commands] == [Stop]

    assert pod.exits(code=137) == (Clean(), Forget())


def test_a_finished_pod_that_vanishes_is_forgotten():
    pod = Driven(a_pod())
    pod.start_all()
    pod.exits()

    assert pod.tell(Vanished()) == (Forget(),)


def test_a_pod_past_its_deadline_fails():
    pod = Driven(a_pod(activeDeadlineSeconds=5))
    assert WakeAt(NOW + timedelta(seconds=5)) in pod.commands
    pod.start_all()
    pod.wait(5)

    pod.tell(Woken())
    pod.exits(code=143)

    status = status_of(pod.pod, pod.record, pod.now, host_address="h", runtime="process")
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")


def test_a_node_that_shuts_down_fails_pods_that_never_restart():
    pod = Driven(a_pod())
    pod.start_all()

    pod.tell(ShutDown(timedelta(seconds=10)))
    pod.exits(code=143)

    status = status_of(pod.pod, pod.record, pod.now, host_address="h", runtime="process")
    assert (status["phase"], status["reason"]) == ("Failed", "Terminated")


def test_a_node_that_shuts_down_leaves_pods_that_restart_to_its_next_start():
    pod = Driven(a_pod(restartPolicy="Always"))
    pod.start_all()

    pod.tell(ShutDown(timedelta(seconds=10)))
    commands = pod.exits(code=143)

    assert commands == ()
    assert phase_of(pod.record) == "Running" and not pod.record.has_live


def test_a_volume_that_is_missing_is_tried_again():
    pod = Driven(a_pod())
    commands = pod.tell(Unprepared("FailedMount", "no such config map"))
    wake = next(each for each in commands if isinstance(each, WakeAt))
    pod.now = wake.at

    assert pod.tell(Woken()) == (Prepare(),)


def test_a_container_with_a_mistake_waits_and_is_tried_again():
    pod = Driven(a_pod())
    pod.tell(Prepared("10.0.0.1"))

    pod.tell(Unstarted("main", 0, "CreateContainerConfigError", "no key"))

    assert pod.record.containers[0].state == ContainerWaiting(
        "CreateContainerConfigError", "no key", NOW + timedelta(seconds=10)
    )
    pod.wait(10)
    assert pod.tell(Woken()) == (Start("main", 0),)


def test_a_missing_program_counts_as_a_failed_run():
    pod = Driven(a_pod())
    pod.tell(Prepared("10.0.0.1"))

    pod.tell(Unstarted("main", 0, "StartError", "no such file", is_run=True))

    assert phase_of(pod.record) == "Failed"


def test_an_answer_to_an_earlier_attempt_changes_nothing():
    pod = Driven(a_pod(restartPolicy="Always"))
    pod.start_all()
    pod.exits(code=1)
    pod.started()
    before = pod.record

    pod.tell(Exited("main", 0, ContainerEnded(9, NOW, NOW)))

    assert pod.record.containers == before.containers


def probed(**probes: object):
    container = {"name": "main", "image": "x", **probes}
    return a_pod(containers=[container], restartPolicy="Always")


def test_a_pod_is_ready_once_its_readiness_probe_says_so():
    pod = Driven(probed(readinessProbe={"exec": {"command": ["true"]}}))
    pod.start_all()
    assert ready(pod) == "False"

    pod.tell(Probed("main", 0, "readiness", ok=True))
    assert ready(pod) == "True"

    pod.tell(Probed("main", 0, "readiness", ok=False))
    assert ready(pod) == "False"


def ready(pod: Driven) -> str:
    status = status_of(pod.pod, pod.record, pod.now, host_address="h", runtime="process")
    return next(each["status"] for each in status["conditions"] if each["type"] == "Ready")


def test_a_container_that_is_no_longer_alive_is_stopped_and_comes_again():
    pod = Driven(probed(livenessProbe={"exec": {"command": ["true"]}}))
    pod.start_all()

    commands = pod.tell(Probed("main", 0, "liveness", ok=False, message="no answer"))
    assert Stop("main", 0, timedelta(seconds=30)) in commands
    assert not [each for each in pod.tell(Probed("main", 0, "liveness", ok=False)) if isinstance(each, Stop)]

    assert Start("main", 1) in pod.exits(code=143)


# -- an agent that starts again -----------------------------------------------------------------------------------
def running_status(**more: object):
    state = {"running": {"startedAt": "2025-12-31T23:00:00Z"}}
    return {
        "phase": "Running",
        "podIP": "10.0.0.1",
        "startTime": "2025-12-31T23:00:00Z",
        "containerStatuses": [{"name": "main", "restartCount": 2, "state": state, **more}],
    }


def test_a_container_that_still_runs_is_adopted():
    found = Assigned((FoundContainer("main", 2, NOW - timedelta(hours=1)),), "10.0.0.1")

    pod = Driven(a_pod(status=running_status()), found)

    assert pod.commands == []
    assert isinstance(pod.record.containers[0].state, ContainerRunning)
    assert pod.record.start_time == NOW - timedelta(hours=1)


def test_a_container_that_ended_meanwhile_is_reported():
    ended = ContainerEnded(4, NOW - timedelta(hours=1), NOW - timedelta(minutes=1))
    found = Assigned((FoundContainer("main", 2, ended.started_at, ended),))

    pod = Driven(a_pod(status=running_status()), found)

    assert phase_of(pod.record) == "Failed"
    told = pod.record.containers[0].ended
    assert told is not None and (told.exit_code, told.reason) == (4, "Error")


def test_a_container_nobody_can_find_is_lost():
    pod = Driven(a_pod(status=running_status()))

    ended = pod.record.containers[0].ended
    assert ended is not None and (ended.exit_code, ended.reason) == (137, LOST_REASON)
    assert phase_of(pod.record) == "Failed"


def test_a_lost_container_of_a_pod_that_restarts_comes_again():
    pod = Driven(a_pod(status=running_status(), restartPolicy="Always"))

    commands = pod.tell(Prepared("10.0.0.1"))

    assert [each for each in commands if isinstance(each, (Start, WakeAt))]
    assert pod.record.containers[0].attempt == 3


def test_a_finished_pod_stays_as_it_was():
    state = {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": "2025-12-31T23:00:00Z"}}
    status = {"phase": "Succeeded", "containerStatuses": [{"name": "main", "state": state}]}

    pod = Driven(a_pod(status=status))

    assert pod.commands == [Clean()]
    assert phase_of(pod.record) == "Succeeded"


# -- whatever happens ---------------------------------------------------------------------------------------------
NAMES = ("side", "init", "main", "more")


def any_event() -> st.SearchStrategy[PodEvent]:
    names, attempts = st.sampled_from(NAMES), st.integers(0, 3)
    codes = st.sampled_from((0, 1, 137))
    return st.one_of(
        st.just(Prepared("10.0.0.1")),
        st.just(Unprepared("FailedMount", "x")),
        st.builds(lambda n, a: Started(n, a, NOW), names, attempts),
        st.builds(lambda n, a, run: Unstarted(n, a, "Oops", "x", run), names, attempts, st.booleans()),
        st.builds(lambda n, a, c: Exited(n, a, ContainerEnded(c, NOW, NOW)), names, attempts, codes),
        st.builds(lambda n, a, ok: Probed(n, a, "liveness", ok), names, attempts, st.booleans()),
        st.builds(lambda s: Deleted(timedelta(seconds=s)), st.integers(0, 30)),
        st.just(Vanished()),
        st.just(ShutDown(timedelta(seconds=5))),
        st.just(Woken()),
    )


@given(st.lists(any_event(), max_size=30), st.sampled_from(("Never", "OnFailure", "Always")))
def test_no_order_of_events_breaks_what_is_promised(events: list[PodEvent], policy: str):
    inits = [{"name": "side", "image": "x", "restartPolicy": "Always"}, {"name": "init", "image": "x"}]
    pod = a_pod("main", "more", initContainers=inits, restartPolicy=policy, activeDeadlineSeconds=100)
    now = NOW
    record, _ = begin(pod, Assigned(), now)
    asked: set[tuple[str, int]] = set()
    phase = ""
    for event in events:
        now += timedelta(seconds=7)
        record, commands = step(pod, record, event, now)
        for command in commands:
            if isinstance(command, Start):
                assert (command.container, command.attempt) not in asked or any(
                    isinstance(each, Unstarted) for each in events
                ), "a run is started once"
                asked.add((command.container, command.attempt))
                assert record.ending is None, "nothing starts in a pod that ends"
            if isinstance(command, Start) and command.container in ("main", "more"):
                init = record.container("init")
                assert init is not None and isinstance(init.state, ContainerEnded) and init.state.exit_code == 0
        if phase:
            assert record.phase == phase, "what is finished stays as it is"
        phase = record.phase
        if record.is_finished:
            assert not record.has_live
        status = status_of(pod, record, now, host_address="h", runtime="process")
        assert status["phase"] in ("Pending", "Running", "Succeeded", "Failed")
        assert {each.role for each in record.containers} == {
            ContainerRole.SIDECAR,
            ContainerRole.INIT,
            ContainerRole.MAIN,
        }
