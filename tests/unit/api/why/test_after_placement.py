"""What a node wrote about a placed pod, as a reason."""

from __future__ import annotations

from typing import Any

import pytest

from volcano.api.core import Event, Pod
from volcano.api.decode import decode_object
from volcano.api.why.after_placement import placed_cause
from volcano.api.why.refused_pods import refusal_cause


def a_pod(phase: str = "Pending", **status: Any) -> Pod:
    container = {"name": "c", "image": "app:1", "resources": {"limits": {"memory": "64Mi"}}}
    body = {
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"nodeName": "n1", "containers": [container]},
        "status": {"phase": phase, "containerStatuses": [{"name": "c", **status}]},
    }
    return decode_object(Pod, body)


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    return {"state": {"waiting": {"reason": reason, "message": message}}}


def ended(code: int, reason: str = "Error", **more: Any) -> dict[str, Any]:
    return {"state": {"terminated": {"exitCode": code, "reason": reason, **more}}}


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        (a_pod(**waiting("CreateContainerConfigError", 'secret "creds" not found')), "SecretNotFound"),
        (a_pod(**waiting("CreateContainerConfigError", 'configmap "c" not found')), "ConfigMapNotFound"),
        (a_pod(**waiting("CreateContainerConfigError", "runAsNonRoot")), "ContainerNotConfigured"),
        (a_pod(**waiting("ErrImageNeverPull", "has no command here")), "ImageHasNoCommand"),
        (a_pod(**waiting("ImagePullBackOff", "unknown")), "ImageNotPulled"),
        (a_pod(**waiting("InvalidImageName")), "ImageNameInvalid"),
        (a_pod(**waiting("RunContainerError", "no such file")), "CommandNotFound"),
        (a_pod(**waiting("ContainerCreating")), "ContainersStarting"),
        (a_pod("Failed", **ended(3)), "ExitCode"),
        (a_pod("Failed", **ended(137, "OOMKilled")), "OutOfMemory"),
        (a_pod("Failed", **ended(128, "StartError", message="exec: not found")), "CommandNotFound"),
        (a_pod("Running", state={"running": {}}, ready=False), "NotReadyYet"),
    ],
)
def test_the_state_of_a_container_is_a_reason(pod: Pod, reason: str) -> None:
    found = placed_cause([pod])

    assert found is not None and found.reason == reason


def test_a_container_that_runs_again_and_is_ready_has_no_reason() -> None:
    last = {"terminated": {"exitCode": 1}}

    assert placed_cause([a_pod("Running", state={"running": {}}, ready=True, restartCount=1, lastState=last)]) is None


def test_the_same_exit_code_of_several_pods_is_counted_over_all() -> None:
    found = placed_cause([a_pod("Failed", **ended(3)), a_pod("Failed", **ended(3)), a_pod("Failed", **ended(3))])

    assert found is not None and str(found) == "exit code 3 three times (pod p)"


def test_a_volume_that_names_a_missing_secret_is_told_by_its_event() -> None:
    message = 'MountVolume.SetUp failed for volume "v" : secret "tls" not found'
    about = {"kind": "Pod", "name": "p"}
    event = decode_object(
        Event, {"metadata": {"name": "e"}, "involvedObject": about, "reason": "FailedMount", "message": message}
    )

    found = placed_cause([a_pod(**waiting("ContainerCreating"))], [event], known={"Secret": ["tsl"]})

    assert found is not None and str(found) == 'Secret "tls" not found (pod p on node n1); did you mean tsl?'


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (
            "exceeded quota: rq, requested: pods=1, used: pods=2, limited: pods=2",
            "quota rq: 2 of 2 pods used, 3 needed",
        ),
        ("no PriorityClass with name x was found", "there is no PriorityClass x"),
        (
            'error looking up service account d/sa: serviceaccount "sa" not found',
            "there is no ServiceAccount sa in namespace d",
        ),
        ("unable to create new content in namespace d because it is being terminated", "namespace d is being deleted"),
        ('admission webhook "w" denied the request: no', "the API server refuses its pods: no"),
    ],
)
def test_a_refusal_of_the_api_server_is_a_reason(message: str, text: str) -> None:
    assert str(refusal_cause(message, "d", needed=3)) == text
