"""The service account volume of a pod: token, CA and namespace where in-cluster clients look for them. Pure.

In Kubernetes admission writes this volume into every pod. Here the agent adds it when it starts the pod: the process
sees the same files, and stored and watched pods stay smaller.
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


def wants_token(pod: AgentPod, *, account_setting: bool | None) -> bool:
    """Whether to mount a token: the pod's setting overrides its account's, and the default is yes."""
    pod_setting = pod.spec.automount_service_account_token
    wanted = pod_setting if pod_setting is not None else account_setting is not False
    return wanted and any(_lacks_mount(container) for container in pod.all_containers)


def with_token(pod: AgentPod) -> AgentPod:
    """The pod with the volume, mounted in each container that mounts nothing else at that path."""
    name = f"kube-api-access-{pod.uid[:5]}"
    volume = AgentVolume(name=name, projected={"sources": list(SOURCES)})
    mount = VolumeMount(name=name, mount_path=TOKEN_FOLDER, read_only=True)

    def mounted(containers: list[AgentContainer]) -> list[AgentContainer]:
        return [
            msgspec.structs.replace(each, volume_mounts=[*each.volume_mounts, mount]) if _lacks_mount(each) else each
            for each in containers
        ]

    spec = msgspec.structs.replace(
        pod.spec,
        volumes=[*pod.spec.volumes, volume],
        containers=mounted(pod.spec.containers),
        init_containers=mounted(pod.spec.init_containers),
    )
    return msgspec.structs.replace(pod, spec=spec)


def _lacks_mount(container: AgentContainer) -> bool:
    return all(mount.mount_path.rstrip("/") != TOKEN_FOLDER for mount in container.volume_mounts)
