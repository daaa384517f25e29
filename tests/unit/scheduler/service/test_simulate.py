"""What if: a pure function of objects, configuration and time."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from volcano.api import core, scheduling
from volcano.api.decode import decode_object
from volcano.app.job_expansion import expand_job
from volcano.scheduler.actions import ACTIONS
from volcano.scheduler.cache import CacheSettings
from volcano.scheduler.framework.config import default_config, parse_config
from volcano.scheduler.service.job_expansion import BadSimulation
from volcano.scheduler.service.registry import load_registry
from volcano.scheduler.service.simulate import Known
from volcano.scheduler.service.simulate import simulate as simulation

PREEMPTING = """
actions: "enqueue, allocate, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""


def simulate(given: Known, request: Any) -> Any:
    """The answer as it is on the wire."""
    return msgspec.to_builtins(simulation(given, request))


def known(*pods: core.Pod, cpu: str = "4", text: str = "") -> Known:
    amounts = {"cpu": cpu, "memory": "8Gi", "pods": "10"}
    read = decode_object
    status = {"allocatable": amounts, "capacity": amounts}
    group = {"metadata": {"name": "low", "namespace": "default"}, "spec": {"minMember": 1, "queue": "default"}}
    return Known(
        settings=CacheSettings(),
        expand_job=expand_job,
        objects={
            core.Node: [read(core.Node, {"metadata": {"name": "n1"}, "status": status})],
            scheduling.Queue: [read(scheduling.Queue, {"metadata": {"name": "default"}, "status": {"state": "Open"}})],
            scheduling.PodGroup: [read(scheduling.PodGroup, {**group, "status": {"phase": "Running"}})] if pods else [],
            core.PriorityClass: [read(core.PriorityClass, {"metadata": {"name": "high"}, "value": 100})],
            core.Pod: list(pods),
        },
        config=parse_config(text, known_actions=ACTIONS) if text else default_config(ACTIONS),
        registry=load_registry(),
        now=datetime(2026, 1, 1, tzinfo=UTC),
    )


def container(cpu: str) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": {"cpu": cpu}}}


def pod(name: str = "p", cpu: str = "1", **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **more.pop("metadata", {})}, "spec": {"containers": [container(cpu)], **more}}


def job(replicas: int, cpu: str = "1", **spec: Any) -> dict[str, Any]:
    task = {"name": "t", "replicas": replicas, "template": {"spec": {"containers": [container(cpu)]}}}
    return {"kind": "Job", "metadata": {"name": "j"}, "spec": {"tasks": [task], **spec}}


def running(name: str) -> core.Pod:
    annotations = {"scheduling.k8s.io/group-name": "low"}
    metadata = {"name": name, "namespace": "default", "uid": name, "annotations": annotations}
    spec = {"containers": [container("2")], "nodeName": "n1", "schedulerName": "volcano"}
    return decode_object(core.Pod, {"metadata": metadata, "spec": spec, "status": {"phase": "Running"}})


@pytest.mark.parametrize("request_", [pod(), {"kind": "Pod", **pod()}, {"pods": [pod()]}, {"items": [pod()]}])
def test_a_pod_that_fits_is_told_its_node(request_):
    request_ = request_ if "spec" not in request_ else {"kind": "Pod", **request_}

    answer = simulate(known(), request_)

    assert answer["pods"] == {"default/p": {"node": "n1"}}
    assert (answer["placed"], answer["asked"]) == (1, 1)


def test_a_job_is_placed_whole_or_not_at_all_and_says_why():
    fitting, too_large = simulate(known(), job(4)), simulate(known(), job(5))

    assert (fitting["placed"], fitting["asked"]) == (4, 4)
    assert (too_large["placed"], too_large["asked"]) == (0, 5)
    assert next(iter(too_large["jobs"].values()))["why"]


def test_a_job_may_start_with_its_minimum():
    assert simulate(known(), job(5, minAvailable=2))["placed"] == 4


def test_a_pod_that_fits_nowhere_is_told_why():
    answer = simulate(known(), {"pods": [pod(nodeSelector={"a": "b"})]})

    assert "node affinity/selector" in answer["pods"]["default/p"]["message"]


def test_who_would_have_to_go_is_told():
    given = known(running("a"), running("b"), text=PREEMPTING)

    answer = simulate(given, job(1, cpu="2", priorityClassName="high"))

    (eviction,) = answer["evictions"]
    assert eviction["reason"] == "preempt"
    assert eviction["for"] == "default/j-t-0"
    assert answer["pods"]["default/j-t-0"] == {"waitsFor": "n1"}


def test_room_that_is_promised_is_not_given_twice():
    given = known(cpu="1")
    waiting = decode_object(
        core.Pod,
        {
            "metadata": {"name": "w", "namespace": "default", "uid": "w"},
            "spec": {"containers": [container("1")], "schedulerName": "volcano"},
            "status": {"phase": "Pending"},
        },
    )
    given.objects[core.Pod].append(waiting)  # type: ignore[attr-defined]
    given.assumed["w"] = "n1"

    assert simulate(given, {"pods": [pod()]})["placed"] == 0


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({}, "neither a Job"),
        ([], "not an object"),
        ({"pods": [1]}, "not an object"),
        ({"pods": [pod(cpu="lots")]}, "quantities"),
        ({"pods": [pod()] * 10001}, "at most"),
        (job(10001), "at most"),
        ({"pods": [pod(), pod()]}, "exists already"),
    ],
)
def test_what_cannot_be_simulated_is_refused_with_a_reason(request_, message):
    with pytest.raises(BadSimulation, match=message):
        simulate(known(), request_)


def test_the_same_question_has_the_same_answer():
    assert simulate(known(), job(4)) == simulate(known(), job(4))


def waiting(name: str, cpu: str) -> core.Pod:
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": name,
        "annotations": {"scheduling.k8s.io/group-name": "high"},
    }
    spec = {"containers": [container(cpu)], "schedulerName": "volcano", "priorityClassName": "high", "priority": 100}
    return decode_object(core.Pod, {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}})


def test_a_podgroup_that_waits_is_told_whom_it_would_preempt():
    world = known(running("a"), running("b"), waiting("h", "2"), text=PREEMPTING)
    spec = {"minMember": 1, "queue": "default", "priorityClassName": "high"}
    body = {"metadata": {"name": "high", "namespace": "default"}, "spec": spec, "status": {"phase": "Inqueue"}}
    world.objects[scheduling.PodGroup].append(decode_object(scheduling.PodGroup, body))

    answer = simulate(world, {"podGroup": "default/high"})

    assert list(answer["pods"]) == ["default/h"]
    assert [each["for"] for each in answer["evictions"]] == ["default/h"]


def test_a_podgroup_nobody_knows_is_refused():
    with pytest.raises(BadSimulation, match="there is no PodGroup default/nope"):
        simulate(known(), {"podGroup": "default/nope"})
