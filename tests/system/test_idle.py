"""An idle system writes nothing: the embedded system runs until it is quiet, then every write is counted.

What may be written are the leases by which components and nodes show that they are alive: Kubernetes renews them
too, they are how a dead one is noticed. A node's status is rewritten by Kubernetes' kubelet every five minutes even
without a change (`nodeStatusReportFrequency`); the agent here does not, since the lease says the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

from tests.stories.builders import DURATION, a_job, a_queue, a_task
from volcano.api.batch import Job
from volcano.api.core import Pod
from volcano.embedded.apiserver.store.contract import LoggedChange
from volcano.testing.system import VirtualSystem, on_virtual_time

HEARTBEATS = frozenset({"leases.coordination.k8s.io"})
QUIET = timedelta(seconds=60)
IDLE = timedelta(minutes=10)
CONTAINER = {"name": "main", "image": "any", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
SIDECAR = {**CONTAINER, "name": "side", "restartPolicy": "Always"}
LABELS = {"app": "web"}


class WriteCounter:
    """Counts the store's changes by resource, heartbeats left out."""

    def __init__(self, system: VirtualSystem) -> None:
        self._clock = system.clock
        self.last_write = system.clock.now()
        self.counts: Counter[str] = Counter()
        self.heartbeats = 0
        system.system.server.backend.store.subscribe(self._count)

    def _count(self, changes: Sequence[LoggedChange]) -> None:
        for change in changes:
            key = change.stored.key
            if key.resource in HEARTBEATS:
                self.heartbeats += 1
            else:
                self.counts[f"{key.resource} {key.namespace}/{key.name}"] += 1
                self.last_write = self._clock.now()

    async def until_quiet(self, system: VirtualSystem) -> None:
        await system.until(
            lambda: self._clock.now() - self.last_write >= QUIET,
            within=timedelta(hours=2),
            why=f"still writing: {self.counts.most_common(5)}",
        )


def an_object(api_version: str, kind: str, name: str, **more) -> dict:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **more}


def a_template(*, lasts: str = "", scheduler: str = "", restart: str = "", sidecar: bool = False) -> dict:
    spec: dict = {"containers": [CONTAINER]}
    if sidecar:
        spec["initContainers"] = [SIDECAR]
    if scheduler:
        spec["schedulerName"] = scheduler
    if restart:
        spec["restartPolicy"] = restart
    return {"metadata": {"labels": LABELS, "annotations": {DURATION: lasts} if lasts else {}}, "spec": spec}


def a_workload(kind: str, *, replicas: int | None, **template) -> dict:
    spec: dict = {"selector": {"matchLabels": LABELS}, "template": a_template(**template)}
    if replicas is not None:
        spec["replicas"] = replicas
    return an_object("apps/v1", kind, kind.lower(), spec=spec)


