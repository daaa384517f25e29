"""Controllers for Kubernetes' own workloads: Deployments and the other kinds that create pods or Jobs."""

from volcano.embedded.cluster.workloads.batch_jobs import BatchJobController
from volcano.embedded.cluster.workloads.cron_jobs import BatchCronJobController
from volcano.embedded.cluster.workloads.daemon_sets import DaemonSetController
from volcano.embedded.cluster.workloads.deployments import DeploymentController
from volcano.embedded.cluster.workloads.replica_sets import ReplicaSetController, ReplicationControllerController
from volcano.embedded.cluster.workloads.stateful_sets import StatefulSetController

__all__ = [
    "BatchCronJobController",
    "BatchJobController",
    "DaemonSetController",
    "DeploymentController",
    "ReplicaSetController",
    "ReplicationControllerController",
    "StatefulSetController",
]
