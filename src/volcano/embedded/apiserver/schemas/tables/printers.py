"""Kubernetes' own kinds in `kubectl get`: the columns of each, and the function of its cells.

Rows are always complete: clients leave out columns of priority 1 unless asked for wide output.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, TypeAlias

from volcano.api.meta import JSON
from volcano.embedded.apiserver.schemas.tables import cluster_cells as cluster
from volcano.embedded.apiserver.schemas.tables import core_cells as core
from volcano.embedded.apiserver.schemas.tables import workload_cells as workloads
from volcano.embedded.apiserver.schemas.tables.pod_cells import pod_cells

Cells: TypeAlias = Callable[[JSON, datetime], list[Any]]

_TEMPLATE: Final = "Containers!, Images!"
_WEBHOOKS: Final = ("Webhooks:integer, Age", cluster.counted("webhooks"))
_BINDINGS: Final = ("Role, Age, Users!, Groups!, ServiceAccounts!", cluster.binding)
_EVENTS: Final = (
    "Last Seen, Type, Reason, Object, Subobject!, Source!, Message, First Seen!, Count!, Name!",
    core.event,
)
_SCALED: Final = f"Desired:integer, Current:integer, Ready:integer, Age, {_TEMPLATE}, Selector!"

PRINTERS: Final[Mapping[tuple[str, str], tuple[str, Cells]]] = {
    ("", "Pod"): (
        "Ready, Status, Restarts, Age, IP!, Node!, Nominated Node!, Readiness Gates!",
        pod_cells,
    ),
    ("", "PodTemplate"): ("Containers, Images, Pod Labels", core.pod_template),
    ("", "ReplicationController"): (_SCALED, core.replicas),
    ("", "Service"): ("Type, Cluster-IP, External-IP, Port(s), Age, Selector!", core.service),
    ("", "Namespace"): ("Status, Age", core.namespace),
    ("", "Node"): (
        "Status, Roles, Age, Version, Internal-IP!, External-IP!, OS-Image!, Kernel-Version!, Container-Runtime!",
        core.node,
    ),
    ("", "ConfigMap"): ("Data, Age", core.config_map),
    ("", "Secret"): ("Type, Data, Age", core.secret),
    ("", "ServiceAccount"): ("Age", core.aged),
    ("", "Endpoints"): ("Endpoints, Age", core.endpoints),
    ("", "PersistentVolume"): (
        "Capacity, Access Modes, Reclaim Policy, Status, Claim, StorageClass, VolumeAttributesClass, Reason, Age, "
        "VolumeMode!",
        core.volume,
    ),
    ("", "PersistentVolumeClaim"): (
        "Status, Volume, Capacity, Access Modes, StorageClass, VolumeAttributesClass, Age, VolumeMode!",
        core.claim,
    ),
    ("", "Event"): _EVENTS,
    ("events.k8s.io", "Event"): _EVENTS,
    ("", "ResourceQuota"): ("Request, Limit, Age", core.quota),
    ("apps", "Deployment"): (f"Ready, Up-to-date, Available, Age, {_TEMPLATE}, Selector!", workloads.deployment),
    ("apps", "ReplicaSet"): (_SCALED, core.replicas),
    ("apps", "StatefulSet"): (f"Ready, Age, {_TEMPLATE}", workloads.stateful_set),
    ("apps", "DaemonSet"): (
        "Desired:integer, Current:integer, Ready:integer, Up-to-date:integer, Available:integer, Node Selector, Age, "
        f"{_TEMPLATE}, Selector!",
        workloads.daemon_set,
    ),
    ("apps", "ControllerRevision"): ("Controller, Revision, Age", workloads.revision),
    ("batch", "Job"): (f"Status, Completions, Duration, Age, {_TEMPLATE}, Selector!", workloads.job),
    ("batch", "CronJob"): (
        f"Schedule, Timezone, Suspend:boolean, Active:integer, Last Schedule, Age, {_TEMPLATE}, Selector!",
        workloads.cron_job,
    ),
    ("autoscaling", "HorizontalPodAutoscaler"): (
        "Reference, Targets, MinPods, MaxPods, Replicas:integer, Age",
        workloads.autoscaler,
    ),
    ("policy", "PodDisruptionBudget"): (
        "Min Available, Max Unavailable, Allowed Disruptions:integer, Age",
        workloads.disruption_budget,
    ),
    ("scheduling.k8s.io", "PriorityClass"): (
        "Value:integer, Global-Default:boolean, Age, PreemptionPolicy",
        cluster.priority_class,
    ),
    ("storage.k8s.io", "StorageClass"): (
        "Provisioner, ReclaimPolicy, VolumeBindingMode, AllowVolumeExpansion, Age",
        cluster.storage_class_row,
    ),
    ("storage.k8s.io", "CSIDriver"): (
        "AttachRequired:boolean, PodInfoOnMount:boolean, StorageCapacity:boolean, TokenRequests, "
        "RequiresRepublish:boolean, Modes, Age",
        cluster.csi_driver,
    ),
    ("storage.k8s.io", "CSINode"): ("Drivers:integer, Age", cluster.counted("spec", "drivers")),
    ("storage.k8s.io", "VolumeAttachment"): ("Attacher, PV, Node, Attached:boolean, Age", cluster.attachment),
    ("storage.k8s.io", "CSIStorageCapacity"): ("StorageClassName, Capacity", cluster.capacity),
    ("coordination.k8s.io", "Lease"): ("Holder, Age", cluster.with_text("spec", "holderIdentity")),
    ("discovery.k8s.io", "EndpointSlice"): ("AddressType, Ports, Endpoints, Age", cluster.endpoint_slice),
    ("networking.k8s.io", "NetworkPolicy"): ("Pod-Selector, Age", cluster.network_policy),
    ("networking.k8s.io", "Ingress"): ("Class, Hosts, Address, Ports, Age", cluster.ingress),
    ("networking.k8s.io", "IngressClass"): ("Controller, Parameters, Age", cluster.ingress_class),
    ("rbac.authorization.k8s.io", "RoleBinding"): _BINDINGS,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _BINDINGS,
    ("apiregistration.k8s.io", "APIService"): ("Service, Available, Age", cluster.api_service),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _WEBHOOKS,
    ("resource.k8s.io", "ResourceClaim"): ("State, Age", cluster.resource_claim),
    ("resource.k8s.io", "ResourceClaimTemplate"): ("Age", core.aged),
    ("resource.k8s.io", "DeviceClass"): ("Age", core.aged),
    ("resource.k8s.io", "ResourceSlice"): ("Node, Driver, Pool, Age", cluster.resource_slice),
}
"""Kind → its columns after the name (`!` marks wide ones, a type follows a colon) and the function of its cells."""
