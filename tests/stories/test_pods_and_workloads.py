"""Pods that belong to no Volcano job: plain ones, and those of Kubernetes' own workloads."""

from __future__ import annotations

import pytest

from tests.stories.builders import a_pod
from volcano.api.core import Pod
from volcano.api.scheduling import PodGroup


def is_running(system, name):
    found = system.get(Pod, name)
    return found is not None and found.status.phase == "Running"


def test_a_plain_pod_gets_a_podgroup_and_runs(host):
    @host
    async def story(system):
        await system.apply(a_pod("plain", schedulerName="volcano"))
        await system.until(lambda: is_running(system, "plain") and system.mirror.all(PodGroup))

        (group,) = system.mirror.all(PodGroup)
        assert group.name == f"podgroup-{system.get(Pod, 'plain').uid}"


@pytest.mark.hosts("embedded")  # no scheduler of Kubernetes runs beside the real API server
def test_a_pod_for_the_default_scheduler_runs_too(host):
    @host
    async def story(system):
        await system.apply(a_pod("plain"))
        await system.until(lambda: is_running(system, "plain"))

        assert not system.mirror.all(PodGroup)


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "Job"])
def test_pods_of_kubernetes_own_workloads_are_gangs_too(host, kind):
    labels = {"app": "w"}
    pod = {
        "metadata": {"labels": labels},
        "spec": {"schedulerName": "volcano", "containers": [{"name": "c", "image": "i"}]},
    }
    spec = {"selector": {"matchLabels": labels}, "replicas": 2, "template": pod}
    if kind == "StatefulSet":
        spec |= {"podManagementPolicy": "Parallel", "serviceName": "w"}
    if kind == "Job":
        pod["spec"]["restartPolicy"] = "Never"
        spec = {"parallelism": 2, "completions": 2, "template": pod}
    annotations = {"scheduling.volcano.sh/group-min-member": "2"}
    version = "batch/v1" if kind == "Job" else "apps/v1"
    workload = {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": "w", "annotations": annotations},
        "spec": spec,
    }

    @host
    async def story(system):
        await system.apply(workload)
        await system.until(lambda: [p.status.phase for p in system.mirror.all(Pod)] == ["Running", "Running"])

        groups = {group.name for group in system.mirror.all(PodGroup)}
        assert len(groups) == 1 or kind == "Deployment"
