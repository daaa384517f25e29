"""The settings of the process runtime: its directories, the pod network and what pods may see. Immutable."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from volcano.embedded.agent.containers.images import Image, ImagesFile
from volcano.embedded.agent.cpus.cpu_pool import CpuPool
from volcano.embedded.agent.devices.inventory import CardInventory

PodNetwork = Literal["auto", "isolated", "host"]

UNPRIVILEGED_USER: Final = (65532, 65532)
"""User and group of root's pods that state none: no account of the machine has this number, images call it nonroot."""

SHARED_MACHINE_ENVIRONMENT: Final = {
    "OMPI_MCA_rmaps_base_mapping_policy": "node",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
}
"""Open MPI treats every pod as a machine with all the cores it sees: it would fill the first worker before the next,
and bind the ranks of each worker to the same cores. Its command line overrides these variables."""
LOOPBACK_ENVIRONMENT: Final = {"OMPI_MCA_btl_tcp_if_include": "lo", "OMPI_MCA_oob_tcp_if_include": "lo"}
"""Where pods share the machine's network, Open MPI would offer the machine's other addresses, which are no pod's."""


def usual_user() -> tuple[int, int] | None:
    """The user and group of pods that state none: of root's an unprivileged one, of others the agent's own."""
    return UNPRIVILEGED_USER if os.geteuid() == 0 else None


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    """`directory` belongs to this agent alone; `hidden` are further paths hidden from pods (the data directory)."""

    directory: Path
    host_address: str = "127.0.0.1"
    pod_network: PodNetwork = "auto"
    images: tuple[Image, ...] = ()
    images_file: ImagesFile | None = None  # its rows come before `images`
    apptainer: str = ""  # the program that runs images of Apptainer; empty: apptainer or singularity of the machine
    hidden: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()  # folders of this machine in which every pod may write
    default_user: tuple[int, int] | None = field(
        default_factory=usual_user
    )  # of pods that state none; None: the agent's
    api_server: Callable[[], tuple[str, int] | None] = lambda: (
        None
    )  # as this machine reaches it; called when the runtime opens
    name_servers: Callable[[], list[tuple[str, int]]] | None = (
        None  # for names outside the cluster; None: the machine's
    )
    cards: CardInventory | None = None  # None: cards are not managed, and pods see those of the machine
    cpus: CpuPool | None = None  # None: nothing is known of its NUMA nodes, and all pods share all CPUs
    environment: dict[str, str] = field(default_factory=SHARED_MACHINE_ENVIRONMENT.copy)  # of every container

    def current_images(self) -> tuple[Image, ...]:
        """The rows that apply now: the file may have changed."""
        return (*(self.images_file.rows() if self.images_file is not None else ()), *self.images)

    @property
    def programs(self) -> Path:
        """The programs that busybox-like images bring."""
        return self.directory / "programs"

    @property
    def supervisor(self) -> Path:
        return self.directory / "supervisor"

    @property
    def pods(self) -> Path:
        return self.directory / "pods"

    @property
    def memory(self) -> Path:
        """In-memory files of pods: /dev/shm, and volumes with medium Memory."""
        return Path("/dev/shm") / f"volcano-{self.digest}"

    @property
    def digest(self) -> str:
        """A short identifier of this agent on its machine."""
        return hashlib.sha256(str(self.directory).encode()).hexdigest()[:8]

    @property
    def logs(self) -> Path:
        return self.directory / "logs"
