"""Kubernetes' own workloads: Deployment, ReplicaSet, StatefulSet, DaemonSet, Job and what they keep."""

from __future__ import annotations

from typing import Any

from volcano.api.meta import (
    JSON,
    Model,
    Resource,
)


class WorkloadSpec(Model, frozen=True):
    """What ReplicaSets, StatefulSets, Deployments, DaemonSets and ReplicationControllers have in common."""

    replicas: int | None = None
    selector: Any = None
    template: JSON | None = None
    min_ready_seconds: int = 0
    revision_history_limit: int | None = None


class ReplicaSet(Resource, frozen=True):
    spec: WorkloadSpec = WorkloadSpec()
    status: JSON | None = None


class StatefulSetSpec(WorkloadSpec, frozen=True):
    service_name: str = ""
    pod_management_policy: str = ""
    update_strategy: JSON | None = None
    volume_claim_templates: list[JSON] = []
    ordinals: JSON | None = None


class StatefulSet(Resource, frozen=True):
    spec: StatefulSetSpec = StatefulSetSpec()
    status: JSON | None = None


class DeploymentSpec(WorkloadSpec, frozen=True):
    strategy: JSON | None = None
    paused: bool = False
    progress_deadline_seconds: int | None = None


class Deployment(Resource, frozen=True):
    spec: DeploymentSpec = DeploymentSpec()
    status: JSON | None = None


class DaemonSet(Resource, frozen=True):
    spec: WorkloadSpec = WorkloadSpec()
    status: JSON | None = None


class HorizontalPodAutoscaler(Resource, frozen=True):
    spec: JSON = {}
    status: JSON | None = None


class ControllerRevision(Resource, frozen=True):
    data: JSON | None = None
    revision: int = 0


class ReplicationController(Resource, frozen=True):
    spec: WorkloadSpec = WorkloadSpec()
    status: JSON | None = None


class BatchJob(Resource, frozen=True):
    """batch/v1 Job, Kubernetes' own; Volcano's is api.batch.Job."""

    spec: JSON | None = None
    status: JSON | None = None

    @property
    def end_condition(self) -> JSON | None:
        """The condition `Complete` or `Failed` of a Job that has ended; None while it runs."""
        for condition in (self.status or {}).get("conditions") or ():
            if condition.get("type") in ("Complete", "Failed") and condition.get("status") == "True":
                ended: JSON = condition
                return ended
        return None
