"""Which of Kubernetes' own controllers the embedded system has."""

from __future__ import annotations

from volcano.cluster.disruption import DisruptionController
from volcano.cluster.endpoints import EndpointsController
from volcano.cluster.namespaces import NamespaceController, RootCertificateController, ServiceAccountController
from volcano.cluster.node_health import NodeHealthController
from volcano.cluster.owners import OwnerGarbageController
from volcano.cluster.pod_garbage import PodGarbageController
from volcano.cluster.quotas import ResourceQuotaController
from volcano.cluster.taint_eviction import TaintEvictionController
from volcano.cluster.volumes import VolumeBinderController
from volcano.cluster.workloads import (
    BatchCronJobController,
    BatchJobController,
    DaemonSetController,
    DeploymentController,
    ReplicaSetController,
    ReplicationControllerController,
    StatefulSetController,
)
from volcano.machinery.controller import Controller


def make_cluster_controllers(root_certificate: str = "") -> list[Controller]:
    controllers: list[Controller] = [
        OwnerGarbageController(),
        NamespaceController(),
        ServiceAccountController(),
        NodeHealthController(),
        TaintEvictionController(),
        PodGarbageController(),
        EndpointsController(),
        DisruptionController(),
        ResourceQuotaController(),
        VolumeBinderController(),
        DeploymentController(),
        ReplicaSetController(),
        ReplicationControllerController(),
        StatefulSetController(),
        DaemonSetController(),
        BatchJobController(),
        BatchCronJobController(),
    ]
    if root_certificate:
        controllers.append(RootCertificateController(certificate=root_certificate))
    return controllers
