"""The reason that `vcctl explain` gives is the one that stands on the PodGroup, its pods and its Job, in conditions and
in events, and in lists of jobs."""

import pytest

from tests.stories.builders import a_job, a_queue, a_task
from tests.system.explain.asking import EVENTS, FOUR_CPUS, explained, with_spec
from volcano.api.jobs.why import decode_why
from volcano.api.meta import Key
from volcano.api.scheduling import WHY_ANNOTATION, Queue
from volcano.api.scheme import find_resource_type
from volcano.cli.job import job_table, wide_table
from volcano.testing.system import on_virtual_time

JOBS = find_resource_type("batch.volcano.sh", "Job")
CLAIM = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
CASES = {
    "too-large": a_job("too-large", a_task(cpu="64")),
    "no-label": a_job("no-label", with_spec(a_task(replicas=2), nodeSelector={"pool": "gpu"})),
    "no-claim": a_job("no-claim", with_spec(a_task(), volumes=CLAIM)),
    "gated": a_job("gated", with_spec(a_task(), schedulingGates=[{"name": "example.com/check"}])),
    "other": a_job("other", schedulerName="volcanoo"),
    "robot": a_job("robot", with_spec(a_task(), serviceAccountName="builder")),
    "turn": a_job("turn", a_task(replicas=2, cpu="2")),
    "closed": a_job("closed", a_task(cpu="4"), queue="q"),
}


async def events_about(system, kind, name):
    listed = await system.client.list_json(EVENTS, "default")
    return [event["message"] for event in listed["items"] if event["involvedObject"]["kind"] == kind
            and event["involvedObject"]["name"].startswith(name)]  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_same_reason_stands_everywhere(name):
    @on_virtual_time(nodes=1, capacity=FOUR_CPUS)
    async def story(system):
        await system.apply(a_job("first", a_task(cpu="1")))
        await system.until(lambda: system.phase("first") == "Running")
        await system.apply(a_queue("q"))
        await system.apply(CASES[name])
        if name == "closed":
            await system.patch(Queue, "q", {"status": {"state": "Closed"}}, subresource="status")
        await system.settle()

        found = await explained(system, name)

        group = next(each for each in system.groups() if each.name.startswith(name))
        why = decode_why(group.annotations[WHY_ANNOTATION])
        assert (why.reason, why.tier, why.text) == (found.reason, found.tier, found.text)
        (condition,) = (each for each in group.status.conditions if each.type == "Unschedulable")
        assert condition.reason in ("NotEnoughResources", "NotEnoughTasks")
        assert condition.message.endswith(found.text)
        assert any(message.endswith(found.text) for message in await events_about(system, "PodGroup", group.name))
        assert (system.job(name).status.state.reason, system.job(name).status.state.message) == (
            found.reason,
            found.text,
        )
        for pod in system.pods(name):
            if name not in ("gated", "other"):  # others decide about these pods
                (scheduled,) = (each for each in pod.status.conditions if each.type == "PodScheduled")
                assert scheduled.message.startswith(found.text)
        body = await system.client.get_json(JOBS, Key("default", name))
        assert found.text in wide_table([body], job_table([body], [body], everywhere=False))
