"""Explanations end to end: something waits or fails in a running system, and the scheduler says why.

Most tests are cases that were once explained wrongly.
"""

import msgspec

from tests.stories.builders import a_job, a_task
from volcano.api.meta import Key
from volcano.api.scheduling import Queue
from volcano.api.scheme import find_resource_type
from volcano.api.why.answers import WhyAnswer
from volcano.cli.explain import PATH, rendered
from volcano.machinery.transport import Request
from volcano.testing.system import on_virtual_time

FOUR_CPUS = {"cpu": "4", "memory": "8Gi", "pods": "10"}
EIGHT_CPUS = {"cpu": "8", "memory": "32Gi", "pods": "10"}
EVENTS = find_resource_type("", "Event")
ROWS = {
    "vcjob": ("batch.volcano.sh", "Job"),
    "pod": ("", "Pod"),
    "job": ("batch", "Job"),
    "deployment": ("apps", "Deployment"),
    "podgroup": ("scheduling.volcano.sh", "PodGroup"),
    "queue": ("scheduling.volcano.sh", "Queue"),
    "node": ("", "Node"),
    "jobflow": ("flow.volcano.sh", "JobFlow"),
    "cronjob": ("batch.volcano.sh", "CronJob"),
}


async def explained(system, name, kind="vcjob", **more):
    """What the command shows: the scheduler's answer, through the service proxy of the API."""
    row = find_resource_type(*ROWS[kind])
    body = await system.client.get_json(row, Key("default" if row.namespaced else "", name))
    events = (await system.client.list_json(EVENTS, "default"))["items"]
    question = {"kind": kind, "name": name, "object": body, "events": events, **more}
    request = Request("POST", PATH, headers={"content-type": "application/json"}, body=msgspec.json.encode(question))
    return msgspec.json.decode((await system.client.raw(request)).body, type=WhyAnswer)


def with_spec(task, **spec):
    task["template"]["spec"] |= spec
    return task


def labelled(task, **labels):
    task["template"]["metadata"]["labels"] = labels
    return task


def test_a_pod_larger_than_every_node_never_runs():
    @on_virtual_time(nodes=3)
    async def story(system):
        await system.apply(a_job("large", a_task(replicas=2, cpu="1000")))
        await system.until(lambda: system.job("large").status.state.reason)

        found = await explained(system, "large")

        assert (found.reason, found.waiting_helps) == ("PodTooLarge", False)
        assert "3 nodes → 0 have 1k cpu" in rendered(found)


def test_a_job_behind_another_waits_its_turn():
    @on_virtual_time(nodes=1, capacity=FOUR_CPUS)
    async def story(system):
        await system.apply(a_job("first", a_task(replicas=3, cpu="1")))
        await system.settle()
        await system.apply(a_job("second", a_task(replicas=2, cpu="1")))
        await system.until(lambda: system.job("second").status.state.reason)

        found = await explained(system, "second")

        assert (found.tier, found.waiting_helps) == ("waits its turn", True)
        assert found.text == "needs 2 cpu for 2 pods; 1 are free; held by first"
        assert found.changes[0].sentence == "lower minAvailable from 2 to 1"


def test_of_an_elastic_job_some_run_and_the_others_follow():
    @on_virtual_time(nodes=1, capacity={"cpu": "2", "memory": "8Gi", "pods": "10"})
    async def story(system):
        await system.apply(a_job("elastic", a_task(replicas=4, cpu="1"), minimum=1))
        await system.until(lambda: sum(pod.status.phase == "Running" for pod in system.pods("elastic")) == 2)

        found = await explained(system, "elastic")

        assert (found.reason, found.waiting_helps) == ("SomeRun", True)
        assert found.text.startswith("2 of its 4 pods run, 2 run after them")


def test_anti_affinity_on_too_few_nodes():
    term = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}

    @on_virtual_time(nodes=3, capacity=EIGHT_CPUS)
    async def story(system):
        await system.apply(a_job("apart", labelled(with_spec(a_task(replicas=5), affinity=affinity), app="a")))
        await system.until(lambda: system.job("apart").status.state.reason)

        found = await explained(system, "apart")

        assert found.text == "at most 3 at a time: no two may share a node; 5 are needed"
        assert not found.waiting_helps


