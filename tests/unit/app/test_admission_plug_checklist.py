"""What the e2e suites rely on, row by row (admission.md, section 12), through the embedded server: who answers, and that
nothing refused is stored."""

import msgspec
import pytest

from volcano.api.batch import Job
from volcano.api.errors import ApiError, BadRequest, Invalid
from volcano.api.meta import Key
from volcano.api.scheduling import PodGroup, Queue
from volcano.api.scheme import resource_type
from volcano.api.topology import HyperNode
from volcano.app.admission_plug import VolcanoAdmission
from volcano.embedded.apiserver.server import ApiServer
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.machinery.client import Client
from volcano.machinery.clock import VirtualClock, run_virtually
from volcano.machinery.transport import InProcess, User

TEMPLATE = {"spec": {"containers": [{"name": "c", "image": "busybox"}]}}
TASK = {"name": "t", "replicas": 1, "template": TEMPLATE}
SCHEMA, RULE = Invalid, BadRequest


def story(play):
    async def run():
        store = MemoryStore()
        server = ApiServer(store, clock=VirtualClock(), admission=VolcanoAdmission(store))
        await server.start()
        client = Client(InProcess(server.handle, User("admin", ("system:masters",))))
        try:
            await queue(client, "default", "Open")
            await play(client)
        finally:
            await server.close()

    run_virtually(run())


async def queue(client, name, state="", **spec):
    row = resource_type(Queue)
    await client.create(row, {"metadata": {"name": name}, "spec": {"weight": 1, **spec}})
    if state:
        await client.patch(row, Key("", name), {"status": {"state": state}}, subresource="status")


def refuses(kind, spec, by, *fragments):
    async def play(client):
        row = resource_type(kind)
        await queue(client, "closed", "Closed")
        await queue(client, "root", "Open")
        await queue(client, "parent", "Open")
        await queue(client, "child", "Open", parent="parent")
        metadata = {"name": "subject"} | ({"namespace": "default"} if row.namespaced else {})

        with pytest.raises(ApiError) as refusal:
            await client.create(row, {"metadata": metadata, "spec": spec})

        assert isinstance(refusal.value, by), refusal.value
        assert all(fragment in refusal.value.message for fragment in fragments), refusal.value.message
        stored = await client.list_json(row)
        assert "subject" not in [item["metadata"]["name"] for item in stored["items"]]

    story(play)


def job(**spec):
    return {"tasks": [TASK], **spec}


@pytest.mark.parametrize(
    ("kind", "spec", "path", "fragment"),
    [
        (Job, job(minAvailable=-1), "spec.minAvailable", "should be greater than or equal to 0"),
        (Job, job(maxRetry=-1), "spec.maxRetry", "should be greater than or equal to 0"),
        (Job, job(ttlSecondsAfterFinished=-1), "spec.ttlSecondsAfterFinished", "should be greater than or equal to 0"),
        (Job, {"tasks": [{**TASK, "replicas": -1}]}, "spec.tasks[0].replicas", "should be greater than or equal to 0"),
        (Job, {"tasks": [{**TASK, "minAvailable": -1}]}, "spec.tasks[0].minAvailable", "should be greater than or equal to 0"),
        (Job, {"tasks": [{**TASK, "name": "Task_1"}]}, "spec.tasks[0].name", "should match"),
        (Job, job(volumes=[{"mountPath": ""}]), "spec.volumes[0].mountPath", "should be at least 1 chars long"),
        (Queue, {"weight": -1}, "spec.weight", "should be greater than or equal to 1"),
        (HyperNode, {"tier": 1, "members": [{"type": "Node", "selector": {"exactMatch": {"name": ""}}}]},
         "spec.members[0].selector.exactMatch.name", "should be at least 1 chars long"),
        (HyperNode, {"tier": 1, "members": [{"type": "Node", "selector": {"exactMatch": {"name": "Node_1"}}}]},
         "spec.members[0].selector.exactMatch.name", "should match"),
        (HyperNode, {"tier": 1, "members": [{"type": "Node", "selector": {"regexMatch": {"pattern": ""}}}]},
         "spec.members[0].selector.regexMatch.pattern", "should be at least 1 chars long"),
    ],
)  # fmt: skip
def test_limits_are_answered_by_the_schema_with_path_and_fragment(kind, spec, path, fragment):
    refuses(kind, spec, SCHEMA, path, fragment)


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        (job(policies=[{"event": "NoSuchEvent", "action": "AbortJob"}]), "spec.policies[0].event"),
        (job(queue="fakeQueue"), "spec.queue"),
    ],
)
def test_words_outside_an_enum_and_names_with_capitals_are_answered_by_the_schema(spec, path):
    refuses(Job, spec, SCHEMA, path)


