"""Rarer things on a real API server, each of which needs a right of its own: volumes, daemons, gates, shards, discovery."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.running_server import Client
from tests.stories.builders import a_job, a_task
from volcano.api.core import Pod
from volcano.api.scheduling import PodGroup
from volcano.install.installation import installation
from volcano.install.values import Values

from .components import Components, apply, wait_for
from .real_system import RealSystem

NODES = "/api/v1/nodes"
HYPERNODES = "/apis/topology.volcano.sh/v1alpha1/hypernodes"
SHARDS = "/apis/shard.volcano.sh/v1alpha1/nodeshards"
GATE = "scheduling.volcano.sh/queue-allocation-gate"


def storage_class(api: Client, name: str, provisioner: str) -> str:
    body = {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
    assert api.create("/apis/storage.k8s.io/v1/storageclasses", body).status == 201
    return name


def a_claim(name: str, kind: str) -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": kind, "resources": {"requests": {"storage": "1Gi"}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


async def test_a_pod_goes_where_its_volume_is_and_the_volume_is_bound(system: RealSystem, api: Client):
    kind = storage_class(api, f"local-{system.namespace}", "kubernetes.io/no-provisioner")
    here = {
        "nodeSelectorTerms": [
            {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["main-3"]}]}
        ]
    }
    spec = {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": kind, "local": {"path": "/data"},
        "persistentVolumeReclaimPolicy": "Delete", "nodeAffinity": {"required": here},
    }  # fmt: skip
    volume = f"pv-{system.namespace}"
    assert api.create("/api/v1/persistentvolumes", {"metadata": {"name": volume}, "spec": spec}).status == 201
    await system.apply(a_claim("mine", kind))
    await system.apply(a_job("demo", a_task(), volumes=[{"mountPath": "/data", "volumeClaimName": "mine"}]))

    await system.until(lambda: [pod.spec.node_name for pod in system.pods("demo")] == ["main-3"])

    claims = f"/api/v1/namespaces/{system.namespace}/persistentvolumeclaims"
    wait_for(lambda: api.get(f"{claims}/mine").body["status"]["phase"] == "Bound")
    assert api.get(f"{claims}/mine").body["spec"]["volumeName"] == volume
    api.delete(f"/api/v1/persistentvolumes/{volume}")


async def test_whoever_makes_volumes_is_told_for_which_node(system: RealSystem, api: Client):
    kind = storage_class(api, f"made-{system.namespace}", "example.org/none")
    await system.apply(a_claim("mine", kind))
    await system.apply(a_job("demo", a_task(), volumes=[{"mountPath": "/data", "volumeClaimName": "mine"}]))

    def chosen() -> str:
        claim = api.get(f"/api/v1/namespaces/{system.namespace}/persistentvolumeclaims/mine").body
        return str(claim["metadata"].get("annotations", {}).get("volume.kubernetes.io/selected-node", ""))

    assert wait_for(chosen).startswith("main-")
    assert all(not pod.spec.node_name for pod in system.pods("demo"))


async def test_daemons_are_gangs_too(system: RealSystem, api: Client):
    label = f"daemon-{system.namespace}"
    assert api.merge(f"{NODES}/main-2", {"metadata": {"labels": {label: "yes"}}}).status == 200
    labels = {"app": "d"}
    pod = {
        "metadata": {"labels": labels},
        "spec": {
            "schedulerName": "volcano",
            "nodeSelector": {label: "yes"},
            "containers": [{"name": "c", "image": "i"}],
        },
    }
    spec = {"selector": {"matchLabels": labels}, "template": pod}
    (made,) = await system.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": "d", "annotations": {"volcano.sh/sla-waiting-time": "1h"}},
            "spec": spec,
        }
    )

    await system.until(
        lambda: [(p.spec.node_name, p.status.phase) for p in system.mirror.all(Pod)] == [("main-2", "Running")]
    )

    (group,) = system.mirror.all(PodGroup)
    assert group.name == f"podgroup-{made['metadata']['uid']}"
    assert group.annotations["volcano.sh/sla-waiting-time"] == "1h"
    api.merge(f"{NODES}/main-2", {"metadata": {"labels": {label: None}}})


async def test_a_gate_is_removed_when_the_queue_admits(system: RealSystem, running: Components):
    running.scheduler(
        "--scheduler-name",
        "gating",
        "--node-selector",
        "pool:main",
        "--feature-gates",
        "SchedulingGatesQueueAdmission=true",
    )
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    metadata = {"name": "gated", "annotations": {GATE: "true", "scheduling.k8s.io/group-name": "gated"}}
    spec = {"schedulerName": "gating", "schedulingGates": [{"name": GATE}], "containers": [container]}
    await system.apply(
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": "gated"},
            "spec": {"minMember": 1},
        }
    )
    await system.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

    await system.until(lambda: (found := system.get(Pod, "gated")) and found.status.phase == "Running")


@pytest.fixture
def sharding(running: Components, api: Client) -> Iterator[str]:
    """The sharding controller, with the rights that the chart gives with it, and a scheduler that minds its shard."""
    roles = [
        body
        for body in installation(Values({"controllers.sharding": True}))
        if body["metadata"]["name"] == "volcano-controllers-sharding"
    ]
    assert {body["kind"] for body in roles} == {"ClusterRole", "ClusterRoleBinding"}
    apply(api, roles)
    shares = ("shardy:volcano:0.0:1.0:false:1:4", "another:volcano:0.0:1.0:false:1:2")
    chosen = [word for share in shares for word in ("--scheduler-configs", share)]
    controllers = running.controllers("--controllers", "sharding-controller", "--shard-sync-period", "1s", *chosen)
    scheduler = running.scheduler(
        "--scheduler-name", "shardy", "--scheduler-sharding-mode", "hard", "--scheduler-sharding-name", "shardy"
    )
    yield "shardy"
    for process in (controllers, scheduler):
        process.stop()
        running.running.remove(process)
    for shard in api.get(SHARDS).body["items"]:
        api.delete(f"{SHARDS}/{shard['metadata']['name']}")


async def test_nodes_are_shared_out_among_schedulers(system: RealSystem, api: Client, sharding: str):
    shard = wait_for(lambda: (found := api.get(f"{SHARDS}/{sharding}")).status == 200 and found.body)
    await system.apply(a_job("demo", a_task(replicas=2), schedulerName=sharding))
    await system.until(lambda: system.phase("demo") == "Running")

    used = wait_for(lambda: api.get(f"{SHARDS}/{sharding}").body.get("status", {}).get("nodesInUse"))

    desired = set(api.get(f"{SHARDS}/{sharding}").body["spec"]["nodesDesired"]) | set(shard["spec"]["nodesDesired"])
    assert {pod.spec.node_name for pod in system.pods("demo")} <= desired
    assert set(used) <= desired


def test_shards_follow_their_configuration(api: Client, sharding: str, installed: str):
    def sizes() -> dict[str, int]:
        return {body["metadata"]["name"]: len(body["spec"]["nodesDesired"]) for body in api.get(SHARDS).body["items"]}

    wait_for(lambda: sizes() == {"shardy": 4, "another": 2}, why=lambda: str(sizes()))
    text = "schedulerConfigs:\n- {name: shardy, type: volcano, cpuUtilizationMin: 0, cpuUtilizationMax: 1, minNodes: 1, maxNodes: 3}\nshardSyncPeriod: 1s\n"
    maps, name = f"/api/v1/namespaces/{installed}/configmaps", "volcano-sharding-configmap"
    assert api.create(maps, {"metadata": {"name": name}, "data": {"sharding.yaml": text}}).status == 201

    wait_for(lambda: sizes() == {"shardy": 3}, why=lambda: str(sizes()))

    api.delete(f"{maps}/{name}")


def test_hypernodes_are_found_by_labels_of_nodes(running: Components, api: Client, installed: str):
    config = """\
