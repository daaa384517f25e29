"""A pod in one word, its ready containers and restarts: one table, both rules."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from volcano.api.pods.state import summarize

NOW = datetime(2026, 1, 1, 1, tzinfo=UTC)
RUNNING = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
COMPLETED = {"terminated": {"exitCode": 0, "reason": "Completed"}}
FAILED = {"terminated": {"exitCode": 1, "reason": "Error"}}
READY = {"type": "Ready", "status": "True"}
INITIALIZED = {"type": "Initialized", "status": "True"}


def at(name: str, state: dict, *, ready: bool = False, restarts: int = 0, ended: str = "", **more) -> dict:
    last = {"terminated": {"exitCode": 1, "finishedAt": ended}} if ended else {}
    return {"name": name, "state": state, "ready": ready, "restartCount": restarts, "lastState": last, **more}


def a_pod(*mains: dict, init: tuple = (), sidecars: tuple = (), deleting: bool = False, **status) -> dict:
    names = [each["name"] for each in mains] or ["a"]
    inits = [{"name": each["name"]} for each in init] + [
        {"name": each["name"], "restartPolicy": "Always"} for each in sidecars
    ]
    return {
        "metadata": {"name": "p", **({"deletionTimestamp": "2026-01-01T00:30:00Z"} if deleting else {})},
        "spec": {"containers": [{"name": name} for name in names], "initContainers": inits},
        "status": {
            "phase": "Running",
            "containerStatuses": list(mains),
            "initContainerStatuses": [*init, *sidecars],
            **status,
        },
    }


CASES = {
    "the phase": (a_pod(phase="Pending"), "Pending", "0/1"),
    "the reason says more than the phase": (a_pod(phase="Failed", reason="Evicted"), "Evicted", "0/1"),
    "gated": (
        a_pod(phase="Pending", conditions=[{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]),
        "SchedulingGated",
        "0/1",
    ),
    "running": (a_pod(at("a", RUNNING, ready=True), conditions=[READY]), "Running", "1/1"),
    "waiting": (a_pod(at("a", {"waiting": {"reason": "CrashLoopBackOff"}})), "CrashLoopBackOff", "0/1"),
    "waiting for no reason": (a_pod(at("a", {"waiting": {}})), "Running", "0/1"),
    "ended with a reason": (a_pod(at("a", FAILED)), "Error", "0/1"),
    "ended by a signal": (a_pod(at("a", {"terminated": {"signal": 9, "exitCode": 137}})), "Signal:9", "0/1"),
    "ended with a code": (a_pod(at("a", {"terminated": {"exitCode": 3}})), "ExitCode:3", "0/1"),
    "the first container gives the word": (
        a_pod(at("a", FAILED), at("b", {"waiting": {"reason": "X"}})),
        "Error",
        "0/2",
    ),
    "one completed, the others run and are ready": (
        a_pod(at("a", COMPLETED), at("b", RUNNING, ready=True), conditions=[READY]),
        "Running",
        "1/2",
    ),
    "one completed, the pod is not ready": (a_pod(at("a", COMPLETED), at("b", RUNNING, ready=True)), "NotReady", "1/2"),
    "one failed before one that completed": (a_pod(at("a", FAILED), at("b", COMPLETED)), "Error", "0/2"),
    "init containers run": (
        a_pod(init=(at("i", COMPLETED), at("j", RUNNING))),
        "Init:1/2",
        "0/1",
    ),
    "an init container waits": (
        a_pod(init=(at("i", {"waiting": {"reason": "ErrImagePull"}}),)),
        "Init:ErrImagePull",
        "0/1",
    ),
    "an init container is yet to start": (
        a_pod(init=(at("i", {"waiting": {"reason": "PodInitializing"}}),)),
        "Init:0/1",
        "0/1",
    ),
    "an init container failed": (a_pod(init=(at("i", {"terminated": {"exitCode": 2}}),)), "Init:ExitCode:2", "0/1"),
    "a sidecar that has started is past initialization": (
        a_pod(at("a", RUNNING, ready=True), sidecars=(at("s", RUNNING, ready=True, started=True),), conditions=[READY]),
        "Running",
        "2/2",
    ),
    "a sidecar that has not started": (a_pod(sidecars=(at("s", RUNNING, started=False),)), "Init:0/1", "0/2"),
    "initialized, though an init container is seen running": (
        a_pod(at("a", FAILED), init=(at("i", RUNNING),), conditions=[INITIALIZED]),
        "Error",
        "0/1",
    ),
    "being deleted": (a_pod(at("a", RUNNING, ready=True), deleting=True), "Terminating", "1/1"),
    "being deleted after its end": (a_pod(at("a", COMPLETED), phase="Succeeded", deleting=True), "Completed", "0/1"),
    "being deleted on a lost node": (a_pod(reason="NodeLost", deleting=True), "Unknown", "0/1"),
}


@pytest.mark.parametrize("counts_failures", [True, False], ids=["kubectl", "vcctl"])
@pytest.mark.parametrize(("pod", "state", "ready"), CASES.values(), ids=CASES)
def test_a_pod_in_one_word(pod: dict, state: str, ready: str, counts_failures: bool):
    summary = summarize(pod, counts_failures=counts_failures)

    assert (summary.state, summary.ready_text) == (state, ready)


@pytest.mark.parametrize(
    ("counts_failures", "state"), [(True, "Error"), (False, "Completed")], ids=["kubectl", "vcctl"]
)
def test_a_failure_behind_a_completed_container_is_shown_by_kubectl_and_not_by_vcctl(counts_failures: bool, state: str):
    pod = a_pod(at("a", COMPLETED), at("b", FAILED))

    assert summarize(pod, counts_failures=counts_failures).state == state


@pytest.mark.parametrize(
    ("pod", "restarts"),
    [
        (a_pod(at("a", RUNNING)), "0"),
        (a_pod(at("a", RUNNING, restarts=2)), "2"),
        (a_pod(at("a", RUNNING, restarts=2, ended="2026-01-01T00:50:00Z")), "2 (10m ago)"),
        (
            a_pod(
                at("a", RUNNING, restarts=1, ended="2026-01-01T00:50:00Z"),
                at("b", RUNNING, restarts=1, ended="2026-01-01T00:55:00Z"),
            ),
            "2 (5m ago)",
        ),
        (a_pod(init=(at("i", RUNNING, restarts=3),)), "3"),
        (a_pod(at("a", RUNNING, restarts=1), init=(at("i", COMPLETED, restarts=3),)), "1"),
        (a_pod(at("a", RUNNING, restarts=1), sidecars=(at("s", RUNNING, restarts=2, started=True),)), "3"),
    ],
    ids=["none", "no time", "with time", "the last", "while initializing", "init is over", "sidecars go on counting"],
)
def test_restarts(pod: dict, restarts: str):
    assert summarize(pod).restarts.text(NOW) == restarts


@pytest.mark.parametrize("status", [None, [], {"phase": "Running", "containerStatuses": 5}, {"phase": 7}])
def test_a_pod_that_cannot_be_read_has_its_phase_at_most(status: object):
    assert summarize({"metadata": {}, "status": status}).state in ("", "Running")
