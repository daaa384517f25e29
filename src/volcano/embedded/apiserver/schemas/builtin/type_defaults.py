"""The defaults of Kubernetes' types: a table of constants, and functions where one field depends on another."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from volcano.api.copies import copied
from volcano.api.meta import JSON

CORE: Final = "io.k8s.api.core.v1."
APPS: Final = "io.k8s.api.apps.v1."
AUTOSCALING: Final = "io.k8s.api.autoscaling."
BATCH: Final = "io.k8s.api.batch.v1."
STORAGE: Final = "io.k8s.api.storage.v1."
NETWORKING: Final = "io.k8s.api.networking.v1."
RBAC: Final = "io.k8s.api.rbac.v1."
RESOURCE: Final = "io.k8s.api.resource.v1."
ADMISSION: Final = "io.k8s.api.admissionregistration.v1."
EXTENSIONS: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."

FILE_MODE: Final = 0o644
HOUR_SECONDS: Final = 3600
DEFAULT_CPU_UTILIZATION: Final = 80
_ALL_IN_15_SECONDS: Final = {"type": "Percent", "value": 100, "periodSeconds": 15}
SCALING_RULES: Final[Mapping[str, Mapping[str, Any]]] = {
    "scaleUp": {
        "stabilizationWindowSeconds": 0,
        "selectPolicy": "Max",
        "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}, _ALL_IN_15_SECONDS],
    },
    "scaleDown": {"selectPolicy": "Max", "policies": [_ALL_IN_15_SECONDS]},
}
_WEBHOOK: Final = {
    "failurePolicy": "Fail",
    "matchPolicy": "Equivalent",
    "namespaceSelector": {},
    "objectSelector": {},
    "timeoutSeconds": 10,
}

CONSTANTS: Final[Mapping[str, Mapping[str, Any]]] = {
    CORE + "PodSpec": {
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
        "schedulerName": "default-scheduler",
    },
    CORE + "Container": {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"},
    CORE + "EphemeralContainer": {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"},
    CORE + "ContainerPort": {"protocol": "TCP"},
    CORE + "Probe": {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3},
    CORE + "HTTPGetAction": {"path": "/", "scheme": "HTTP"},
    CORE + "GRPCAction": {"service": ""},
    CORE + "ObjectFieldSelector": {"apiVersion": "v1"},
    CORE + "ResourceFieldSelector": {"divisor": "0"},
    CORE + "Event": {"reportingComponent": "", "reportingInstance": ""},
    CORE + "SecretVolumeSource": {"defaultMode": FILE_MODE},
    CORE + "ConfigMapVolumeSource": {"defaultMode": FILE_MODE},
    CORE + "DownwardAPIVolumeSource": {"defaultMode": FILE_MODE},
    CORE + "ProjectedVolumeSource": {"defaultMode": FILE_MODE},
    CORE + "ServiceAccountTokenProjection": {"expirationSeconds": HOUR_SECONDS},
    CORE + "ISCSIVolumeSource": {"iscsiInterface": "default"},
    CORE + "ISCSIPersistentVolumeSource": {"iscsiInterface": "default"},
    CORE + "RBDVolumeSource": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    CORE + "RBDPersistentVolumeSource": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    CORE + "ScaleIOVolumeSource": {"fsType": "xfs", "storageMode": "ThinProvisioned"},
    CORE + "ScaleIOPersistentVolumeSource": {"fsType": "xfs", "storageMode": "ThinProvisioned"},
    CORE + "AzureDiskVolumeSource": {"cachingMode": "ReadWrite", "fsType": "ext4", "kind": "Shared", "readOnly": False},
    CORE + "Secret": {"type": "Opaque"},
    CORE + "ServicePort": {"protocol": "TCP"},
    CORE + "EndpointPort": {"protocol": "TCP"},
    CORE + "PersistentVolumeSpec": {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"},
    CORE + "PersistentVolumeStatus": {"phase": "Pending"},
    CORE + "PersistentVolumeClaimSpec": {"volumeMode": "Filesystem"},
    CORE + "NamespaceStatus": {"phase": "Active"},
    CORE + "ReplicationControllerSpec": {"replicas": 1},
    CORE + "ReplicationControllerStatus": {"replicas": 0},
    APPS + "DeploymentSpec": {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600},
    APPS + "ReplicaSetSpec": {"replicas": 1},
    APPS + "ReplicaSetStatus": {"replicas": 0},
    APPS + "StatefulSetSpec": {
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "podManagementPolicy": "OrderedReady",
        "serviceName": "",
        "persistentVolumeClaimRetentionPolicy": {},
    },
    APPS + "StatefulSetPersistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
    APPS + "StatefulSetStatus": {"replicas": 0, "availableReplicas": 0},
    APPS + "DaemonSetSpec": {"revisionHistoryLimit": 10},
    APPS + "DaemonSetStatus": {
        "currentNumberScheduled": 0,
        "desiredNumberScheduled": 0,
        "numberMisscheduled": 0,
        "numberReady": 0,
    },
    "io.k8s.api.policy.v1.PodDisruptionBudgetStatus": {
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "disruptionsAllowed": 0,
        "expectedPods": 0,
    },
    AUTOSCALING + "v1.HorizontalPodAutoscalerSpec": {"minReplicas": 1},
    AUTOSCALING + "v2.HorizontalPodAutoscalerSpec": {"minReplicas": 1},
    BATCH + "CronJobSpec": {
        "concurrencyPolicy": "Allow",
        "suspend": False,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
    },
    BATCH + "PodFailurePolicyOnPodConditionsPattern": {"status": "True"},
    "io.k8s.api.scheduling.v1.PriorityClass": {"preemptionPolicy": "PreemptLowerPriority"},
    STORAGE + "StorageClass": {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
    STORAGE + "CSIDriverSpec": {
        "attachRequired": True,
        "podInfoOnMount": False,
        "storageCapacity": False,
        "fsGroupPolicy": "ReadWriteOnceWithFSType",
        "volumeLifecycleModes": ["Persistent"],
        "requiresRepublish": False,
        "seLinuxMount": False,
    },
    NETWORKING + "NetworkPolicyPort": {"protocol": "TCP"},
    NETWORKING + "IngressClassParametersReference": {"scope": "Cluster"},
    RBAC + "RoleRef": {"apiGroup": "rbac.authorization.k8s.io"},
    ADMISSION + "ValidatingWebhook": _WEBHOOK,
    ADMISSION + "MutatingWebhook": {**_WEBHOOK, "reinvocationPolicy": "Never"},
    ADMISSION + "RuleWithOperations": {"scope": "*"},
    ADMISSION + "ServiceReference": {"port": 443},
    EXTENSIONS + "ServiceReference": {"port": 443},
    EXTENSIONS + "CustomResourceDefinitionSpec": {"conversion": {"strategy": "None"}},
    RESOURCE + "ExactDeviceRequest": {"allocationMode": "ExactCount"},
    RESOURCE + "DeviceSubRequest": {"allocationMode": "ExactCount"},
    RESOURCE + "DeviceToleration": {"operator": "Equal"},
    "io.k8s.api.discovery.v1.EndpointPort": {"protocol": "TCP"},
}

ZERO_IS_UNSET: Final[Mapping[str, frozenset[str]]] = {
    CORE + "Probe": frozenset(("timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")),
}
"""Fields in which 0 means the default; elsewhere 0 is an answer."""

_REFERENCE: Final = re.compile(
    r"[a-zA-Z0-9][a-zA-Z0-9.-]*(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*"
    r"(:(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?(?P<digest>@[A-Za-z0-9+._-]+:[0-9a-fA-F]{32,})?",
    re.ASCII,
)


def _objects(value: Any) -> Iterator[JSON]:
    """The objects of a list; other values are left for the type check to report."""
    return (item for item in value if isinstance(item, dict)) if isinstance(value, list) else iter(())


def _object(parent: JSON, field: str) -> JSON:
    found = parent.get(field)
    return found if isinstance(found, dict) else {}


def _ensured(parent: JSON, field: str) -> JSON:
    """The object at a field, made when it is missing."""
    if parent.get(field) is None:
        parent[field] = {}
    return _object(parent, field)


def _unset(value: Any) -> bool:
    return value is None or value == ""


def pull_policy(image: Any) -> str:
    """Always for the tag `latest`, explicit or implied."""
    found = _REFERENCE.fullmatch(image) if isinstance(image, str) and len(image) < 4096 else None
    if found is None:
        return "IfNotPresent"
    latest = found["tag"] == "latest" or (found["tag"] is None and found["digest"] is None)
    return "Always" if latest else "IfNotPresent"


def _container(container: JSON) -> None:
    if _unset(container.get("imagePullPolicy")):
        container["imagePullPolicy"] = pull_policy(container.get("image"))


def _volume(volume: JSON) -> None:
    if not any(value is not None for field, value in volume.items() if field != "name"):
        volume["emptyDir"] = {}
    image = volume.get("image")
    if isinstance(image, dict) and _unset(image.get("pullPolicy")):
        image["pullPolicy"] = pull_policy(image.get("reference"))


def _host_path(source: JSON) -> None:
    if source.get("type") is None:
        source["type"] = ""


def _pod(pod: JSON) -> None:
    spec = _ensured(pod, "spec")
    for field in ("containers", "initContainers"):
        for container in _objects(spec.get(field)):
            resources = _object(container, "resources")
            limits = _object(resources, "limits")
            if "limits" in resources and isinstance(resources["limits"], dict):
                requests = _ensured(resources, "requests")
                for name, amount in limits.items():
                    requests.setdefault(name, amount)
            if spec.get("hostNetwork") is True:
                for port in _objects(container.get("ports")):
                    if not port.get("hostPort") and port.get("containerPort"):
                        port["hostPort"] = port["containerPort"]
    if spec.get("enableServiceLinks") is None:
        spec["enableServiceLinks"] = True


def _pod_spec(spec: JSON) -> None:
    """The old name of the service account is kept beside the new one."""
    new, old = spec.get("serviceAccountName"), spec.get("serviceAccount")
    if not _unset(new):
        spec["serviceAccount"] = new
    elif not _unset(old):
        spec["serviceAccountName"] = old


def _service(service: JSON) -> None:
    spec = _ensured(service, "spec")
    if _unset(spec.get("sessionAffinity")):
        spec["sessionAffinity"] = "None"
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        client = _ensured(_ensured(spec, "sessionAffinityConfig"), "clientIP")
        if client.get("timeoutSeconds") is None:
            client["timeoutSeconds"] = 3 * HOUR_SECONDS
    if _unset(spec.get("type")):
        spec["type"] = "ClusterIP"
    for port in _objects(spec.get("ports")):
        if not port.get("targetPort") and "port" in port:
            port["targetPort"] = port["port"]
    open_outside = spec["type"] in ("NodePort", "LoadBalancer") or (
        spec["type"] == "ClusterIP" and bool(spec.get("externalIPs"))
    )
    if open_outside and _unset(spec.get("externalTrafficPolicy")):
        spec["externalTrafficPolicy"] = "Cluster"
    if spec["type"] in ("ClusterIP", "NodePort", "LoadBalancer") and spec.get("internalTrafficPolicy") is None:
        spec["internalTrafficPolicy"] = "Cluster"
    if spec["type"] == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is None:
        spec["allocateLoadBalancerNodePorts"] = True


def _namespace(namespace: JSON) -> None:
    metadata = _object(namespace, "metadata")
    if isinstance(metadata.get("name"), str) and metadata["name"]:
        _ensured(metadata, "labels")["kubernetes.io/metadata.name"] = metadata["name"]


def _claim(claim: JSON) -> None:
    status = _ensured(claim, "status")
    if _unset(status.get("phase")):
        status["phase"] = "Pending"


def _node_status(status: JSON) -> None:
    if status.get("allocatable") is None and isinstance(status.get("capacity"), dict):
        status["allocatable"] = dict(status["capacity"])


def _limit_range_item(item: JSON) -> None:
    if item.get("type") != "Container":
        return
    limits, requests = _ensured(item, "default"), _ensured(item, "defaultRequest")
    for source, target in ((item.get("max"), limits), (limits, requests), (item.get("min"), requests)):
        for name, amount in source.items() if isinstance(source, dict) else ():
            target.setdefault(name, amount)
    for field in ("default", "defaultRequest"):
        if not item[field]:
            del item[field]


def _replication_controller(controller: JSON) -> None:
    spec = _ensured(controller, "spec")
    labels = _object(_object(_object(spec, "template"), "metadata"), "labels")
    if labels and not spec.get("selector"):
        spec["selector"] = dict(labels)
    if labels and not _object(controller, "metadata").get("labels"):
        _ensured(controller, "metadata")["labels"] = dict(labels)


def _deployment_strategy(spec: JSON) -> None:
    strategy = _ensured(spec, "strategy")
    if _unset(strategy.get("type")):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling = _ensured(strategy, "rollingUpdate")
        for field in ("maxUnavailable", "maxSurge"):
            if rolling.get(field) is None:
                rolling[field] = "25%"


def _autoscaler(spec: JSON) -> None:
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": DEFAULT_CPU_UTILIZATION}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    behavior = spec.get("behavior")
    if isinstance(behavior, dict):
        for direction, rules in SCALING_RULES.items():
            given = _ensured(behavior, direction)
            for field, value in rules.items():
                if given.get(field) is None:
                    given[field] = copied(value)


def _daemon_set_strategy(spec: JSON) -> None:
    strategy = _ensured(spec, "updateStrategy")
    if _unset(strategy.get("type")):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling = _ensured(strategy, "rollingUpdate")
        for field, value in (("maxUnavailable", 1), ("maxSurge", 0)):
            if rolling.get(field) is None:
                rolling[field] = value


def _stateful_set_strategy(spec: JSON) -> None:
    strategy = _ensured(spec, "updateStrategy")
    if _unset(strategy.get("type")):
        strategy["type"] = "RollingUpdate"
        _ensured(strategy, "rollingUpdate")
    rolling = strategy.get("rollingUpdate")
    if strategy["type"] == "RollingUpdate" and isinstance(rolling, dict) and rolling.get("partition") is None:
        rolling["partition"] = 0
    for claim in _objects(spec.get("volumeClaimTemplates")):
        claim.setdefault("apiVersion", "v1")
        claim.setdefault("kind", "PersistentVolumeClaim")


def _job(job: JSON) -> None:
    spec = _ensured(job, "spec")
    labels = _object(_object(_object(spec, "template"), "metadata"), "labels")
    if labels and not _object(job, "metadata").get("labels"):
        _ensured(job, "metadata")["labels"] = dict(labels)
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    defaults = {
        "parallelism": 1,
        "backoffLimit": 6 if spec.get("backoffLimitPerIndex") is None else 2**31 - 1,
        "completionMode": "NonIndexed",
        "suspend": False,
        "podReplacementPolicy": "TerminatingOrFailed" if spec.get("podFailurePolicy") is None else "Failed",
        "manualSelector": False,
    }
    for field, value in defaults.items():
        if spec.get(field) is None:
            spec[field] = value


def _network_policy_spec(spec: JSON) -> None:
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", *(["Egress"] if spec.get("egress") else [])]


def _subject(subject: JSON) -> None:
    if _unset(subject.get("apiGroup")) and subject.get("kind") in ("User", "Group"):
        subject["apiGroup"] = "rbac.authorization.k8s.io"


def _endpoint_port(port: JSON) -> None:
    if port.get("name") is None:
        port["name"] = ""


def _device_request(request: JSON) -> None:
    if request.get("allocationMode") in (None, "", "ExactCount") and not request.get("count"):
        request["count"] = 1


def _definition(crd: JSON) -> None:
    spec = _ensured(crd, "spec")
    names = _ensured(spec, "names")
    kind = names.get("kind")
    if isinstance(kind, str) and kind:
        if _unset(names.get("singular")):
            names["singular"] = kind.lower()
        if _unset(names.get("listKind")):
            names["listKind"] = f"{kind}List"
    status = _ensured(crd, "status")
    if isinstance(crd.get("status"), dict) and not status.get("storedVersions"):
        stored = [v.get("name") for v in _objects(spec.get("versions")) if v.get("storage") is True]
        if stored:
            status["storedVersions"] = stored[:1]


COMPUTED: Final[Mapping[str, Callable[[JSON], None]]] = {
    CORE + "Pod": _pod,
    CORE + "PodSpec": _pod_spec,
    CORE + "Container": _container,
    CORE + "EphemeralContainer": _container,
    CORE + "Volume": _volume,
    CORE + "HostPathVolumeSource": _host_path,
    CORE + "Service": _service,
    CORE + "Namespace": _namespace,
    CORE + "PersistentVolumeClaim": _claim,
    CORE + "NodeStatus": _node_status,
    CORE + "LimitRangeItem": _limit_range_item,
    CORE + "ReplicationController": _replication_controller,
    APPS + "DeploymentSpec": _deployment_strategy,
    APPS + "DaemonSetSpec": _daemon_set_strategy,
    AUTOSCALING + "v2.HorizontalPodAutoscalerSpec": _autoscaler,
    APPS + "StatefulSetSpec": _stateful_set_strategy,
    BATCH + "Job": _job,
    NETWORKING + "NetworkPolicySpec": _network_policy_spec,
    RBAC + "Subject": _subject,
    "io.k8s.api.discovery.v1.EndpointPort": _endpoint_port,
    RESOURCE + "ExactDeviceRequest": _device_request,
    RESOURCE + "DeviceSubRequest": _device_request,
    EXTENSIONS + "CustomResourceDefinition": _definition,
}
