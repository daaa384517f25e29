"""Volcano's admission in the embedded API server: refused objects are not stored, warnings reach the client."""

import asyncio

import msgspec
import pytest

from volcano.admission.chain import WEBHOOKS
from volcano.api.batch import Job
from volcano.api.core import Namespace, Pod
from volcano.api.errors import BadRequest, Invalid, NotFound
from volcano.api.meta import Key
from volcano.api.scheduling import PodGroup, Queue
from volcano.api.scheme import resource_type
from volcano.api.topology import HyperNode
from volcano.app.admission_plug import VolcanoAdmission, may_concern
from volcano.embedded.apiserver.server import ApiServer
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.machinery.client import Client
from volcano.machinery.clock import VirtualClock, run_virtually
from volcano.machinery.transport import InProcess, Request, User

JOBS, QUEUES, PODS = resource_type(Job), resource_type(Queue), resource_type(Pod)
TEMPLATE = {"spec": {"containers": [{"name": "c", "image": "busybox"}]}}


class SlowStore(MemoryStore):
    """Takes its time to write, as one on a disk does."""

    async def write(self, write):
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return await super().write(write)


def story(play, make_store=MemoryStore):
    """Run a coroutine function of (client, records) against a server with admission, on virtual time."""

    async def run():
        store, records = make_store(), []
        server = ApiServer(store, clock=VirtualClock(), admission=VolcanoAdmission(store, record=records.append))
        await server.start()
        client = Client(InProcess(server.handle, User("admin", ("system:masters",))))
        try:
            await play(client, records)
        finally:
            await server.close()

    run_virtually(run())


async def open_queue(client, name="default", **spec):
    await client.create(QUEUES, {"metadata": {"name": name}, "spec": {"weight": 1, **spec}})
    await client.patch(QUEUES, Key("", name), {"status": {"state": "Open"}}, subresource="status")


def a_job(name="j", **spec):
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"tasks": [{"replicas": 2, "template": TEMPLATE}], **spec},
    }


def test_a_job_gets_its_defaults_and_is_stored():
    async def play(client, _records):
        await open_queue(client)

        stored = msgspec.json.decode(await client.create(JOBS, a_job()))

        assert (stored["spec"]["minAvailable"], stored["spec"]["schedulerName"]) == (2, "volcano")
        assert stored["spec"]["tasks"][0]["name"] == "default0"

    story(play)


def test_a_refused_job_is_not_stored_and_the_answer_is_that_of_a_webhook():
    async def play(client, _records):
        await open_queue(client)

        with pytest.raises(BadRequest) as refusal:
            await client.create(JOBS, a_job(queue="ghost"))

        assert refusal.value.status_code == 400
        assert refusal.value.message.startswith('admission webhook "validatejob.volcano.sh" denied the request: ')
        with pytest.raises(NotFound):
            await client.get(Job, Key("default", "j"))

    story(play)


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"minAvailable": -1}, "spec.minAvailable"),
        ({"maxRetry": -1}, "spec.maxRetry"),
        ({"ttlSecondsAfterFinished": -1}, "spec.ttlSecondsAfterFinished"),
        ({"tasks": [{"replicas": -1, "template": TEMPLATE}]}, "spec.tasks[0].replicas"),
        ({"tasks": [{"name": "Bad_Name", "replicas": 1, "template": TEMPLATE}]}, "spec.tasks[0].name"),
        ({"volumes": [{"mountPath": ""}]}, "spec.volumes[0].mountPath"),
    ],
)
def test_the_schema_speaks_before_the_validating_rules(spec, path):
    async def play(client, _records):
        await open_queue(client)

        with pytest.raises(Invalid) as refusal:
            await client.create(JOBS, a_job(**spec))

        assert path in refusal.value.message

    story(play)


def test_a_warning_reaches_the_client():
    async def play(client, _records):
        await open_queue(client)
        body = msgspec.json.encode(
            {"apiVersion": JOBS.api_version, "kind": "Job", **a_job(plugins={"ssh": ["--no-root"]})}
        )

        response = await client.raw(
            Request("POST", JOBS.path("default"), headers={"content-type": "application/json"}, body=body)
        )

        assert response.status == 201
        assert "--no-root" in response.headers.get("warning", "")

    story(play)


def test_a_parent_queue_can_be_deleted_right_after_its_child():
    async def play(client, _records):
        await open_queue(client, "p")
        await open_queue(client, "child", parent="p")
        with pytest.raises(BadRequest, match="1 child queues: child"):
            await client.delete(QUEUES, Key("", "p"))

        await client.delete(QUEUES, Key("", "child"))
        await client.delete(QUEUES, Key("", "p"))

    story(play)


