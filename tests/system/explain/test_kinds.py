"""Every kind that can be asked about gets an answer of the same quality."""

from tests.stories.builders import a_job, a_task
from tests.system.explain.asking import FOUR_CPUS, explained
from volcano.api.scheme import find_resource_type
from volcano.testing.system import on_virtual_time


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
