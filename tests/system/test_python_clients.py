"""The official Python client and lightkube against the embedded API server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.running_server import Running, running_server

kubernetes = pytest.importorskip("kubernetes")
lightkube = pytest.importorskip("lightkube")


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with running_server() as running:
        yield running


@pytest.fixture(scope="module")
def official(running: Running):
    return kubernetes.config.new_client_from_config(str(running.kubeconfig))


def test_the_official_client_makes_reads_and_deletes_pods(official):
    core = kubernetes.client.CoreV1Api(official)
    pod = kubernetes.client.V1Pod(
        metadata=kubernetes.client.V1ObjectMeta(name="official", labels={"app": "official"}),
        spec=kubernetes.client.V1PodSpec(
            containers=[
                kubernetes.client.V1Container(
                    name="main",
                    image="busybox",
                    resources=kubernetes.client.V1ResourceRequirements(requests={"cpu": "100m", "memory": "64Mi"}),
                )
            ]
        ),
    )

    made = core.create_namespaced_pod("default", pod)
    listed = core.list_namespaced_pod("default", label_selector="app=official")
    patched = core.patch_namespaced_pod("official", "default", {"metadata": {"labels": {"more": "x"}}})
    core.patch_namespaced_pod_status("official", "default", {"status": {"phase": "Running"}})
    core.delete_namespaced_pod("official", "default")

    assert made.metadata.uid
    assert [item.metadata.name for item in listed.items] == ["official"]
    assert patched.metadata.labels == {"app": "official", "more": "x"}
    with pytest.raises(kubernetes.client.ApiException) as refused:
        core.read_namespaced_pod("official", "default")
    assert refused.value.status == 404


def test_the_official_clients_watch_resumes_where_it_was(official):
    core = kubernetes.client.CoreV1Api(official)
    watch = kubernetes.watch.Watch()
    since = core.list_namespaced_config_map("default").metadata.resource_version
    config = kubernetes.client.V1ConfigMap(metadata=kubernetes.client.V1ObjectMeta(generate_name="seen-"))
    maker = threading.Thread(target=lambda: [core.create_namespaced_config_map("default", config) for _ in range(5)])
    maker.start()

    kinds = []
    for event in watch.stream(core.list_namespaced_config_map, "default", resource_version=since, timeout_seconds=20):
        kinds.append(event["type"])
        if len(kinds) == 5:
            watch.stop()
    maker.join()

    assert kinds == ["ADDED"] * 5


def test_the_official_client_handles_custom_objects(official):
    custom = kubernetes.client.CustomObjectsApi(official)
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "from-python"},
        "spec": {
            "minAvailable": 1,
            "tasks": [
                {"name": "w", "replicas": 1, "template": {"spec": {"containers": [{"name": "a", "image": "b"}]}}}
            ],
        },
    }
    where = ("batch.volcano.sh", "v1alpha1", "default", "jobs")

    made = custom.create_namespaced_custom_object(*where, job)
    stale = {**made, "spec": {**made["spec"], "minAvailable": 0}}
    custom.patch_namespaced_custom_object(*where, "from-python", {"metadata": {"labels": {"a": "b"}}})

    assert made["spec"]["queue"] == "default"
    with pytest.raises(kubernetes.client.ApiException) as refused:
        custom.replace_namespaced_custom_object(*where, "from-python", stale)
    assert refused.value.status == 409


def test_the_official_dynamic_client_discovers_everything(official):
    dynamic = kubernetes.dynamic.DynamicClient(official)

    queues = dynamic.resources.get(api_version="scheduling.volcano.sh/v1beta1", kind="Queue")
    queues.create(
        body={
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": "dyn"},
            "spec": {"weight": 1},
        }
    )

    assert "dyn" in [queue.metadata.name for queue in queues.get().items]


def test_the_official_leader_election_style_lease(official):
    coordination = kubernetes.client.CoordinationV1Api(official)
    lease = kubernetes.client.V1Lease(
        metadata=kubernetes.client.V1ObjectMeta(name="leader"),
        spec=kubernetes.client.V1LeaseSpec(holder_identity="a", lease_duration_seconds=15),
    )
    made = coordination.create_namespaced_lease("default", lease)
    made.spec.holder_identity = "b"
    coordination.replace_namespaced_lease("leader", "default", made)

    with pytest.raises(kubernetes.client.ApiException) as refused:
        coordination.replace_namespaced_lease("leader", "default", made)
    assert refused.value.status == 409


def test_lightkube_works_with_built_in_and_generic_resources(running: Running):
    from lightkube import Client, KubeConfig
    from lightkube.generic_resource import create_global_resource
    from lightkube.models.meta_v1 import ObjectMeta
    from lightkube.resources.core_v1 import ConfigMap
    from lightkube.types import PatchType

    client = Client(config=KubeConfig.from_file(Path(running.kubeconfig)), namespace="default", field_manager="light")
    client.create(ConfigMap(metadata=ObjectMeta(name="light", labels={"by": "light"}), data={"a": "1"}))
    client.patch(ConfigMap, "light", {"data": {"b": "2"}}, patch_type=PatchType.MERGE)
    applied = client.apply(ConfigMap(metadata=ObjectMeta(name="light-applied"), data={"x": "y"}))
    queue = create_global_resource("scheduling.volcano.sh", "v1beta1", "Queue", "queues")
    client.create(queue(metadata=ObjectMeta(name="lightly"), spec={"weight": 3}))

    assert client.get(ConfigMap, "light").data == {"a": "1", "b": "2"}
    assert applied.metadata.managedFields[0].manager == "light"
    assert [c.metadata.name for c in client.list(ConfigMap, labels={"by": "light"})] == ["light"]
    assert client.get(queue, "lightly").spec["weight"] == 3
    client.delete(ConfigMap, "light")
    with pytest.raises(lightkube.ApiError) as refused:
        client.get(ConfigMap, "light")
    assert refused.value.status.code == 404