def test_a_scheduler_that_does_not_exist():
    @on_virtual_time(nodes=1)
    async def story(system):
        await system.apply(a_job("lost", schedulerName="volcanoo"))
        await system.settle()

        found = await explained(system, "lost")

        assert found.text == "there is no scheduler volcanoo here; did you mean volcano?"
        assert found.changes[0].sentence == "use the scheduler volcano"


def test_a_quota_that_is_too_small():
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "rq"}, "spec": {"hard": {"pods": "2"}}}

    @on_virtual_time(nodes=1, capacity=EIGHT_CPUS)
    async def story(system):
        await system.apply(quota)
        await system.apply(a_job("three", a_task(replicas=3)))
        await system.until(lambda: len(system.pods("three")) == 2)
        await system.settle()

        found = await explained(system, "three")

        assert found.text.startswith("quota rq: 2 of 2 pods used, 3 needed")
        assert not found.waiting_helps


def test_a_closed_queue():
    @on_virtual_time(nodes=1)
    async def story(system):
        await system.apply({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "q"}})
        await system.apply(a_job("stuck", a_task(cpu="100"), queue="q"))
        await system.patch(Queue, "q", {"status": {"state": "Closing"}}, subresource="status")
        await system.until(lambda: system.get(Queue, "q").status.state == "Closing")

        found = await explained(system, "stuck")

        assert (found.reason, found.tier) == ("QueueClosed", "needs a change by an administrator")


def test_a_scheduling_gate():
    @on_virtual_time(nodes=1)
    async def story(system):
        gates = [{"name": "example.com/quota-check"}]
        await system.apply(a_job("gated", with_spec(a_task(), schedulingGates=gates)))
        await system.until(lambda: system.pods("gated"))
        await system.settle()

        found = await explained(system, "gated")

        assert found.text == "waits for the scheduling gate example.com/quota-check to be removed (gated-worker-0)"
        assert found.tier == "waits for a known event"


def test_the_most_that_is_free_on_one_node():
    @on_virtual_time(nodes=3, capacity=FOUR_CPUS)
    async def story(system):
        for number in range(3):
            selector = {"kubernetes.io/hostname": f"sim-{number}"}
            await system.apply(a_job(f"small-{number}", with_spec(a_task(cpu="1"), nodeSelector=selector)))
        await system.settle()
        await system.apply(a_job("four", a_task(cpu="4")))
        await system.until(lambda: system.job("four").status.state.reason or system.phase("four") == "Running")

        found = await explained(system, "four")

        assert "needs 4 cpu; the most free on one node is 3, 9 in all" in found.text


def test_an_exit_code_that_repeats():
    @on_virtual_time(nodes=1)
    async def story(system):
        await system.apply(a_job("crash", a_task(lasts="1s", exits=3, restart="OnFailure")))
        await system.until(
            lambda: any(s.restart_count >= 2 for pod in system.pods("crash") for s in pod.status.container_statuses)
        )
        await system.settle()

        found = await explained(system, "crash", logs={"default/crash-worker-0": "no data"})

        assert found.text.startswith("exit code 3 ") and found.text.endswith("last line of its log: no data")
        assert found.tier == "failing"


def test_a_claim_that_does_not_exist():
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]

    @on_virtual_time(nodes=1)
    async def story(system):
        await system.apply(a_job("hungry", with_spec(a_task(), volumes=volumes)))
        await system.until(lambda: system.job("hungry").status.state.reason)

        found = await explained(system, "hungry")

        assert found.text == "there is no PersistentVolumeClaim data"
        assert (found.waiting_helps, found.changes[0].sentence) == (False, "create PersistentVolumeClaim data")


def test_a_service_account_that_does_not_exist():
    @on_virtual_time(nodes=1)
    async def story(system):
        await system.apply(a_job("robot", with_spec(a_task(), serviceAccountName="builder")))
        await system.settle()

        found = await explained(system, "robot")

        assert found.text == "there is no ServiceAccount builder in namespace default"


