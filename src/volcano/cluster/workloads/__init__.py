"""Kubernetes' own workloads, for the embedded system: Deployments, ReplicaSets, StatefulSets, DaemonSets and Jobs."""

from volcano.cluster.workloads.batch_jobs import BatchJobController
from volcano.cluster.workloads.daemon_sets import DaemonSetController
from volcano.cluster.workloads.deployments import DeploymentController
from volcano.cluster.workloads.replica_sets import ReplicaSetController, ReplicationControllerController
from volcano.cluster.workloads.stateful_sets import StatefulSetController

__all__ = [
    "BatchJobController",
    "DaemonSetController",
    "DeploymentController",
    "ReplicaSetController",
    "ReplicationControllerController",
    "StatefulSetController",
]
