"""What one object counts for in a ResourceQuota, and which quotas count it."""

from __future__ import annotations

import pytest

from volcano.api.pods.amounts import added, times, to_wire
from volcano.api.quotas import consumer_of, is_in_scope, template_usage, unstated


def of(requests: dict | None = None, limits: dict | None = None, **more) -> dict:
    return {"name": "c", "resources": {"requests": requests or {}, "limits": limits or {}}, **more}


def a_pod(*containers: dict, phase: str = "Running", **spec) -> dict:
    return {"spec": {"containers": list(containers) or [of()], **spec}, "status": {"phase": phase}}


def a_service(kind: str, *ports: dict, **spec) -> dict:
    return {"spec": {"type": kind, "ports": list(ports), **spec}}


def a_claim(storage: str | None, **spec) -> dict:
    return {"spec": {"resources": {"requests": {"storage": storage} if storage else {}}, **spec}}


ONE_POD = {"count/pods": "1", "pods": "1"}
GOLD = "gold.storageclass.storage.k8s.io"

CASES = {
    "a pod that states nothing": ("pods", a_pod(), ONE_POD),
    "a pod that finished": ("pods", a_pod(of({"cpu": "1"}), phase="Succeeded"), {"count/pods": "1"}),
    "a pod that failed": ("pods", a_pod(of({"cpu": "1"}), phase="Failed"), {"count/pods": "1"}),
    "a pod of unknown state": ("pods", a_pod(phase="Unknown"), ONE_POD),
    "requests under two names, limits under one": (
        "pods",
        a_pod(of({"cpu": "1", "memory": "1Gi"}, {"cpu": "2"})),
        {**ONE_POD, "cpu": "1", "requests.cpu": "1", "memory": "1Gi", "requests.memory": "1Gi", "limits.cpu": "2"},
    ),
    "a sidecar runs beside the container": (
        "pods",
        a_pod(of({"cpu": "1"}), initContainers=[of({"cpu": "1"}, restartPolicy="Always")]),
        {**ONE_POD, "cpu": "2", "requests.cpu": "2"},
    ),
    "the pod as a whole states its size": (
        "pods",
        a_pod(of({"cpu": "1"}), resources={"requests": {"cpu": "4"}, "limits": {"cpu": "4"}}),
        {**ONE_POD, "cpu": "4", "requests.cpu": "4", "limits.cpu": "4"},
    ),
    "overhead": ("pods", a_pod(overhead={"cpu": "250m"}), {**ONE_POD, "cpu": "250m", "requests.cpu": "250m"}),
    "devices count by request alone": (
        "pods",
        a_pod(of({"nvidia.com/gpu": "2"}, {"nvidia.com/gpu": "2"})),
        {**ONE_POD, "requests.nvidia.com/gpu": "2"},
    ),
    "huge pages": (
        "pods",
        a_pod(of({"hugepages-2Mi": "4Mi"}, {"hugepages-2Mi": "4Mi"})),
        {**ONE_POD, "hugepages-2Mi": "4Mi", "requests.hugepages-2Mi": "4Mi"},
    ),
    "names in Kubernetes' own domain do not count": ("pods", a_pod(of({"kubernetes.io/batch-cpu": 1})), ONE_POD),
    "a config map": ("configmaps", {}, {"count/configmaps": "1", "configmaps": "1"}),
    "an object without a short name": ("jobs.batch.volcano.sh", {}, {"count/jobs.batch.volcano.sh": "1"}),
    "a deployment": ("deployments.apps", {}, {"count/deployments.apps": "1"}),
    "a service in the cluster": (
        "services",
        a_service("ClusterIP", {"port": 80}),
        {"count/services": "1", "services": "1"},
    ),
    "each node port": (
        "services",
        a_service("NodePort", {"port": 80}, {"port": 443}),
        {"count/services": "1", "services": "1", "services.nodeports": "2"},
    ),
    "a load balancer": (
        "services",
        a_service("LoadBalancer", {"port": 80}),
        {"count/services": "1", "services": "1", "services.nodeports": "1", "services.loadbalancers": "1"},
    ),
    "a load balancer that allocates no node ports": (
        "services",
        a_service("LoadBalancer", {"port": 80}, {"port": 81, "nodePort": 30000}, allocateLoadBalancerNodePorts=False),
        {"count/services": "1", "services": "1", "services.nodeports": "1", "services.loadbalancers": "1"},
    ),
    "a claim": (
        "persistentvolumeclaims",
        a_claim("3Gi"),
        {"count/persistentvolumeclaims": "1", "persistentvolumeclaims": "1", "requests.storage": "3Gi"},
    ),
    "a claim of a class": (
        "persistentvolumeclaims",
        a_claim("3Gi", storageClassName="gold"),
        {
            "count/persistentvolumeclaims": "1",
            "persistentvolumeclaims": "1",
            "requests.storage": "3Gi",
            f"{GOLD}/persistentvolumeclaims": "1",
            f"{GOLD}/requests.storage": "3Gi",
        },
    ),
    "a claim whose class stands in the old annotation": (
        "persistentvolumeclaims",
        {**a_claim(None), "metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "gold"}}},
        {
            "count/persistentvolumeclaims": "1",
            "persistentvolumeclaims": "1",
            f"{GOLD}/persistentvolumeclaims": "1",
        },
    ),
    "storage is counted in whole bytes": (
        "persistentvolumeclaims",
        a_claim("1500m"),
        {"count/persistentvolumeclaims": "1", "persistentvolumeclaims": "1", "requests.storage": "2"},
    ),
}


@pytest.mark.parametrize(("resource", "obj", "usage"), CASES.values(), ids=CASES)
def test_what_an_object_counts_for(resource: str, obj: dict, usage: dict):
    assert to_wire(consumer_of(resource, obj).usage) == dict(sorted(usage.items()))


def the_class(operator: str, *values: str) -> dict:
    return {"scopeName": "PriorityClass", "operator": operator, "values": list(values)}


OTHERS = {"podAffinityTerm": {"namespaces": ["other"]}}
PODS = {
    "idle": a_pod(),
    "busy": a_pod(of({"cpu": "1"}), priorityClassName="high"),
    "short": a_pod(of({"cpu": "1"}), activeDeadlineSeconds=60),
    "social": a_pod(affinity={"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [OTHERS]}}),
}


@pytest.mark.parametrize(
    ("scopes", "expressions", "expected"),
    [
        ([], [], {"idle", "busy", "short", "social"}),
        (["BestEffort"], [], {"idle", "social"}),
        (["NotBestEffort"], [], {"busy", "short"}),
        (["Terminating"], [], {"short"}),
        (["NotTerminating"], [], {"idle", "busy", "social"}),
        (["NotTerminating", "NotBestEffort"], [], {"busy"}),
        (["PriorityClass"], [], {"busy"}),
        (["CrossNamespacePodAffinity"], [], {"social"}),
        ([], [the_class("In", "high", "low")], {"busy"}),
        ([], [the_class("NotIn", "high")], {"idle", "short", "social"}),
        ([], [the_class("Exists")], {"busy"}),
        ([], [the_class("DoesNotExist")], {"idle", "short", "social"}),
        ([], [the_class("Near", "high")], set()),
        ([], [{"scopeName": "Terminating", "operator": "Exists"}], {"short"}),
    ],
)
def test_which_pods_a_quota_with_scopes_counts(scopes: list, expressions: list, expected: set):
    counted = {name for name, pod in PODS.items() if is_in_scope(consumer_of("pods", pod), scopes, expressions)}

    assert counted == expected


def test_a_quota_with_scopes_counts_pods_only():
    assert not is_in_scope(consumer_of("services", a_service("NodePort")), ["NotBestEffort"], [])


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (a_pod(of({"cpu": "1"}, {"cpu": "2"})), ""),
        (a_pod({"name": "b"}, {"name": "a"}), "limits.cpu for: a,b; requests.cpu for: a,b"),
        (a_pod(of({"cpu": "1"})), "limits.cpu for: c"),
        (
            a_pod(of({"cpu": "1"}, {"cpu": "2"}), initContainers=[{"name": "init"}]),
            "limits.cpu for: init; requests.cpu for: init",
        ),
        (a_pod({"name": "b"}, resources={"requests": {"cpu": "1"}}), ""),
    ],
    ids=["stated", "by no container", "no limit", "not by an init container", "by the pod as a whole"],
)
def test_each_container_must_state_what_is_limited(pod: dict, expected: str):
    assert unstated(["requests.cpu", "limits.cpu", "pods", "requests.ephemeral-storage"], pod) == expected


# -- minResources of a PodGroup ---------------------------------------------------------------------------------------
def test_usage_of_the_job_in_volcanos_end_to_end_suite():
    asked = {"cpu": "1", "memory": "1000Mi", "nvidia.com/gpu": "1"}
    template = {"spec": {"containers": [of(asked, asked)]}}

    usage = to_wire(times(added(template_usage(template)), 2))

    assert usage == {
        "count/pods": "2",
        "cpu": "2",
        "limits.cpu": "2",
        "limits.memory": "2000Mi",
        "memory": "2000Mi",
        "nvidia.com/gpu": "2",
        "pods": "2",
        "requests.cpu": "2",
        "requests.memory": "2000Mi",
        "requests.nvidia.com/gpu": "2",
    }


def test_limits_of_a_template_do_not_imply_requests():
    template = {"spec": {"containers": [of({"kubernetes.io/batch-cpu": 1}, {"cpu": "1"})]}}

    assert to_wire(template_usage(template)) == {"count/pods": "1", "limits.cpu": "1", "pods": "1"}