@pytest.mark.parametrize(
    ("kind", "spec", "fragment"),
    [(Job, {}, "No task specified in job spec"), (HyperNode, {"tier": 1}, "member must have at least one member")],
)
def test_lists_that_were_left_out_are_answered_by_the_rules(kind, spec, fragment):
    refuses(kind, spec, RULE, "denied", fragment)


@pytest.mark.parametrize(
    ("spec", "fragment"),
    [
        ({"tasks": [TASK, TASK]}, "duplicated task name"),
        (
            job(
                policies=[{"event": "PodFailed", "action": "AbortJob"}, {"event": "PodFailed", "action": "RestartJob"}]
            ),
            "duplicate",
        ),
        (job(volumes=[{"mountPath": "/a"}]), "either VolumeClaim or VolumeClaimName must be specified"),
        (job(plugins={"nonexistent": []}), "unable to find job plugin: nonexistent"),
        (job(queue="closed"), "queue `closed` status is `Closed`"),
        (job(queue="root"), "can not submit job to root queue"),
        (job(queue="parent"), "can only submit job to leaf queue"),
        (job(queue="missing"), "queue missing does not exist"),
    ],
)
def test_what_needs_a_look_around_is_answered_by_the_rules(spec, fragment):
    refuses(Job, spec, RULE, "denied", fragment)


def test_a_stated_deserved_is_at_least_the_guarantee():
    spec = {"weight": 1, "guarantee": {"resource": {"cpu": "2"}}, "deserved": {"cpu": "1"}}
    refuses(Queue, spec, RULE, "must be >= guarantee")


def test_what_capability_does_not_name_is_allowed():
    async def play(client):
        await queue(client, "a", deserved={"memory": "1Gi"}, capability={"cpu": "1"})
        await queue(
            client, "b", deserved={"memory": "1Gi"}, guarantee={"resource": {"memory": "1Gi"}}, capability={"cpu": "1"}
        )

    story(play)


@pytest.mark.parametrize("state", ["Open", "Closed"])
def test_a_queue_made_with_a_state_and_then_updated_is_accepted_without_effect(state):
    async def play(client):
        row = resource_type(Queue)
        made = msgspec.json.decode(
            await client.create(row, {"metadata": {"name": "q"}, "spec": {"weight": 1}, "status": {"state": state}})
        )
        made["status"] = {"state": "Closed"}
        await client.update(row, made)

        assert (await client.get(Queue, Key("", "q"))).status.state == ""

    story(play)


@pytest.mark.parametrize(("kind", "spec"), [(Job, job(queue="fresh")), (PodGroup, {"minMember": 1, "queue": "fresh"})])
def test_a_queue_takes_work_as_soon_as_it_is_open(kind, spec):
    async def play(client):
        row = resource_type(kind)
        body = {"metadata": {"name": "subject", "namespace": "default"}, "spec": spec}
        await queue(client, "fresh")
        with pytest.raises(BadRequest, match="state `Open`"):
            await client.create(row, body)

        await client.patch(resource_type(Queue), Key("", "fresh"), {"status": {"state": "Open"}}, subresource="status")
        await client.create(row, body)

    story(play)


def test_the_look_for_children_is_never_stale():
    async def play(client):
        row = resource_type(Queue)
        for _ in range(3):
            await queue(client, "p", "Open")
            await queue(client, "c", "Open", parent="p")
            with pytest.raises(BadRequest, match="1 child queues: c"):
                await client.delete(row, Key("", "p"))
            await client.delete(row, Key("", "c"))
            await client.delete(row, Key("", "p"))

    story(play)