QUOTAS = [
    an_object("v1", "ResourceQuota", "ports", spec={"hard": {"services.nodeports": "5", "services": "10"}}),
    an_object(
        "v1",
        "ResourceQuota",
        "compute",
        spec={"hard": {"requests.cpu": "50", "pods": "100", "count/pods": "200"}},
    ),
    an_object("v1", "ResourceQuota", "small", spec={"hard": {"pods": "100"}, "scopes": ["BestEffort"]}),
    an_object(
        "v1",
        "ResourceQuota",
        "objects",
        spec={"hard": {"count/jobs.batch.volcano.sh": "50", "configmaps": "50", "requests.storage": "10Gi"}},
    ),
]
PORTS = [{"name": "http", "port": 80}]
SERVICES = [
    an_object("v1", "Service", "outside", spec={"type": "NodePort", "selector": LABELS, "ports": PORTS}),
    an_object("v1", "Service", "headless", spec={"clusterIP": "None", "selector": LABELS, "ports": PORTS}),
    an_object("v1", "Service", "inside", spec={"selector": LABELS, "ports": PORTS}),
    an_object("v1", "Service", "empty", spec={"selector": {"app": "none"}, "ports": PORTS}),
]
WORKLOADS = [
    a_workload("Deployment", replicas=3, sidecar=True),
    a_workload("StatefulSet", replicas=2),
    a_workload("DaemonSet", replicas=None),
    an_object("v1", "Pod", "with-sidecar", spec=a_template(sidecar=True)["spec"]),
    an_object("v1", "Pod", "pod-level", spec={**a_template()["spec"], "resources": {"requests": {"cpu": "1"}}}),
    an_object("batch/v1", "Job", "short", spec={"template": a_template(lasts="5s", restart="Never")}),
    an_object(
        "policy/v1",
        "PodDisruptionBudget",
        "budget",
        spec={"minAvailable": 1, "selector": {"matchLabels": LABELS}},
    ),
    an_object(
        "v1",
        "PersistentVolumeClaim",
        "claim",
        spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    ),
]
CRONS = [
    an_object(
        "batch/v1",
        "CronJob",
        "yearly",
        spec={
            "schedule": "0 0 1 1 *",
            "jobTemplate": {"spec": {"template": a_template(lasts="5s", restart="Never")}},
        },
    ),
    an_object(
        "batch/v1",
        "CronJob",
        "suspended",
        spec={
            "schedule": "* * * * *",
            "suspend": True,
            "jobTemplate": {"spec": {"template": a_template(lasts="5s", restart="Never")}},
        },
    ),
    an_object(
        "batch.volcano.sh/v1alpha1",
        "CronJob",
        "volcano-yearly",
        spec={"schedule": "0 0 1 1 *", "jobTemplate": {"spec": a_job()["spec"]}},
    ),
    an_object(
        "batch.volcano.sh/v1alpha1",
        "CronJob",
        "volcano-suspended",
        spec={"schedule": "* * * * *", "suspend": True, "jobTemplate": {"spec": a_job()["spec"]}},
    ),
]
FLOW = [
    an_object("flow.volcano.sh/v1alpha1", "JobTemplate", "step", spec=a_job("step", a_task(lasts="5s"))["spec"]),
    an_object("flow.volcano.sh/v1alpha1", "JobTemplate", "last", spec=a_job("last", a_task(lasts="5s"))["spec"]),
    an_object(
        "flow.volcano.sh/v1alpha1",
        "JobFlow",
        "flow",
        spec={
            "jobRetainPolicy": "retain",
            "flows": [{"name": "step"}, {"name": "last", "dependsOn": {"targets": ["step"]}}],
        },
    ),
]
JOBS = [
    a_queue("small", weight=1, capability={"cpu": "4"}),
    a_job("running", a_task(replicas=2), plugins={"svc": [], "env": [], "ssh": []}),
    a_job("done", a_task(lasts="3s")),
    a_job("broken", a_task(lasts="3s", exits=1, replicas=2)),
    a_job("too-large", a_task(replicas=3, cpu="900")),
    a_job("held-back", a_task(replicas=3, cpu="2"), queue="small"),
    an_object("v1", "Pod", "plain", spec=a_template(scheduler="volcano")["spec"]),
    a_workload("ReplicaSet", replicas=2, scheduler="volcano"),
]


def hypernodes() -> list[dict]:
    def a_switch(name: str, tier: int, *members: dict) -> dict:
        spec = {"tier": tier, "members": list(members)}
        return an_object("topology.volcano.sh/v1alpha1", "HyperNode", name, spec=spec)

    def members(kind: str, *names: str) -> list[dict]:
        return [{"type": kind, "selector": {"exactMatch": {"name": name}}} for name in names]

    return [
        a_switch("rack-0", 1, *members("Node", "sim-0", "sim-1")),
        a_switch("rack-1", 1, *members("Node", "sim-2", "sim-3")),
        a_switch("spine", 2, *members("HyperNode", "rack-0", "rack-1")),
    ]


def test_an_idle_system_writes_nothing_but_leases():
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        writes = WriteCounter(system)
        for each in (*QUOTAS, *SERVICES, *WORKLOADS, *CRONS, *FLOW, *JOBS, *hypernodes()):
            await system.apply(each)
        await system.until(lambda: system.phase("running") == "Running" and system.phase("flow-last") == "Completed")
        await writes.until_quiet(system)
        assert len(system.mirror.all(Pod)) >= 15, system.summary()
        assert system.phase("too-large") == "Pending" and system.phase("broken") == "Failed", system.summary()

        writes.counts.clear()
        writes.heartbeats = 0
        await system.clock.sleep(IDLE)

        assert not writes.counts, writes.counts.most_common()
        assert writes.heartbeats > 0, "the counter sees writes"
        assert system.mirror.all(Job)
