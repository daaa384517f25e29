"""The capacity of this machine as a node: CPUs, memory and disk, as far as the machine reports them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

MAX_PODS_PER_NODE: Final = 110


def machine_capacity(directory: Path) -> dict[str, str]:
    """Quantities of this machine; `directory` is where the files of pods are."""
    return {
        "cpu": str(usable_cpus()),
        "memory": f"{memory_kilobytes()}Ki",
        "pods": str(MAX_PODS_PER_NODE),
        "ephemeral-storage": f"{disk_kilobytes(directory)}Ki",
    }


def usable_cpus() -> int:
    """The CPUs this process may run on."""
    return max(1, len(os.sched_getaffinity(0)))


def memory_kilobytes() -> int:
    """The machine's memory, or less where a control group limits this process."""
    total = _meminfo()
    for path in _memory_limits():
        try:
            limit = int(path.read_text())
        except (OSError, ValueError):
            continue  # "max", or not this version of control groups
        if 0 < limit < total * 1024:
            total = limit // 1024
    return total


def disk_kilobytes(directory: Path) -> int:
    while not directory.exists():
        directory = directory.parent
    return shutil.disk_usage(directory).total // 1024


def _meminfo() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1])
    return 1024 * 1024


def _memory_limits() -> list[Path]:
    """Files that may contain a memory limit of this process's control group, in both versions."""
    found = []
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            found.append(Path("/sys/fs/cgroup") / path.strip("/") / "memory.max")
        elif "memory" in controllers.split(","):
            found.append(Path("/sys/fs/cgroup/memory") / path.strip("/") / "memory.limit_in_bytes")
    return found
