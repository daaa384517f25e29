"""The controllers that Kubernetes runs itself, for the embedded system; each decides without I/O like all others.

ResourceQuotas have none here: the API server keeps their status (decision 22).
"""

from volcano.embedded.cluster.disruption import DisruptionController
from volcano.embedded.cluster.endpoints import EndpointsController
from volcano.embedded.cluster.namespaces import NamespaceController, RootCertificateController, ServiceAccountController
from volcano.embedded.cluster.node_health import NodeHealthController
from volcano.embedded.cluster.owners import OwnerGarbageController
from volcano.embedded.cluster.pod_garbage import PodGarbageController
from volcano.embedded.cluster.taint_eviction import TaintEvictionController
from volcano.embedded.cluster.volumes import VolumeBinderController

__all__ = [
    "DisruptionController",
    "EndpointsController",
    "NamespaceController",
    "NodeHealthController",
    "OwnerGarbageController",
    "PodGarbageController",
    "RootCertificateController",
    "ServiceAccountController",
    "TaintEvictionController",
    "VolumeBinderController",
]