networkTopologyDiscovery:
- source: label
  enabled: true
  interval: 1s
  config:
    networkTopologyTypes:
      racks:
      - nodeLabel: example.org/rack
      - nodeLabel: kubernetes.io/hostname
"""
    name = "volcano-controller-configmap"
    maps = f"/api/v1/namespaces/{installed}/configmaps"

    def racks() -> dict[str, list[str]]:
        return {
            body["metadata"]["labels"]["example.org/rack"]: [
                member["selector"]["exactMatch"]["name"] for member in body["spec"]["members"]
            ]
            for body in api.get(HYPERNODES).body["items"]
        }

    for number, rack in enumerate(("a", "a", "b")):
        assert api.merge(f"{NODES}/main-{number}", {"metadata": {"labels": {"example.org/rack": rack}}}).status == 200
    assert api.create(maps, {"metadata": {"name": name}, "data": {"volcano-controller.conf": config}}).status == 201
    try:
        wait_for(lambda: racks() == {"a": ["main-0", "main-1"], "b": ["main-2"]}, why=lambda: str(racks()))
        api.merge(f"{NODES}/main-1", {"metadata": {"labels": {"example.org/rack": "b"}}})
        wait_for(lambda: racks() == {"a": ["main-0"], "b": ["main-1", "main-2"]}, why=lambda: str(racks()))
    finally:
        for number in range(3):
            api.merge(f"{NODES}/main-{number}", {"metadata": {"labels": {"example.org/rack": None}}})
        wait_for(lambda: racks() == {}, why=lambda: str(racks()))
        api.delete(f"{maps}/{name}")
