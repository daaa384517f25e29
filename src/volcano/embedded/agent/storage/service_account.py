"""A pod's way to the API server: token, certificate and namespace where in-cluster clients look for them. Pure.

In Kubernetes admission writes this volume into every pod. The agent adds it when it starts one: the process sees the
same, and stored and watched pods stay smaller.
"""

from __future__ import annotations

from typing import Final

import msgspec

from volcano.api.kubelet import AgentContainer, AgentPod, AgentVolume, VolumeMount
from volcano.api.meta import JSON

TOKEN_FOLDER: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
TOKEN_LIFETIME_SECONDS: Final = 3607
ROOT_CERTIFICATE: Final = "kube-root-ca.crt"
SOURCES: Final[tuple[JSON, ...]] = (
    {"serviceAccountToken": {"path": "token", "expirationSeconds": TOKEN_LIFETIME_SECONDS}},
    {"configMap": {"name": ROOT_CERTIFICATE, "items": [{"key": "ca.crt", "path": "ca.crt"}], "optional": True}},
    {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
)


def wants_token(pod: AgentPod, *, account_says: bool | None) -> bool:
    """The pod's own word counts before its account's; neither saying anything means yes."""
    said = pod.spec.automount_service_account_token
    wanted = said if said is not None else account_says is not False
    return wanted and any(_lacks_it(container) for container in pod.all_containers)


def with_token(pod: AgentPod) -> AgentPod:
    """The pod with the volume, mounted in each container that has nothing else there."""
    name = f"kube-api-access-{pod.uid[:5]}"
    volume = AgentVolume(name=name, projected={"sources": list(SOURCES)})
    mount = VolumeMount(name=name, mount_path=TOKEN_FOLDER, read_only=True)

    def mounted(containers: list[AgentContainer]) -> list[AgentContainer]:
        return [
            msgspec.structs.replace(each, volume_mounts=[*each.volume_mounts, mount]) if _lacks_it(each) else each
            for each in containers
        ]

    spec = msgspec.structs.replace(
        pod.spec,
        volumes=[*pod.spec.volumes, volume],
        containers=mounted(pod.spec.containers),
        init_containers=mounted(pod.spec.init_containers),
    )
    return msgspec.structs.replace(pod, spec=spec)


def _lacks_it(container: AgentContainer) -> bool:
    return all(mount.mount_path.rstrip("/") != TOKEN_FOLDER for mount in container.volume_mounts)
