"""The examples of flows, as pure decisions."""

from __future__ import annotations

from pathlib import Path

import pytest
from flow_objects import a_world, jobs, set_phase

from volcano.api.batch import Job
from volcano.api.flow import JobFlow
from volcano.api.manifests import load_documents
from volcano.machinery.plan import NetworkProbe, ProbeAnswer

EXAMPLES = Path(__file__).parents[4] / "examples"


@pytest.mark.parametrize("name", ["jobflow-diamond", "jobflow-patch"])
def test_a_flow_of_the_examples_succeeds(name: str):
    world = a_world(*load_documents((EXAMPLES / f"{name}.yaml").read_bytes()))

    for _ in range(10):
        for job, state in jobs(world).items():
            if state != "Completed":
                set_phase(world, job, "Completed")

    (flow,) = world.all(JobFlow)
    assert flow.status.state.phase == "Succeed"
    assert len(jobs(world)) == len(flow.spec.flows)


def test_the_probing_client_starts_when_the_server_answers():
    asked: list[NetworkProbe] = []

    def answer(probe: NetworkProbe) -> ProbeAnswer:
        asked.append(probe)
        return ProbeAnswer(probe.name, ok=True)

    world = a_world(*load_documents((EXAMPLES / "jobflow-probe.yaml").read_bytes()))
    world.answer = answer
    assert set(jobs(world)) == {"probe-server"}
    annotations = {"volcano.sh/job-name": "probe-server", "volcano.sh/task-spec": "web", "volcano.sh/task-index": "0"}
    world.put(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "probe-server-web-0", "annotations": annotations},
            "status": {"phase": "Running", "podIP": "10.0.0.9"},
        }
    )
    set_phase(world, "probe-server", "Running")

    assert set(jobs(world)) == {"probe-server", "probe-client"}
    assert [(probe.host, probe.port, probe.path) for probe in asked] == [("10.0.0.9", 8080, "/healthz")]
    assert world.get(Job, "probe-client") is not None
