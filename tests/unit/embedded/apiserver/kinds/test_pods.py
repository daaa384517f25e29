"""Pods: what a report about one may not say."""

from __future__ import annotations

from typing import Any

import pytest

from volcano.api.core import Pod
from volcano.api.scheme import resource_type
from volcano.embedded.apiserver.kinds.pods import Pods

ENDED, FAILED, RUNNING = {"terminated": {"exitCode": 0}}, {"terminated": {"exitCode": 3}}, {"running": {}}


def a_pod(state: dict[str, Any], policy: str, field: str = "containerStatuses", **spec: Any) -> dict[str, Any]:
    return {"spec": {"restartPolicy": policy, **spec}, "status": {field: [{"name": "main", "state": state}]}}


def refused(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return [error.path for error in Pods(resource_type(Pod)).validate_status(after, before)]


@pytest.mark.parametrize(("state", "policy"), [(ENDED, "Never"), (FAILED, "Never"), (ENDED, "OnFailure")])
def test_a_container_that_has_ended_for_good_does_not_run_again(state: dict[str, Any], policy: str):
    """Seen in the fault simulation: a report that the network had delayed overwrote a later one."""
    assert refused(a_pod(state, policy), a_pod(RUNNING, policy)) == ["status.containerStatuses[0].state"]
    assert refused(a_pod(state, policy), a_pod(state, policy)) == []


@pytest.mark.parametrize(("state", "policy"), [(ENDED, "Always"), (FAILED, "OnFailure"), (RUNNING, "Never")])
def test_a_container_that_may_be_restarted_runs_again(state: dict[str, Any], policy: str):
    assert refused(a_pod(state, policy), a_pod(RUNNING, policy)) == []


def test_a_sidecar_may_be_restarted():
    sidecar = [{"name": "main", "restartPolicy": "Always"}]
    before, after = (
        a_pod(state, "Never", "initContainerStatuses", initContainers=sidecar) for state in (FAILED, RUNNING)
    )

    assert refused(before, after) == []
