"""What a Kubernetes would do itself, on the whole system in virtual time."""

from __future__ import annotations

from datetime import timedelta

from tests.stories.builders import a_job, a_task
from volcano.api.batch import Job
from volcano.api.core import (
    BatchJob,
    ConfigMap,
    Deployment,
    Endpoints,
    HorizontalPodAutoscaler,
    Namespace,
    Node,
    Pod,
    ReplicaSet,
    Service,
    ServiceAccount,
    StatefulSet,
)
from volcano.api.errors import NotFound
from volcano.api.meta import Key, Resource
from volcano.api.scheduling import PodGroup
from volcano.api.scheme import resource_type
from volcano.testing.system import VirtualSystem, on_virtual_time

SECOND = timedelta(seconds=1)


def a_workload(kind: str, name: str, *, api: str = "apps/v1", lasts: str = "", image: str = "one", **spec) -> dict:
    annotations = {"simulation.volcano.sh/duration": lasts} if lasts else {}
    container = {"name": "c", "image": image, "resources": {"requests": {"cpu": "100m"}}}
    template = {
        "metadata": {"labels": {"app": name}, "annotations": annotations},
        "spec": {"containers": [container], **({"restartPolicy": "Never"} if kind == "Job" else {})},
    }
    selector = {} if kind == "Job" else {"selector": {"matchLabels": {"app": name}}}
    return {
        "apiVersion": api,
        "kind": kind,
        "metadata": {"name": name},
        "spec": {**selector, "template": template, **spec},
    }


async def gone(system: VirtualSystem, kind: type[Resource], key: Key) -> bool:
    try:
        await system.client.get(kind, key)
    except NotFound:
        return True
    return False


def running(system: VirtualSystem, app: str) -> list[Pod]:
    pods = [pod for pod in system.mirror.all(Pod) if pod.labels.get("app") == app]
    return [pod for pod in pods if pod.status.phase == "Running" and not pod.is_deleting]


def test_deleting_a_job_takes_all_that_belongs_to_it():
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        await system.apply(a_job("demo", a_task(replicas=3), plugins={"svc": []}))
        await system.until(lambda: system.phase("demo") == "Running")
        assert (await system.client.list(Service, "default")).items

        await system.delete(Job, "demo")
        await system.until(lambda: not system.mirror.all(Pod) and not system.mirror.all(PodGroup))

        assert await gone(system, Service, Key("default", "demo"))


def test_deleting_a_namespace_empties_it():
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        await system.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
        await system.apply(a_job("demo", a_task(replicas=2)), namespace="team")
        await system.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}, namespace="team")
        await system.until(lambda: system.phase("demo", "team") == "Running")
        assert not await gone(system, ServiceAccount, Key("team", "default"))

        await system.client.delete(resource_type(Namespace), Key("", "team"))
        for _ in range(120):
            if await gone(system, Namespace, Key("", "team")):
                break
            await system.clock.sleep(SECOND)

        assert await gone(system, Namespace, Key("", "team"))
        assert await gone(system, ConfigMap, Key("team", "c"))
        assert system.mirror.all(Job) == []


def test_a_deployment_runs_rolls_and_goes():
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        await system.apply(a_workload("Deployment", "web", replicas=4))
        await system.until(lambda: len(running(system, "web")) == 4)

        template = a_workload("Deployment", "web", image="two")["spec"]["template"]
        await system.patch(Deployment, "web", {"spec": {"template": template}})
        await system.until(
            lambda: (
                [pod.spec.containers[0].image for pod in running(system, "web")] == ["two"] * 4
                and len([pod for pod in system.mirror.all(Pod) if not pod.is_finished]) == 4
            )
        )
        deployment = await system.client.get(Deployment, Key("default", "web"))
        assert deployment.status is not None
        assert deployment.status["updatedReplicas"] == 4

        await system.delete(Deployment, "web")
        await system.until(lambda: not running(system, "web"))
        assert (await system.client.list(ReplicaSet, "default")).items == []


