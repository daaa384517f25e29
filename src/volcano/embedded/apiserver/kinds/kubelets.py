"""Where the kubelet of a pod listens."""

from __future__ import annotations

from typing import Final

from volcano.api.errors import BadRequest
from volcano.api.meta import JSON
from volcano.embedded.apiserver.kinds.strategy import existing_object
from volcano.embedded.apiserver.store.contract import ObjectKey, Store

KUBELET_PORT: Final = 10250
INSECURE_ANNOTATION: Final = "volcano.sh/kubelet-scheme"
_PREFERRED: Final = ("InternalIP", "Hostname", "InternalDNS", "ExternalIP", "ExternalDNS")


def kubelet_of_pod(store: Store, pod: JSON) -> tuple[str, int, str]:
    """Host, port and scheme of the kubelet that runs a pod."""
    node_name = (pod.get("spec") or {}).get("nodeName")
    if not node_name:
        raise BadRequest(f"pod {pod['metadata']['name']} does not have a host assigned")
    return kubelet_address(store, node_name)


def kubelet_address(store: Store, node_name: str) -> tuple[str, int, str]:
    """Host, port and scheme of a node's kubelet."""
    node = existing_object(store, ObjectKey("nodes", "", node_name))
    status = node.get("status") or {}
    addresses = {a.get("type"): a.get("address") for a in status.get("addresses") or [] if isinstance(a, dict)}
    host = str(next((addresses[kind] for kind in _PREFERRED if addresses.get(kind)), node_name))
    endpoint = (status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}
    scheme = (node["metadata"].get("annotations") or {}).get(INSECURE_ANNOTATION, "https")
    return (f"[{host}]" if ":" in host else host), int(endpoint.get("Port") or KUBELET_PORT), str(scheme)


def only_container(pod: JSON) -> str:
    """The container meant when none is named: the default one, or the only one."""
    annotated = (pod["metadata"].get("annotations") or {}).get("kubectl.kubernetes.io/default-container")
    if annotated:
        return str(annotated)
    containers = (pod.get("spec") or {}).get("containers") or []
    return str(containers[0].get("name", "")) if len(containers) == 1 else ""
