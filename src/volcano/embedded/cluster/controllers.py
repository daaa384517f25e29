"""Which of Kubernetes' own controllers the embedded system has."""

from __future__ import annotations

from volcano.embedded.cluster.disruption import DisruptionController
from volcano.embedded.cluster.endpoints import EndpointsController
from volcano.embedded.cluster.namespaces import NamespaceController, RootCertificateController, ServiceAccountController
from volcano.embedded.cluster.node_health import NodeHealthController
from volcano.embedded.cluster.owners import OwnerGarbageController
from volcano.embedded.cluster.pod_garbage import PodGarbageController
from volcano.embedded.cluster.resource_claims import ResourceClaimController
from volcano.embedded.cluster.taint_eviction import TaintEvictionController
from volcano.embedded.cluster.volumes import VolumeBinderController
from volcano.embedded.cluster.workloads import (
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
        VolumeBinderController(),
        ResourceClaimController(),
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