def test_queues_that_are_moved_at_the_same_time_do_not_become_a_cycle():
    async def play(client, _records):
        for name in "abc":
            await open_queue(client, name, parent="root")

        moves = (("a", "b"), ("b", "c"), ("c", "a"))
        answers = await asyncio.gather(
            *(client.patch(QUEUES, Key("", name), {"spec": {"parent": parent}}) for name, parent in moves),
            return_exceptions=True,
        )

        assert sum(isinstance(answer, BadRequest) for answer in answers) == 1
        parents = [(await client.get(Queue, Key("", name))).spec.parent for name in "abc"]
        assert parents.count("root") == 1

    story(play, SlowStore)


def test_a_queue_does_not_get_a_child_while_it_is_deleted():
    async def play(client, _records):
        await open_queue(client, "a", parent="root")

        answers = await asyncio.gather(
            client.delete(QUEUES, Key("", "a")),
            client.create(QUEUES, {"metadata": {"name": "b"}, "spec": {"parent": "a"}}),
            return_exceptions=True,
        )

        assert sum(isinstance(answer, BadRequest) for answer in answers) == 1

    story(play, SlowStore)


def test_a_queue_may_be_made_with_a_status_that_has_no_effect():
    async def play(client, _records):
        for state in ("Open", "Closed"):
            body = {"metadata": {"name": f"q-{state.lower()}"}, "spec": {"weight": 1}, "status": {"state": state}}
            stored = msgspec.json.decode(await client.create(QUEUES, body))
            assert not stored.get("status", {}).get("state")

            await client.patch(QUEUES, Key("", f"q-{state.lower()}"), {"status": {"state": "Closed"}})
            again = await client.get(Queue, Key("", f"q-{state.lower()}"))
            assert again.status.state == ""

    story(play)


def test_a_new_queue_takes_jobs_once_it_is_open():
    async def play(client, _records):
        await client.create(QUEUES, {"metadata": {"name": "fresh"}, "spec": {"weight": 1}})
        with pytest.raises(BadRequest, match="state `Open`"):
            await client.create(JOBS, a_job(queue="fresh"))

        await client.patch(QUEUES, Key("", "fresh"), {"status": {"state": "Open"}}, subresource="status")
        await client.create(JOBS, a_job(queue="fresh"))

    story(play)


def test_a_podgroup_follows_its_namespace():
    async def play(client, _records):
        await open_queue(client, "research")
        annotations = {"scheduling.volcano.sh/queue-name": "research"}
        await client.create(resource_type(Namespace), {"metadata": {"name": "lab", "annotations": annotations}})

        body = {"metadata": {"name": "g", "namespace": "lab"}, "spec": {"minMember": 1}}
        stored = msgspec.json.decode(await client.create(resource_type(PodGroup), body))

        assert stored["spec"]["queue"] == "research"

    story(play)


def test_a_hypernode_without_members_reaches_the_rule():
    async def play(client, _records):
        with pytest.raises(BadRequest, match="member must have at least one member"):
            await client.create(resource_type(HyperNode), {"metadata": {"name": "h"}, "spec": {"tier": 1}})

    story(play)


def test_a_pod_with_a_bad_budget_is_refused_with_an_event_but_not_on_a_dry_run():
    async def play(client, records):
        await asyncio.sleep(0)
        pod = {
            "metadata": {"name": "p", "namespace": "default", "annotations": {"volcano.sh/jdb-min-available": "0"}},
            "spec": {**TEMPLATE["spec"], "schedulerName": "volcano"},
        }

        with pytest.raises(BadRequest, match="must be a positive integer"):
            await client.create(PODS, pod, dryRun="All")
        assert records == []
        with pytest.raises(BadRequest):
            await client.create(PODS, pod)

        assert [(r.reason, r.type, r.regarding.key.name) for r in records] == [("Admit", "Warning", "p")]

    story(play)


def test_the_status_of_a_closing_queue_can_still_be_written():
    async def play(client, _records):
        await open_queue(client, "q")
        await client.patch(QUEUES, Key("", "q"), {"status": {"state": "Closing"}}, subresource="status")

        with pytest.raises(BadRequest, match=r"requestBody\.status\.state"):
            await client.patch(QUEUES, Key("", "q"), {"spec": {"weight": 2}})
        await client.patch(QUEUES, Key("", "q"), {"status": {"state": "Closed"}}, subresource="status")

    story(play)


def test_every_rule_is_about_a_resource_for_which_rules_are_looked_up():
    assert all(may_concern(webhook.resource) for webhook in WEBHOOKS)
