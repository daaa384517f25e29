"""Reads which CPUs a machine has, and on which NUMA node, socket and core each is, from the kernel's files."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from volcano.api.numa.cpus import Cpu, Machine, parse_cpus

DEVICE_TREE: Final = Path("/sys/devices/system")


class UnreadableTree(Exception):
    """The files do not say what is needed; the text has the path and the reason."""


def read_machine(tree: Path = DEVICE_TREE, usable: frozenset[int] | None = None) -> Machine:
    """The online CPUs; `usable` limits them to those that this process may run on.

    NUMA nodes without CPUs, which only have memory, do not appear: no CPU is on them. A kernel without NUMA has no
    files of nodes, and all CPUs are on node 0.
    """
    online = parse_cpus(_read(tree / "cpu" / "online"))
    numa = _numa_nodes(tree)
    wanted = sorted(online if usable is None else online & usable)
    if not wanted:
        raise UnreadableTree(f"{tree / 'cpu' / 'online'} names no CPU that may be used")
    return Machine(tuple(_cpu(tree, id, numa) for id in wanted))


def _numa_nodes(tree: Path) -> dict[int, int]:
    """CPU → NUMA node."""
    if not (tree / "node" / "online").exists():
        return {}
    found = {}
    for node in sorted(parse_cpus(_read(tree / "node" / "online"))):
        found.update(dict.fromkeys(parse_cpus(_read(tree / "node" / f"node{node}" / "cpulist")), node))
    return found


def _cpu(tree: Path, id: int, numa: dict[int, int]) -> Cpu:
    topology = tree / "cpu" / f"cpu{id}" / "topology"
    return Cpu(id, numa.get(id, 0), _number(topology / "physical_package_id"), _number(topology / "core_id"))


def _number(path: Path) -> int:
    """Virtual machines say -1 where they do not know: one socket then."""
    try:
        return max(0, int(_read(path)))
    except ValueError:
        raise UnreadableTree(f"{path} is not a number") from None


def _read(path: Path) -> str:
    try:
        with path.open() as file:
            return file.read(65536).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableTree(f"{path}: {error}") from error
