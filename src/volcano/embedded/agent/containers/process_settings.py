"""What the process runtime is told: where it keeps things and what pods may see. Parsed once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from volcano.embedded.agent.containers.images import Image

PodNetwork = Literal["auto", "isolated", "host"]

ON_A_SHARED_MACHINE: Final = {
    "OMPI_MCA_rmaps_base_mapping_policy": "node",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
}
"""Open MPI takes every pod for a machine with all the cores it sees: it would fill the first worker before it used the
next, and bind the ranks of each to the same cores. What its command line says still counts."""


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    """`directory` is the agent's alone; `hidden` are further paths that no pod may see (the whole data directory)."""

    directory: Path
    host_address: str = "127.0.0.1"
    pod_network: PodNetwork = "auto"
    images: tuple[Image, ...] = ()
    hidden: tuple[Path, ...] = ()
    api_server: Callable[[], tuple[str, int] | None] = lambda: None  # as this machine reaches it; asked at the start
    environment: dict[str, str] = field(default_factory=ON_A_SHARED_MACHINE.copy)  # every container's

    @property
    def supervisor(self) -> Path:
        return self.directory / "supervisor"

    @property
    def pods(self) -> Path:
        return self.directory / "pods"

    @property
    def memory(self) -> Path:
        """What pods keep in memory: their /dev/shm, and volumes that ask for it."""
        return Path("/dev/shm") / f"volcano-{self.digest}"

    @property
    def digest(self) -> str:
        """A short name for this agent on its machine."""
        return hashlib.sha256(str(self.directory).encode()).hexdigest()[:8]

    @property
    def logs(self) -> Path:
        return self.directory / "logs"
