"""The Node object, its heartbeat conditions and its lease, as the agent writes them. Pure."""

from __future__ import annotations

import copy
import platform
from datetime import datetime
from typing import Final

from volcano.api.meta import JSON
from volcano.api.times import micro_timestamp, timestamp
from volcano.embedded.agent.node.settings import NodeSettings, NodeShape

LEASE_NAMESPACE: Final = "kube-node-lease"
KUBELET_VERSION: Final = "v1.33.0"
_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm"}
_HEALTHY: Final = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "the node has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "the node has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "the node has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "the agent is ready to run pods"),
)


def node_body(shape: NodeShape, settings: NodeSettings, now: datetime, *, runtime: str) -> JSON:
    """The Node to create: the shape's values override the nodes file's, which override the defaults of every node."""
    body: JSON = copy.deepcopy(shape.body) if shape.body else {}
    metadata = body.setdefault("metadata", {})
    metadata["name"] = shape.name
    metadata["labels"] = {**standard_labels(shape.name), **metadata.get("labels", {}), **shape.labels}
    metadata["annotations"] = {**metadata.get("annotations", {}), **shape.annotations}
    if shape.taints:
        body.setdefault("spec", {})["taints"] = [dict(taint) for taint in shape.taints]
    given = body.get("status", {})
    body["status"] = {**given, **node_status(shape, settings, now, runtime=runtime)}
    for amounts in ("capacity", "allocatable"):
        if given.get(amounts):
            body["status"][amounts] = {**body["status"][amounts], **given[amounts]}
    return body


def node_status(shape: NodeShape, settings: NodeSettings, now: datetime, *, runtime: str) -> JSON:
    status: JSON = {
        "capacity": dict(shape.capacity),
        "allocatable": {**shape.capacity, **shape.allocatable},
        "conditions": node_conditions(settings, now),
        "addresses": [
            {"type": "InternalIP", "address": settings.address},
            {"type": "Hostname", "address": shape.name},
        ],
        "nodeInfo": node_system(runtime),
    }
    if settings.kubelet_port:
        status["daemonEndpoints"] = {"kubeletEndpoint": {"Port": settings.kubelet_port}}
    return status


def node_conditions(settings: NodeSettings, now: datetime, *, is_ending: bool = False) -> list[JSON]:
    rows = [*_HEALTHY]
    if is_ending:
        rows[-1] = ("Ready", "False", "KubeletNotReady", "node is shutting down")
    rows += [(name, "True", reason, message) for name, reason, message in settings.conditions]
    stamp = timestamp(now)
    return [
        {
            "type": name,
            "status": status,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": stamp,
            "lastTransitionTime": stamp,
        }
        for name, status, reason, message in rows
    ]


def standard_labels(name: str) -> dict[str, str]:
    system, machine = "linux", _ARCHITECTURES.get(platform.machine(), platform.machine())
    return {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": system,
        "kubernetes.io/arch": machine,
        "beta.kubernetes.io/os": system,
        "beta.kubernetes.io/arch": machine,
    }


def node_system(runtime: str) -> JSON:
    return {
        "machineID": "",
        "systemUUID": "",
        "bootID": "",
        "kernelVersion": platform.release(),
        "osImage": platform.system(),
        "containerRuntimeVersion": f"{runtime}://1",
        "kubeletVersion": KUBELET_VERSION,
        "kubeProxyVersion": "",
        "operatingSystem": "linux",
        "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
    }


def lease_body(shape: NodeShape, settings: NodeSettings, now: datetime) -> JSON:
    return {
        "metadata": {"name": shape.name, "namespace": LEASE_NAMESPACE},
        "spec": {
            "holderIdentity": shape.name,
            "leaseDurationSeconds": int(settings.lease_duration.total_seconds()),
            "renewTime": micro_timestamp(now),
        },
    }
