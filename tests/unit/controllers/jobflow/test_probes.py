"""Steps that start once what they wait for answers."""

from __future__ import annotations

from datetime import timedelta

import pytest
from flow_objects import a_flow, a_step, a_template, a_world, jobs, set_phase

from volcano.api.core import Pod
from volcano.machinery.plan import NetworkProbe, ProbeAnswer
from volcano.testing.pure_world import PureWorld

HTTP = {
    "httpGetList": [{"taskName": "work", "path": "healthz", "port": 8080, "httpHeader": {"name": "X", "value": "y"}}]
}
TCP = {"tcpSocketList": [{"taskName": "work", "port": 9000}]}
PERIOD = timedelta(seconds=5)


def a_pod(index: int, *, phase: str = "Running", ip: str = "10.0.0.1") -> dict:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"flow-server-work-{index}",
            "annotations": {
                "volcano.sh/job-name": "flow-server",
                "volcano.sh/task-spec": "work",
                "volcano.sh/task-index": str(index),
            },
        },
        "status": {"phase": phase, "podIP": ip if phase == "Running" else ""},
    }


class Network:
    """Who answers, and what was asked."""

    def __init__(self, *up: str) -> None:
        self.up = set(up)
        self.asked: list[NetworkProbe] = []

    def __call__(self, probe: NetworkProbe) -> ProbeAnswer:
        self.asked.append(probe)
        return ProbeAnswer(probe.name, probe.host in self.up, "" if probe.host in self.up else "refused")


def a_probing_world(probe: dict, network: Network, *pods: dict, replicas: int = 1) -> PureWorld:
    steps = (a_step("server"), a_step("client", "server", probe=probe))
    templates = (a_template("server", replicas=replicas), a_template("client"))
    world = a_world(*templates, a_flow(*steps), probe_period=PERIOD)
    world.answer = network
    for pod in pods:
        world.put(pod)
    set_phase(world, "flow-server", "Running")
    return world


@pytest.mark.parametrize("probe", [HTTP, TCP])
def test_a_step_starts_when_the_probe_is_answered(probe: dict):
    network = Network()
    world = a_probing_world(probe, network, a_pod(0))
    assert "flow-client" not in jobs(world)

    world.advance(timedelta(seconds=20))
    assert "flow-client" not in jobs(world)
    assert 4 <= len(network.asked) <= 6

    network.up.add("10.0.0.1")
    world.advance(PERIOD)
    assert "flow-client" in jobs(world)


def test_what_is_asked_of_a_pod_over_http():
    network = Network("10.0.0.1")

    a_probing_world(HTTP, network, a_pod(0))

    (asked,) = network.asked
    assert (asked.ask, asked.host, asked.port, asked.path) == ("http", "10.0.0.1", 8080, "/healthz")
    assert asked.headers == (("X", "y"),)


def test_every_pod_of_the_task_must_answer():
    network = Network("10.0.0.1")
    world = a_probing_world(TCP, network, a_pod(0), a_pod(1, ip="10.0.0.2"), replicas=2)
    assert "flow-client" not in jobs(world)

    network.up.add("10.0.0.2")
    world.advance(PERIOD)

    assert "flow-client" in jobs(world)


def test_nobody_is_asked_before_all_pods_run():
    network = Network("10.0.0.1")
    world = a_probing_world(TCP, network, a_pod(0), a_pod(1, phase="Pending"), replicas=2)
    world.advance(timedelta(seconds=20))
    assert network.asked == []

    world.change(Pod, "flow-server-work-1", {"status": {"phase": "Running", "podIP": "10.0.0.1"}})
    world.advance(PERIOD)

    assert "flow-client" in jobs(world)


def test_a_probe_is_not_waited_for_once_what_it_asks_about_is_completed():
    world = a_probing_world(HTTP, Network())

    set_phase(world, "flow-server", "Completed")

    assert "flow-client" in jobs(world)


def test_http_and_tcp_together():
    network = Network()
    world = a_probing_world({**HTTP, **TCP}, network, a_pod(0))
    assert {probe.ask for probe in network.asked} == {"http", "tcp"}

    network.up.add("10.0.0.1")
    world.advance(PERIOD)

    assert "flow-client" in jobs(world)


@pytest.mark.parametrize(
    ("wanted", "counts", "starts"),
    [
        ("Running", {"Running": 2}, True),
        ("Running", {"Running": 1, "Pending": 1}, False),
        ("Running", {"Running": 1, "Succeeded": 1}, True),
        ("Succeeded", {"Running": 2}, False),
        ("Succeeded", {"Succeeded": 2}, True),
        ("Failed", {"Failed": 2}, True),
    ],
)
def test_a_step_may_wait_for_the_phase_of_a_task(wanted: str, counts: dict, starts: bool):
    probe = {"taskStatusList": [{"taskName": "work", "phase": wanted}]}
    world = a_probing_world(probe, Network(), replicas=2)

    set_phase(world, "flow-server", "Running", taskStatusCount={"work": {"phase": counts}})

    assert ("flow-client" in jobs(world)) is starts


def test_a_task_nobody_has_is_never_ready():
    world = a_probing_world({"taskStatusList": [{"taskName": "typo", "phase": "Running"}]}, Network())

    set_phase(world, "flow-server", "Running", taskStatusCount={"work": {"phase": {"Running": 1}}})

    assert "flow-client" not in jobs(world)


def test_a_probe_that_waits_is_taken_up_again_after_a_restart():
    network = Network()
    world = a_probing_world(TCP, network, a_pod(0))
    network.up.add("10.0.0.1")

    world.restart()
    world.settle()

    assert "flow-client" in jobs(world)


def test_a_failed_server_fails_the_flow_and_nobody_is_asked_any_more():
    network = Network()
    world = a_probing_world(TCP, network, a_pod(0))

    set_phase(world, "flow-server", "Failed")
    asked = len(network.asked)
    world.advance(timedelta(minutes=1))

    assert len(network.asked) == asked
    assert "flow-client" not in jobs(world)
