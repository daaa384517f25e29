"""A pod as the node agent reads it: everything needed to run its containers and report on them.

The same resource as core.Pod, with the fields that a node needs. Parts with many shapes (a volume's source, a probe's
handler) stay JSON and are decoded where they are used.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import msgspec

from volcano.api.core import (
    FINISHED_POD_PHASES,
    ContainerPort,
    ContainerState,
    ContainerStatus,
    PodResourceClaim,
    PodStatus,
    ResourceRequirements,
)
from volcano.api.meta import JSON, Model, Quantities, Resource

DEFAULT_GRACE_SECONDS: Final = 30
"""The default of terminationGracePeriodSeconds."""

NODE_HEADER: Final = "x-volcano-node"
"""Names the node that a request to a kubelet is about: the nodes of one agent share its port."""
DEFAULT_USER_ANNOTATION: Final = "agent.volcano.sh/default-user"
"""Of a node: the number of the user as whom pods run that state none; absent where all pods are one user."""
SIMULATED_RUNTIME: Final = "simulated"
"""The container runtime of nodes whose pods are not run."""


class EnvVar(Model, frozen=True):
    name: str = ""
    value: str = ""
    value_from: JSON | None = None


class EnvFromSource(Model, frozen=True):
    prefix: str = ""
    config_map_ref: JSON | None = None
    secret_ref: JSON | None = None


class VolumeMount(Model, frozen=True):
    name: str = ""
    mount_path: str = ""
    sub_path: str = ""
    sub_path_expr: str = ""
    read_only: bool = False


class Handler(Model, frozen=True):
    """The action of a hook or a probe: one of these is set."""

    exec: JSON | None = None
    http_get: JSON | None = None
    tcp_socket: JSON | None = None
    sleep: JSON | None = None
    grpc: JSON | None = None


class Probe(Handler, frozen=True):
    """A periodic check of a container, and how many results in a row change its verdict."""

    initial_delay_seconds: int = 0
    timeout_seconds: int = 1
    period_seconds: int = 10
    success_threshold: int = 1
    failure_threshold: int = 3
    termination_grace_period_seconds: int | None = None


class Lifecycle(Model, frozen=True):
    post_start: Handler | None = None
    pre_stop: Handler | None = None


class SeccompProfile(Model, frozen=True):
    type: str = ""


class ContainerCapabilities(Model, frozen=True):
    add: list[str] = []
    drop: list[str] = []


class SecurityContext(Model, frozen=True):
    run_as_user: int | None = None
    run_as_group: int | None = None
    run_as_non_root: bool | None = None
    allow_privilege_escalation: bool | None = None
    seccomp_profile: SeccompProfile | None = None
    capabilities: ContainerCapabilities = ContainerCapabilities()
    privileged: bool = False
    read_only_root_filesystem: bool = False
    supplemental_groups: list[int] = []
    fs_group: int | None = None


class AgentContainer(Model, frozen=True):
    """A container with the fields that are needed to start it."""

    name: str = ""
    image: str = ""
    image_pull_policy: str = ""
    command: list[str] = []
    args: list[str] = []
    working_dir: str = ""
    env: list[EnvVar] = []
    env_from: list[EnvFromSource] = []
    ports: list[ContainerPort] = []
    resources: ResourceRequirements = ResourceRequirements()
    volume_mounts: list[VolumeMount] = []
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None
    startup_probe: Probe | None = None
    lifecycle: Lifecycle = Lifecycle()
    termination_message_path: str = "/dev/termination-log"
    termination_message_policy: str = "File"
    security_context: SecurityContext = SecurityContext()
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False
    restart_policy: str = ""

    @property
    def is_sidecar(self) -> bool:
        """An init container that keeps running beside the others."""
        return self.restart_policy == "Always"


class AgentVolume(Model, frozen=True):
    """A volume: its name and the one source that is set."""

    name: str = ""
    empty_dir: JSON | None = None
    host_path: JSON | None = None
    config_map: JSON | None = None
    secret: JSON | None = None
    downward_api: JSON | None = msgspec.field(default=None, name="downwardAPI")
    projected: JSON | None = None
    persistent_volume_claim: JSON | None = None
    ephemeral: JSON | None = None
    nfs: JSON | None = None
    csi: JSON | None = None


class HostAlias(Model, frozen=True):
    ip: str = ""
    hostnames: list[str] = []


class AgentPodSpec(Model, frozen=True):
    containers: list[AgentContainer] = []
    init_containers: list[AgentContainer] = []
    overhead: Quantities | None = None
    resources: ResourceRequirements | None = None
    volumes: list[AgentVolume] = []
    resource_claims: list[PodResourceClaim] = []
    node_name: str = ""
    restart_policy: str = "Always"
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    hostname: str = ""
    subdomain: str = ""
    set_hostname_as_fqdn: bool | None = msgspec.field(default=None, name="setHostnameAsFQDN")
    host_network: bool = False
    host_pid: bool = msgspec.field(default=False, name="hostPID")
    host_ipc: bool = msgspec.field(default=False, name="hostIPC")
    share_process_namespace: bool | None = None
    host_aliases: list[HostAlias] = []
    dns_policy: str = "ClusterFirst"
    dns_config: JSON | None = None
    service_account_name: str = ""
    automount_service_account_token: bool | None = None
    enable_service_links: bool | None = None
    security_context: SecurityContext = SecurityContext()
    priority: int | None = None


class AgentPod(Resource, frozen=True):
    """A pod with the fields that its node needs."""

    spec: AgentPodSpec = AgentPodSpec()
    status: PodStatus = PodStatus()

    @property
    def is_finished(self) -> bool:
        return self.status.phase in FINISHED_POD_PHASES

    @property
    def all_containers(self) -> list[AgentContainer]:
        """Init containers first, in the order they run."""
        return [*self.spec.init_containers, *self.spec.containers]

    @property
    def hostname(self) -> str:
        """The host name inside the pod; Linux allows 63 characters."""
        return (self.spec.hostname or self.name)[:63].rstrip("-.")

    @property
    def grace(self) -> timedelta:
        """How long the pod may take to end."""
        seconds = self.metadata.deletion_grace_period_seconds
        if seconds is None:
            seconds = self.spec.termination_grace_period_seconds
        return timedelta(seconds=max(0, DEFAULT_GRACE_SECONDS if seconds is None else seconds))

    @property
    def deadline(self) -> timedelta | None:
        """How long the pod may be active, if that is limited."""
        seconds = self.spec.active_deadline_seconds
        return timedelta(seconds=seconds) if seconds is not None else None

    def container(self, name: str) -> AgentContainer | None:
        return next((found for found in self.all_containers if found.name == name), None)

    def container_status(self, name: str) -> ContainerStatus | None:
        """The container's status in the API."""
        statuses = (*self.status.init_container_statuses, *self.status.container_statuses)
        return next((status for status in statuses if status.name == name), None)


def started_at(state: ContainerState) -> datetime | None:
    """The start time of a container that runs or has ended."""
    found = state.running or state.terminated
    return found.started_at if found else None
