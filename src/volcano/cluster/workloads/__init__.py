"""Kubernetes' own workloads, for the embedded system: Deployments and all that make pods or Jobs."""

from volcano.cluster.workloads.batch_jobs import BatchJobController
from volcano.cluster.workloads.cron_jobs import BatchCronJobController
from volcano.cluster.workloads.daemon_sets import DaemonSetController
from volcano.cluster.workloads.deployments import DeploymentController
from volcano.cluster.workloads.replica_sets import ReplicaSetController, ReplicationControllerController
from volcano.cluster.workloads.stateful_sets import StatefulSetController

__all__ = [
    "BatchCronJobController",
    "BatchJobController",
    "DaemonSetController",
    "DeploymentController",
    "ReplicaSetController",
    "ReplicationControllerController",
    "StatefulSetController",
]
