"""Pictures of made-up clusters, for tests of what `vcctl top` makes of them."""

from collections import Counter
from datetime import UTC, datetime

from volcano.api.pods.amounts import added
from volcano.cli.node import requested_by_node
from volcano.cli.top.cluster_picture import ClusterPicture, allocatable

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


def job(name, phase="Running", *, running=0, replicas=2, queue="default", message="", created="2026-01-01T11:55:00Z"):
    return {
        "metadata": {"name": name, "namespace": "team", "creationTimestamp": created},
        "spec": {"queue": queue, "minAvailable": 1, "tasks": [{"name": "worker", "replicas": replicas}]},
        "status": {"state": {"phase": phase, "message": message}, "running": running},
    }


def node(name, cpu="8", memory="32Gi", **more):
    allocatable = {"cpu": cpu, "memory": memory, "pods": "110", **more}
    return {
        "metadata": {"name": name},
        "status": {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def pod(name, job_name, on, cpu="1", memory="1Gi", phase="Running", **more):
    requests = {"cpu": cpu, "memory": memory, **more}
    return {
        "metadata": {
            "name": name, "namespace": "team",
            "annotations": {"volcano.sh/job-name": job_name, "volcano.sh/task-spec": "worker"},
        },
        "spec": {"nodeName": on, "containers": [{"name": "c", "resources": {"requests": requests, "limits": more}}]},
        "status": {"phase": phase},
    }  # fmt: skip


def queue(name, **spec):
    return {"metadata": {"name": name}, "spec": spec, "status": {"state": "Open", "allocated": {"cpu": "3"}}}


def picture(*, jobs=(), nodes=(), pods=(), queues=(), phases=None, **more):
    return ClusterPicture(
        at=NOW, queues=list(queues), jobs=list(jobs), nodes=list(nodes), pods=list(pods),
        phases_by_queue={name: Counter(counts) for name, counts in (phases or {}).items()},
        used=requested_by_node(list(pods)), total=added(*(allocatable(each) for each in nodes)), **more,
    )  # fmt: skip
