"""What a Kubernetes would do itself, for the embedded system; each controller a pure decision like all others."""

from volcano.cluster.disruption import DisruptionController
from volcano.cluster.endpoints import EndpointsController
from volcano.cluster.namespaces import NamespaceController, RootCertificateController, ServiceAccountController
from volcano.cluster.node_health import NodeHealthController
from volcano.cluster.owners import OwnerGarbageController
from volcano.cluster.pod_garbage import PodGarbageController
from volcano.cluster.quotas import ResourceQuotaController
from volcano.cluster.taint_eviction import TaintEvictionController
from volcano.cluster.volumes import VolumeBinderController

__all__ = [
    "DisruptionController",
    "EndpointsController",
    "NamespaceController",
    "NodeHealthController",
    "OwnerGarbageController",
    "PodGarbageController",
    "ResourceQuotaController",
    "RootCertificateController",
    "ServiceAccountController",
    "TaintEvictionController",
    "VolumeBinderController",
]
