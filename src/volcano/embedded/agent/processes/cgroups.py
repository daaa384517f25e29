"""CPU and memory limits by control groups: version 2 where a subtree is delegated to us, version 1 for root.

Containers without limits or requests get no group: making one costs more than a short process.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from volcano.api.core import ResourceRequirements
from volcano.api.quantity import QuantityError, parse_quantity

CGROUP_ROOT: Final = Path("/sys/fs/cgroup")
CPU_PERIOD_MICROSECONDS: Final = 100_000
MIN_CPU_QUOTA_MICROSECONDS: Final = 1000
SHARES_PER_CPU: Final = 1024
MAX_PROCESSES_PER_CONTAINER: Final = 32_768
V1_CONTROLLERS: Final = ("cpu", "memory")


def limits_v1(resources: ResourceRequirements) -> dict[str, dict[str, str]]:
    """Controller → file → value. Empty without limits and requests."""
    settings: dict[str, dict[str, str]] = {}
    cpu, memory, request = _amounts(resources)
    if request:
        settings.setdefault("cpu", {})["cpu.shares"] = str(max(2, request * SHARES_PER_CPU // 1000))
    if cpu:
        settings.setdefault("cpu", {})["cpu.cfs_period_us"] = str(CPU_PERIOD_MICROSECONDS)
        settings["cpu"]["cpu.cfs_quota_us"] = str(
            max(MIN_CPU_QUOTA_MICROSECONDS, cpu * CPU_PERIOD_MICROSECONDS // 1000)
        )
    if memory:
        settings["memory"] = {"memory.limit_in_bytes": str(memory)}
    return settings


def limits_v2(resources: ResourceRequirements) -> dict[str, str]:
    """File → value. Empty without limits and requests."""
    settings: dict[str, str] = {}
    cpu, memory, request = _amounts(resources)
    if request:
        shares = max(2, min(262144, request * SHARES_PER_CPU // 1000))
        settings["cpu.weight"] = str(1 + (shares - 2) * 9999 // 262142)
    if cpu:
        settings["cpu.max"] = (
            f"{max(MIN_CPU_QUOTA_MICROSECONDS, cpu * CPU_PERIOD_MICROSECONDS // 1000)} {CPU_PERIOD_MICROSECONDS}"
        )
    if memory:
        settings |= {"memory.max": str(memory), "memory.swap.max": "0"}
    return settings | ({"pids.max": str(MAX_PROCESSES_PER_CONTAINER)} if settings else {})


class Cgroups:
    """The control groups of one agent's containers; does nothing where groups cannot be made."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.version = 0
        self._memory_nodes = ""
        self._parents: dict[str, Path] = {}  # v1: by controller; v2: under ""
        self.has_cpusets = False
        self._left: set[Path] = set()  # groups to remove that still had processes: a killed container ends later

    def open(self, *, cpusets: bool = False) -> str:
        """Find out which version can be used; returns a description. `cpusets`: also to bind containers to CPUs."""
        if self._open_v2():
            self.has_cpusets = cpusets and self._open_cpusets_v2()
            return "CPU and memory limits are enforced by control groups (version 2)"
        if self._open_v1():
            self.has_cpusets = cpusets and self._open_cpusets_v1()
            return "CPU and memory limits are enforced by control groups (version 1)"
        return "CPU and memory limits are not enforced: no control groups are delegated to this user"

    def make(self, container: str, resources: ResourceRequirements, cpus: str = "") -> tuple[str, ...]:
        """Make the container's groups; returns the files by which a process joins them.

        `cpus` is the set of CPUs that it runs on, like 0-3; empty, or without cpusets: all.
        """
        bound = {"cpuset.cpus": cpus} if cpus and self.has_cpusets else {}
        if self.version == 2:
            files = limits_v2(resources) | bound
            return (self._group(self._parents[""], container, files),) if files else ()
        if self.version == 1:
            wanted = limits_v1(resources)
            if bound:
                wanted["cpuset"] = {"cpuset.mems": self._memory_nodes, **bound}
            return tuple(self._group(self._parents[name], container, files) for name, files in wanted.items())
        return ()

    def set_cpus(self, container: str, cpus: str) -> bool:
        """Move a container to other CPUs; returns whether it has a group for it."""
        parent = self._parents.get("" if self.version == 2 else "cpuset")
        if parent is None or not self.has_cpusets:
            return False
        try:
            (parent / container.replace("/", "_") / "cpuset.cpus").write_text(cpus)
        except OSError:  # it was started without one, or has just ended
            return False
        return True

    def was_out_of_memory(self, container: str) -> bool:
        name = container.replace("/", "_")
        for parent, file in (
            (self._parents.get(""), "memory.events"),
            (self._parents.get("memory"), "memory.oom_control"),
        ):
            if parent is None:
                continue
            with contextlib.suppress(OSError, ValueError, IndexError):
                for line in (parent / name / file).read_text().splitlines():
                    key, _, count = line.partition(" ")
                    if key == "oom_kill" and int(count) > 0:
                        return True
        return False

    def remove(self, container: str) -> None:
        for parent in self._parents.values():
            self._left.add(parent / container.replace("/", "_"))
        self.remove_left()

    def find_left(self, live: Iterable[str]) -> None:
        """Take the groups of containers that are not live, left by an agent that was killed, for removal."""
        kept = {container.replace("/", "_") for container in live}
        for parent in self._parents.values():
            self._left |= {group for group in _groups_in(parent) if group.name not in kept}

    def remove_left(self) -> bool:
        """Try once more to remove what should be gone; returns whether nothing is left."""
        self._left = {group for group in self._left if not _remove_group(group)}
        return not self._left

    def close(self) -> None:
        for parent in self._parents.values():
            _remove_group(parent)

    def _group(self, parent: Path, container: str, files: Mapping[str, str]) -> str:
        folder = parent / container.replace("/", "_")
        self._left.discard(folder)
        folder.mkdir(exist_ok=True)
        for file, value in files.items():
            with contextlib.suppress(FileNotFoundError):  # not every machine has every file, for example swap
                (folder / file).write_text(value)
        return str(folder / "cgroup.procs")

    def _open_v2(self) -> bool:
        if not (CGROUP_ROOT / "cgroup.controllers").exists():
            return False
        own = _own_groups().get("")
        tops = [CGROUP_ROOT] if os.geteuid() == 0 else []
        if own is not None:
            tops += [CGROUP_ROOT / own.strip("/"), (CGROUP_ROOT / own.strip("/")).parent]
        for top in tops:
            parent = top / self._name
            try:
                if "memory" not in (top / "cgroup.subtree_control").read_text().split():
                    (top / "cgroup.subtree_control").write_text("+cpu +memory +pids")
                parent.mkdir(exist_ok=True)
                (parent / "cgroup.subtree_control").write_text("+cpu +memory +pids")
            except OSError:
                with contextlib.suppress(OSError):
                    parent.rmdir()
                continue
            self.version, self._parents = 2, {"": parent}
            return True
        return False

    def _open_cpusets_v2(self) -> bool:
        parent = self._parents[""]
        try:
            for folder in (parent.parent, parent):
                if "cpuset" not in (folder / "cgroup.subtree_control").read_text().split():
                    (folder / "cgroup.subtree_control").write_text("+cpuset")
        except OSError:
            return False
        return True

    def _open_cpusets_v1(self) -> bool:
        """A new group of version 1 has no CPUs and no memory until it is given those of the group above it."""
        top = CGROUP_ROOT / "cpuset" / _own_groups().get("cpuset", "/").strip("/")
        parent = top / self._name
        try:
            parent.mkdir(exist_ok=True)
            for file in ("cpuset.cpus", "cpuset.mems"):
                (parent / file).write_text((top / file).read_text())
            self._memory_nodes = (parent / "cpuset.mems").read_text().strip()
        except OSError:
            with contextlib.suppress(OSError):
                parent.rmdir()
            return False
        self._parents["cpuset"] = parent
        return True

    def _open_v1(self) -> bool:
        if os.geteuid() != 0:
            return False
        own, parents = _own_groups(), {}
        for controller in V1_CONTROLLERS:
            parent = CGROUP_ROOT / controller / own.get(controller, "/").strip("/") / self._name
            try:
                parent.mkdir(exist_ok=True)
            except OSError:
                continue
            parents[controller] = parent
        if len(parents) < len(V1_CONTROLLERS):
            return False
        self.version, self._parents = 1, parents
        return True