def test_pods_are_spread_over_zones_at_once():
    spread = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
              "labelSelector": {"matchLabels": {"app": "a"}}}  # fmt: skip

    @on_virtual_time(nodes=2, capacity=EIGHT_CPUS)
    async def story(system):
        task = labelled(with_spec(a_task(replicas=4), topologySpreadConstraints=[spread]), app="a")
        await system.apply(a_job("even", task))
        await system.until(lambda: system.phase("even") == "Running")

        assert (await explained(system, "even")).reason == "RunsAsWanted"


# -- every kind -------------------------------------------------------------------------------------------------------
def a_pod_template(cpu="1000", **more):
    return {"containers": [{"name": "c", "image": "any", "resources": {"requests": {"cpu": cpu}}}],
            "schedulerName": "volcano", **more}  # fmt: skip


def test_a_plain_pod_a_batch_job_and_a_deployment_are_explained_alike():
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": a_pod_template()}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "b"},
           "spec": {"template": {"spec": a_pod_template(restartPolicy="Never")}}}  # fmt: skip
    labels = {"app": "d"}
    template = {"metadata": {"labels": labels}, "spec": a_pod_template()}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
                  "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}}  # fmt: skip

    @on_virtual_time(nodes=2)
    async def story(system):
        for body in (pod, job, deployment):
            await system.apply(body)
        await system.settle()
        sets = (await system.client.list_json(find_resource_type("apps", "ReplicaSet"), "default"))["items"]

        texts = {
            kind: (await explained(system, name, kind, objects=sets)).text
            for kind, name in (("pod", "p"), ("job", "b"), ("deployment", "d"))
        }

        for kind, text in texts.items():
            assert "needs 1k cpu; the largest of 2 suitable nodes has" in text, (kind, text)


def test_a_pod_group_a_queue_and_a_node_are_explained():
    @on_virtual_time(nodes=1, capacity=FOUR_CPUS)
    async def story(system):
        await system.apply(a_job("large", a_task(replicas=2, cpu="1000")))
        await system.until(lambda: system.job("large").status.state.reason)
        (group,) = system.groups()
        node = (await system.client.list_json(find_resource_type("", "Node")))["items"][0]["metadata"]["name"]

        of_group = await explained(system, group.name, "podgroup")
        assert of_group.reason in ("PodTooLarge", "NotLetIn", "TooMuchLetIn"), of_group
        of_queue = await explained(system, "default", "queue")
        of_node = await explained(system, node, "node")

        assert (of_queue.reason, "the first is large" in of_queue.text) == ("QueueWaitsFor", True)
        assert of_node.reason in ("NodeUnwanted", "NodeTakesPods")


def test_a_suspended_cron_job_and_a_flow_step_are_explained():
    template = {"spec": a_job("x")["spec"]}
    cron = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "CronJob", "metadata": {"name": "nightly"},
            "spec": {"schedule": "0 3 * * *", "suspend": True, "jobTemplate": template}}  # fmt: skip
    step = {"apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobTemplate", "metadata": {"name": "big"},
            "spec": a_job("x", a_task(cpu="1000"))["spec"]}  # fmt: skip
    flow = {"apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobFlow", "metadata": {"name": "f"},
            "spec": {"jobRetainPolicy": "retain", "flows": [{"name": "big"}]}}  # fmt: skip

    @on_virtual_time(nodes=1)
    async def story(system):
        for body in (cron, step, flow):
            await system.apply(body)
        await system.until(lambda: system.phase("f-big"))
        await system.settle()
        jobs = await system.client.list_json(find_resource_type("batch.volcano.sh", "Job"), "default")
        objects = [{"kind": "Job", **each} for each in jobs["items"]]

        of_cron = await explained(system, "nightly", "cronjob")
        of_flow = await explained(system, "f", "jobflow", objects=objects)

        assert (of_cron.reason, of_cron.changes[0].sentence) == ("CronSuspended", "resume it")
        assert of_flow.text.startswith("step big: a pod of task worker needs 1k cpu")
