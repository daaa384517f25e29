"""What pages change: each asks first, shows the command line, and acts with the caller's own rights."""

from __future__ import annotations

from tests.unit.dashboard.test_application import TINA, allow
from tests.unit.dashboard.visiting import job, signed_in
from volcano.api.batch import Job
from volcano.api.meta import Key
from volcano.api.scheduling import Queue
from volcano.api.scheme import resource_type
from volcano.testing.system import VirtualSystem, on_virtual_time

JOBS, QUEUES = resource_type(Job), resource_type(Queue)
MANIFEST = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: made, namespace: default}
spec:
  minAvailable: 1
  tasks:
  - {name: w, replicas: 1, template: {spec: {containers: [{name: main, image: none, resources: {requests: {cpu: "1"}}}]}}}
"""


def test_a_job_is_suspended_and_resumed_after_a_question_that_shows_the_command():
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        await system.client.create(JOBS, job("a"))
        visitor = await signed_in(system)
        secret = await visitor.secret()
        await system.until(lambda: system.phase("a") == "Running")

        asked = await visitor.text("/jobs/default/a/do/suspend")
        assert "vcctl job suspend a -n default" in asked
        assert system.phase("a") == "Running"
        done = await visitor.post("/jobs/default/a/do/suspend", {"secret": secret})
        assert done.headers["location"] == "/jobs/default/a"
        await system.until(lambda: system.phase("a") == "Aborted")
        await visitor.post("/jobs/default/a/do/resume", {"secret": secret})
        await system.until(lambda: system.phase("a") == "Running")
        await visitor.dashboard.close()


def test_a_job_is_requeued_and_deleted():
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        await system.client.create(JOBS, job("a"))
        visitor = await signed_in(system)
        secret = await visitor.secret()
        await system.until(lambda: system.phase("a") == "Running")

        await visitor.post("/jobs/default/a/do/requeue", {"secret": secret})
        await system.until(lambda: system.mirror.get(Job, Key("default", "a")).status.retry_count == 1)
        await visitor.post("/jobs/default/a/do/delete", {"secret": secret})
        await system.until(lambda: system.mirror.get(Job, Key("default", "a")) is None)
        await visitor.dashboard.close()


def test_an_action_without_the_right_to_it_is_refused_in_the_servers_words():
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        await system.client.create(JOBS, job("a"))
        rules = [{"apiGroups": ["batch.volcano.sh"], "resources": ["jobs"], "verbs": ["get", "list"]}]
        await allow(system, "see", "default", rules)
        visitor = await signed_in(system, TINA)
        secret = await visitor.secret()

        for action in ("delete", "suspend"):
            answer = await visitor.post(f"/jobs/default/a/do/{action}", {"secret": secret})
            assert answer.status == 403 and b"tina" in answer.body and b"cannot" in answer.body
        closed = await visitor.post("/queues/default/do/close", {"secret": secret})
        made = await visitor.post("/submit", {"secret": secret, "do": "submit", "text": MANIFEST})
        assert closed.status == made.status == 403
        assert system.mirror.get(Job, Key("default", "a")) is not None
        await visitor.dashboard.close()


def test_a_queue_is_edited_by_form_with_every_resource():
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        amounts = {"cpu": "4", "memory": "8Gi"}
        body = {"metadata": {"name": "q"}, "spec": {"weight": 1, "capability": amounts}}
        await system.client.create(QUEUES, body)
        visitor = await signed_in(system)
        secret = await visitor.secret()
        form = {
            "secret": secret,
            "weight": "3",
            "reclaimable": "true",
            "capability.cpu": "6",
            "deserved.example.com/gpu": "2",
        }

        review = await visitor.post("/queues/q/edit", form)
        assert b"kubectl patch queue q" in review.body and review.status == 200
        assert (await system.client.get(Queue, Key("", "q"))).spec.weight == 1
        done = await visitor.post("/queues/q/edit", {**form, "confirmed": "yes"})
        assert done.status == 303

        spec = (await system.client.get(Queue, Key("", "q"))).spec
        assert (spec.weight, spec.capability, spec.deserved) == (3, {"cpu": "6"}, {"example.com/gpu": "2"})
        await visitor.dashboard.close()


def test_wrong_amounts_are_refused_with_the_field():
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        visitor = await signed_in(system)
        secret = await visitor.secret()
        form = {"secret": secret, "weight": "1", "reclaimable": "true"}

        amount = await visitor.post("/queues/default/edit", {**form, "deserved.cpu": "many"})
        weight = await visitor.post("/queues/default/edit", {**form, "weight": "0"})
        order = await visitor.post("/queues/default/edit", {**form, "deserved.cpu": "4", "capability.cpu": "1"})

        assert amount.status == weight.status == 422 and b"deserved.cpu" in amount.body and b"weight" in weight.body
        assert order.status >= 400 and b"deserved" in order.body  # admission's own words
        await visitor.dashboard.close()


def test_a_queue_is_closed_and_opened():
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        await system.client.create(QUEUES, {"metadata": {"name": "q"}, "spec": {"weight": 1}})
        visitor = await signed_in(system)
        secret = await visitor.secret()

        async def state() -> str:
            return (await system.client.get(Queue, Key("", "q"))).status.state

        await visitor.post("/queues/q/do/close", {"secret": secret})
        await system.until(lambda: "Closed" in str(system.mirror.get(Queue, Key("", "q"))))
        await visitor.post("/queues/q/do/open", {"secret": secret})
        await system.until(lambda: "Open" in str(system.mirror.get(Queue, Key("", "q"))))
        assert await state() == "Open"
        await visitor.dashboard.close()


def test_a_dry_run_says_where_a_job_would_go_and_makes_nothing():
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        visitor = await signed_in(system)
        secret = await visitor.secret()

        tried = await visitor.post("/submit", {"secret": secret, "do": "try", "text": MANIFEST})
        large = await visitor.post("/submit", {"secret": secret, "do": "try", "text": MANIFEST.replace('"1"', '"999"')})
        wrong = await visitor.post("/submit", {"secret": secret, "do": "try", "text": "replicas: ["})
        field = await visitor.post(
            "/submit", {"secret": secret, "do": "try", "text": MANIFEST.replace("replicas", "replica")}
        )
        assert b"would run now: 1 of 1 pods placed" in tried.body
        assert b"would wait" in large.body
        assert b"not YAML" in wrong.body and b"replica" in field.body
        assert system.mirror.get(Job, Key("default", "made")) is None

        made = await visitor.post("/submit", {"secret": secret, "do": "submit", "text": MANIFEST})
        assert made.headers["location"] == "/jobs/default/made"
        await system.until(lambda: system.phase("made") == "Running")
        await visitor.dashboard.close()