def _groups_in(parent: Path) -> list[Path]:
    try:
        return [each for each in parent.iterdir() if each.is_dir() and not each.is_symlink()]
    except OSError:
        return []


def _remove_group(group: Path) -> bool:
    """Remove a group and those that a container made in it; returns whether it is gone. Groups with processes stay."""
    folders = [Path(folder) for folder, _, _ in os.walk(group, topdown=False)]
    for folder in folders:
        with contextlib.suppress(OSError):
            folder.rmdir()
    return not group.exists()


def _own_groups() -> dict[str, str]:
    """Controller → path of this process's group; version 2 is under the empty name."""
    found = {}
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            for controller in controllers.split(","):
                found[controller] = path
    return found


def _amounts(resources: ResourceRequirements) -> tuple[int, int, int]:
    """CPU limit in thousandths, memory limit in bytes, requested CPU in thousandths; 0 where not set."""

    def read(amounts: Mapping[str, str | int | float] | None, name: str, *, milli: bool) -> int:
        try:
            amount = parse_quantity((amounts or {}).get(name, 0))
        except QuantityError:
            return 0
        return amount.milli if milli else amount.value

    cpu = read(resources.limits, "cpu", milli=True)
    memory = read(resources.limits, "memory", milli=False)
    return cpu, memory, read(resources.requests, "cpu", milli=True) or cpu
