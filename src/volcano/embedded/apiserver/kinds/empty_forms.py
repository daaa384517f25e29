"""The empty form of each built-in kind: what kube-apiserver sends as the object of a BOOKMARK event besides metadata.

These are the fields that Kubernetes' types always write. Typed clients decode a bookmark into the kind and rely on
`spec` and `status` being there. The contract suite compares every row with a real kube-apiserver.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from volcano.api.meta import JSON

_POD_TEMPLATE: Final[JSON] = {"metadata": {}, "spec": {"containers": None}}
_ROLE_REF: Final[JSON] = {"apiGroup": "", "kind": "", "name": ""}
_SCALE_TARGET: Final[JSON] = {"kind": "", "name": ""}

EMPTY_FORMS: Final[Mapping[tuple[str, str], JSON]] = {
    ("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy"): {"spec": {}},
    ("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicyBinding"): {"spec": {}},
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"): {"spec": {}, "status": {}},
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding"): {"spec": {}},
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"): {
        "spec": {"group": "", "names": {"kind": "", "plural": ""}, "scope": "", "versions": None},
        "status": {"acceptedNames": {"kind": "", "plural": ""}, "conditions": None, "storedVersions": None},
    },
    ("apiregistration.k8s.io/v1", "APIService"): {
        "spec": {"groupPriorityMinimum": 0, "versionPriority": 0},
        "status": {},
    },
    ("apps/v1", "ControllerRevision"): {"data": None, "revision": 0},
    ("apps/v1", "DaemonSet"): {
        "spec": {"selector": None, "template": _POD_TEMPLATE, "updateStrategy": {}},
        "status": {"currentNumberScheduled": 0, "desiredNumberScheduled": 0, "numberMisscheduled": 0, "numberReady": 0},
    },
    ("apps/v1", "Deployment"): {
        "spec": {"replicas": 0, "selector": None, "strategy": {}, "template": _POD_TEMPLATE},
        "status": {},
    },
    ("apps/v1", "ReplicaSet"): {
        "spec": {"replicas": 0, "selector": None, "template": _POD_TEMPLATE},
        "status": {"replicas": 0},
    },
    ("apps/v1", "StatefulSet"): {
        "spec": {"replicas": 0, "selector": None, "serviceName": "", "template": _POD_TEMPLATE, "updateStrategy": {}},
        "status": {"availableReplicas": 0, "replicas": 0},
    },
    ("autoscaling/v1", "HorizontalPodAutoscaler"): {
        "spec": {"maxReplicas": 0, "scaleTargetRef": _SCALE_TARGET},
        "status": {"currentReplicas": 0, "desiredReplicas": 0},
    },
    ("autoscaling/v2", "HorizontalPodAutoscaler"): {
        "spec": {"maxReplicas": 0, "scaleTargetRef": _SCALE_TARGET},
        "status": {"currentMetrics": None, "desiredReplicas": 0},
    },
    ("batch/v1", "CronJob"): {
        "spec": {"jobTemplate": {"metadata": {}, "spec": {"template": _POD_TEMPLATE}}, "schedule": ""},
        "status": {},
    },
    ("batch/v1", "Job"): {"spec": {"template": _POD_TEMPLATE}, "status": {}},
    ("certificates.k8s.io/v1", "CertificateSigningRequest"): {
        "spec": {"request": None, "signerName": ""},
        "status": {},
    },
    ("coordination.k8s.io/v1", "Lease"): {"spec": {}},
    ("discovery.k8s.io/v1", "EndpointSlice"): {"addressType": "", "endpoints": None, "ports": None},
    ("events.k8s.io/v1", "Event"): {
        "deprecatedFirstTimestamp": None,
        "deprecatedLastTimestamp": None,
        "deprecatedSource": {},
        "eventTime": None,
        "regarding": {},
    },
    ("flowcontrol.apiserver.k8s.io/v1", "FlowSchema"): {
        "spec": {"matchingPrecedence": 0, "priorityLevelConfiguration": {"name": ""}},
        "status": {},
    },
    ("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration"): {"spec": {"type": ""}, "status": {}},
    ("networking.k8s.io/v1", "IPAddress"): {"spec": {}},
    ("networking.k8s.io/v1", "Ingress"): {"spec": {}, "status": {"loadBalancer": {}}},
    ("networking.k8s.io/v1", "IngressClass"): {"spec": {}},
    ("networking.k8s.io/v1", "NetworkPolicy"): {"spec": {"podSelector": {}}},
    ("networking.k8s.io/v1", "ServiceCIDR"): {"spec": {}, "status": {}},
    ("node.k8s.io/v1", "RuntimeClass"): {"handler": ""},
    ("policy/v1", "PodDisruptionBudget"): {
        "spec": {},
        "status": {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0},
    },
    ("rbac.authorization.k8s.io/v1", "ClusterRole"): {"rules": None},
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"): {"roleRef": _ROLE_REF},
    ("rbac.authorization.k8s.io/v1", "Role"): {"rules": None},
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): {"roleRef": _ROLE_REF},
    ("resource.k8s.io/v1", "DeviceClass"): {"spec": {}},
    ("resource.k8s.io/v1", "ResourceClaim"): {"spec": {"devices": {"requests": None}}, "status": {}},
    ("resource.k8s.io/v1", "ResourceClaimTemplate"): {
        "spec": {"metadata": {}, "spec": {"devices": {"requests": None}}}
    },
    ("resource.k8s.io/v1", "ResourceSlice"): {
        "spec": {"driver": "", "pool": {"generation": 0, "name": "", "resourceSliceCount": 0}}
    },
    ("scheduling.k8s.io/v1", "PriorityClass"): {"value": 0},
    ("storage.k8s.io/v1", "CSIDriver"): {"spec": {}},
    ("storage.k8s.io/v1", "CSINode"): {"spec": {"drivers": None}},
    ("storage.k8s.io/v1", "CSIStorageCapacity"): {"storageClassName": ""},
    ("storage.k8s.io/v1", "StorageClass"): {"provisioner": ""},
    ("storage.k8s.io/v1", "VolumeAttachment"): {
        "spec": {"attacher": "", "nodeName": "", "source": {}},
        "status": {"attached": False},
    },
    ("storage.k8s.io/v1", "VolumeAttributesClass"): {"driverName": ""},
    ("v1", "Event"): {
        "eventTime": None,
        "firstTimestamp": None,
        "involvedObject": {},
        "lastTimestamp": None,
        "reportingComponent": "",
        "reportingInstance": "",
        "source": {},
    },
    ("v1", "LimitRange"): {"spec": {"limits": None}},
    ("v1", "Namespace"): {"spec": {}, "status": {}},
    ("v1", "Node"): {
        "spec": {},
        "status": {
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
            "nodeInfo": {
                "architecture": "",
                "bootID": "",
                "containerRuntimeVersion": "",
                "kernelVersion": "",
                "kubeProxyVersion": "",
                "kubeletVersion": "",
                "machineID": "",
                "operatingSystem": "",
                "osImage": "",
                "systemUUID": "",
            },
        },
    },
    ("v1", "PersistentVolume"): {"spec": {}, "status": {}},
    ("v1", "PersistentVolumeClaim"): {"spec": {"resources": {}}, "status": {}},
    ("v1", "Pod"): {"spec": {"containers": None}, "status": {}},
    ("v1", "PodTemplate"): {"template": _POD_TEMPLATE},
    ("v1", "ReplicationController"): {"spec": {}, "status": {"replicas": 0}},
    ("v1", "ResourceQuota"): {"spec": {}, "status": {}},
    ("v1", "Service"): {"spec": {}, "status": {"loadBalancer": {}}},
}
"""By apiVersion and kind; a kind without a row has only its metadata."""
