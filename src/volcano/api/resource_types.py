"""The rows of the table of kinds: name, path, scope, subresources; api.scheme has the structs that read each.

Programs that pass objects on as they are need the rows alone, and start sooner without the structs.
"""

from __future__ import annotations

from typing import Final

import msgspec


class ResourceType(msgspec.Struct, frozen=True):
    """One kind of object, as URLs and discovery name it."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    singular: str = ""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """`jobs.batch.volcano.sh`, as errors and RBAC messages spell it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def has_status(self) -> bool:
        return "status" in self.subresources

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The URL path of an object, of a namespace's collection, or of all."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        parts = [root]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [part for part in (name, subresource) if part]
        return "/".join(parts)


def _core(kind: str, plural: str, *short: str, cluster: bool = False, sub: tuple[str, ...] = ()) -> ResourceType:
    categories = ("all",) if plural in ("pods", "services", "replicationcontrollers") else ()
    return ResourceType("", "v1", kind, plural, not cluster, short, categories, sub)


def _row(
    api_version: str,
    kind: str,
    plural: str,
    *short: str,
    cluster: bool = False,
    sub: tuple[str, ...] = (),
    all_: bool = False,
) -> ResourceType:
    group, _, version = api_version.partition("/")
    return ResourceType(group, version, kind, plural, not cluster, short, ("all",) if all_ else (), sub)


STATUS: Final = ("status",)
SCALE: Final = ("status", "scale")

BUILT_IN: Final[tuple[ResourceType, ...]] = (
    _core("Namespace", "namespaces", "ns", cluster=True, sub=("status", "finalize")),
    _core("Node", "nodes", "no", cluster=True, sub=("status", "proxy")),
    _core(
        "Pod", "pods", "po",
        sub=(
            "status", "binding", "eviction", "log", "exec", "attach", "portforward", "proxy",
            "ephemeralcontainers", "resize",
        ),
    ),
    _core("Service", "services", "svc", sub=("status", "proxy")),
    _core("Endpoints", "endpoints", "ep"),
    _core("ConfigMap", "configmaps", "cm"),
    _core("Secret", "secrets"),
    _core("PersistentVolume", "persistentvolumes", "pv", cluster=True, sub=STATUS),
    _core("PersistentVolumeClaim", "persistentvolumeclaims", "pvc", sub=STATUS),
    _core("ServiceAccount", "serviceaccounts", "sa", sub=("token",)),
    _core("Event", "events", "ev"),
    _core("ResourceQuota", "resourcequotas", "quota", sub=STATUS),
    _core("LimitRange", "limitranges", "limits"),
    _core("PodTemplate", "podtemplates"),
    _core("ReplicationController", "replicationcontrollers", "rc", sub=SCALE),
    _row("apps/v1", "Deployment", "deployments", "deploy", sub=SCALE, all_=True),
    _row("apps/v1", "ReplicaSet", "replicasets", "rs", sub=SCALE, all_=True),
    _row("apps/v1", "StatefulSet", "statefulsets", "sts", sub=SCALE, all_=True),
    _row("apps/v1", "DaemonSet", "daemonsets", "ds", sub=STATUS, all_=True),
    _row("apps/v1", "ControllerRevision", "controllerrevisions"),
    _row("batch/v1", "Job", "jobs", sub=STATUS, all_=True),
    _row("batch/v1", "CronJob", "cronjobs", "cj", sub=STATUS, all_=True),
    _row("autoscaling/v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers", "hpa", sub=STATUS, all_=True),
    _row("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", "hpa", sub=STATUS, all_=True),
    _row("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", "pdb", sub=STATUS),
    _row("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", "pc", cluster=True),
    _row("storage.k8s.io/v1", "StorageClass", "storageclasses", "sc", cluster=True),
    _row("storage.k8s.io/v1", "CSINode", "csinodes", cluster=True),
    _row("storage.k8s.io/v1", "CSIDriver", "csidrivers", cluster=True),
    _row("storage.k8s.io/v1", "CSIStorageCapacity", "csistoragecapacities"),
    _row("storage.k8s.io/v1", "VolumeAttachment", "volumeattachments", cluster=True, sub=STATUS),
    _row("coordination.k8s.io/v1", "Lease", "leases"),
    _row("events.k8s.io/v1", "Event", "events", "ev"),
    _row("discovery.k8s.io/v1", "EndpointSlice", "endpointslices"),
    _row("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", "netpol"),
    _row("networking.k8s.io/v1", "Ingress", "ingresses", "ing", sub=STATUS),
    _row("networking.k8s.io/v1", "IngressClass", "ingressclasses", cluster=True),
    _row("rbac.authorization.k8s.io/v1", "Role", "roles"),
    _row("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings"),
    _row("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", cluster=True),
    _row("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings", cluster=True),
    _row(
        "apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", "crd", "crds",
        cluster=True, sub=STATUS,
    ),
    _row("apiregistration.k8s.io/v1", "APIService", "apiservices", cluster=True, sub=STATUS),
    _row(
        "admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations",
        cluster=True,
    ),
    _row(
        "admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations",
        cluster=True,
    ),
    _row("resource.k8s.io/v1", "ResourceClaim", "resourceclaims", sub=STATUS),
    _row("resource.k8s.io/v1", "ResourceClaimTemplate", "resourceclaimtemplates"),
    _row("resource.k8s.io/v1", "ResourceSlice", "resourceslices", cluster=True),
    _row("resource.k8s.io/v1", "DeviceClass", "deviceclasses", cluster=True),
)  # fmt: skip

NODE_METRICS: Final = ResourceType("metrics.k8s.io", "v1beta1", "NodeMetrics", "nodes", namespaced=False)
POD_METRICS: Final = ResourceType("metrics.k8s.io", "v1beta1", "PodMetrics", "pods")

VOLCANO: Final[tuple[ResourceType, ...]] = (
    _row("batch.volcano.sh/v1alpha1", "Job", "jobs", "vcjob", "vj", sub=STATUS),
    _row("batch.volcano.sh/v1alpha1", "CronJob", "cronjobs", "cronvcjob", "cronvj", sub=STATUS),
    _row("bus.volcano.sh/v1alpha1", "Command", "commands"),
    _row("scheduling.volcano.sh/v1beta1", "PodGroup", "podgroups", "pg", "podgroup-v1beta1"),
    _row("scheduling.volcano.sh/v1beta1", "Queue", "queues", "q", "queue-v1beta1", cluster=True, sub=STATUS),
    _row("flow.volcano.sh/v1alpha1", "JobTemplate", "jobtemplates", "jt", sub=STATUS),
    _row("flow.volcano.sh/v1alpha1", "JobFlow", "jobflows", "jf", sub=STATUS),
    _row("topology.volcano.sh/v1alpha1", "HyperNode", "hypernodes", "hn", cluster=True, sub=STATUS),
    _row("nodeinfo.volcano.sh/v1alpha1", "Numatopology", "numatopologies", "numatopo", cluster=True),
    _row("shard.volcano.sh/v1alpha1", "NodeShard", "nodeshards", "nsh", cluster=True, sub=STATUS),
    _row("config.volcano.sh/v1alpha1", "ColocationConfiguration", "colocationconfigurations", sub=STATUS),
    _row("reservation.volcano.sh/v1alpha1", "Reservation", "reservations", "rsv", cluster=True, sub=STATUS),
)

ALL_ROWS: Final = {(row.group, row.kind): row for row in (*BUILT_IN, *VOLCANO)}


def find_resource_type(group: str, kind: str) -> ResourceType | None:
    return ALL_ROWS.get((group, kind))