def test_a_statefulset_comes_up_in_order():
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        await system.apply(a_workload("StatefulSet", "db", replicas=3, serviceName="db"))
        await system.until(lambda: len(running(system, "db")) == 3)

        pods = sorted(running(system, "db"), key=lambda pod: pod.name)
        assert [pod.name for pod in pods] == ["db-0", "db-1", "db-2"]
        stateful = await system.client.get(StatefulSet, Key("default", "db"))
        assert stateful.status is not None
        assert stateful.status["readyReplicas"] == 3


def test_a_plain_job_completes_all_its_indexes():
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        job = a_workload(
            "Job", "batch", api="batch/v1", lasts="5s", completions=6, parallelism=2, completionMode="Indexed"
        )
        await system.apply(job)
        for _ in range(120):
            found = await system.client.get(BatchJob, Key("default", "batch"))
            if any(c["type"] == "Complete" for c in (found.status or {}).get("conditions", [])):
                break
            await system.clock.sleep(SECOND)

        assert found.status is not None
        assert found.status["succeeded"] == 6
        assert found.status["completedIndexes"] == "0-5"


def test_a_service_has_the_addresses_of_its_pods():
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "web"},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]},
        }
        await system.apply(service)
        await system.apply(a_workload("Deployment", "web", replicas=3))
        await system.until(lambda: len(running(system, "web")) == 3)
        await system.settle()

        endpoints = await system.client.get(Endpoints, Key("default", "web"))
        addresses = sorted(address["ip"] for address in endpoints.subsets[0]["addresses"])
        assert addresses == sorted(pod.status.pod_ip for pod in running(system, "web"))


def test_pods_of_a_node_that_is_deleted_are_replaced():
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        await system.apply(a_workload("Deployment", "web", replicas=4))
        await system.until(lambda: len(running(system, "web")) == 4)
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "ghost"},
            "status": {"allocatable": {"cpu": "4"}},
        }
        await system.client.create(resource_type(Node), node)
        lost = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "lost"},
            "spec": {"nodeName": "ghost", "containers": [{"name": "c", "image": "x"}]},
        }
        await system.apply(lost)

        await system.client.delete(resource_type(Node), Key("", "ghost"))
        await system.until(lambda: system.get(Pod, "lost") is None)


def test_a_daemon_runs_on_every_node():
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        await system.apply(a_workload("DaemonSet", "log"))
        await system.until(lambda: len(running(system, "log")) == 4)

        assert len({pod.spec.node_name for pod in running(system, "log")}) == 4


def owned_by(name: str, uid: str) -> dict:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "child", "ownerReferences": [owner]}}


def test_what_belongs_to_an_owner_that_never_was_goes():
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        await system.apply(owned_by("nobody", "no-such-uid"))
        await system.settle()

        assert await gone(system, ConfigMap, Key("default", "child"))


def test_orphans_stay():
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        (owner,) = await system.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "parent"}})
        await system.apply(owned_by("parent", owner["metadata"]["uid"]))
        await system.client.delete(resource_type(ConfigMap), Key("default", "parent"), {"propagationPolicy": "Orphan"})
        await system.settle()

        assert await gone(system, ConfigMap, Key("default", "parent"))
        child = await system.client.get(ConfigMap, Key("default", "child"))
        assert child.metadata.owner_references == []


def test_an_autoscaler_follows_the_load_of_its_deployment():
    """Pods of simulated nodes use half of what they request."""

    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        target = {"type": "Utilization", "averageUtilization": 25}
        spec = {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "maxReplicas": 6,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
        }
        await system.apply(a_workload("Deployment", "web", replicas=1))
        await system.until(lambda: len(running(system, "web")) == 1)
        body = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"}}
        await system.apply({**body, "spec": spec})
        await system.until(lambda: len(running(system, "web")) == 6)  # 50 % of the request is twice the target

        await system.client.patch(
            resource_type(HorizontalPodAutoscaler), Key("default", "web"), {"spec": {"maxReplicas": 3}}
        )
        await system.until(lambda: len(running(system, "web")) == 3)
        found = await system.client.get(HorizontalPodAutoscaler, Key("default", "web"))
        assert found.status is not None
        assert found.status["desiredReplicas"] == 3
        assert found.status["currentMetrics"][0]["resource"]["current"]["averageUtilization"] == 50
