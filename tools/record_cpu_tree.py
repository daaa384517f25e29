"""Write the kernel's files about CPUs and NUMA nodes as JSON: recorded from this machine, or made for a described one.

    tools/record_cpu_tree.py > this-machine.json
    tools/record_cpu_tree.py --sockets 2 --numa-per-socket 2 --cores 8 --threads 2 --memory-nodes 1 --offline 3,5

The tests of the node agent read such files (tests/unit/embedded/agent/cpus/trees). Made trees number CPUs as Linux does
on most servers: the first threads of all cores, then the second ones.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

SYSTEM = Path("/sys/devices/system")
PATTERNS = (
    "cpu/online",
    "cpu/cpu[0-9]*/topology/core_id",
    "cpu/cpu[0-9]*/topology/physical_package_id",
    "node/online",
    "node/node[0-9]*/cpulist",
)


def recorded(root: Path) -> dict[str, str]:
    found = [path for pattern in PATTERNS for path in root.glob(pattern)]
    return {path.relative_to(root).as_posix(): path.read_text().strip() for path in sorted(found)}


def made(
    *, sockets: int, numa_per_socket: int, cores: int, threads: int, memory_nodes: int, offline: set[int]
) -> dict[str, str]:
    """`cores` are those of one socket; their numbers begin at 0 on each socket."""
    total = sockets * cores
    tree: dict[str, str] = {}
    numa: dict[int, list[int]] = {node: [] for node in range(sockets * numa_per_socket + memory_nodes)}
    for cpu in range(total * threads):
        place = cpu % total
        socket, core = divmod(place, cores)
        if cpu in offline:
            continue  # the kernel removes the files of a CPU that goes offline
        tree[f"cpu/cpu{cpu}/topology/core_id"] = str(core)
        tree[f"cpu/cpu{cpu}/topology/physical_package_id"] = str(socket)
        numa[socket * numa_per_socket + core * numa_per_socket // cores].append(cpu)
    tree["cpu/online"] = ",".join(str(cpu) for cpu in range(total * threads) if cpu not in offline)
    tree["node/online"] = f"0-{len(numa) - 1}"
    for node, cpus in numa.items():
        tree[f"node/node{node}/cpulist"] = ",".join(map(str, cpus))
    return tree


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sockets", type=int, default=0, help="make a tree instead of recording one")
    parser.add_argument("--numa-per-socket", type=int, default=1)
    parser.add_argument("--cores", type=int, default=4, help="of one socket")
    parser.add_argument("--threads", type=int, default=1, help="of one core")
    parser.add_argument("--memory-nodes", type=int, default=0, help="NUMA nodes without CPUs")
    parser.add_argument("--offline", default="", help="CPUs that are offline: 3,5")
    chosen = parser.parse_args()
    offline = {int(each) for each in chosen.offline.split(",") if each}
    tree = recorded(SYSTEM) if not chosen.sockets else made(
        sockets=chosen.sockets, numa_per_socket=chosen.numa_per_socket, cores=chosen.cores, threads=chosen.threads,
        memory_nodes=chosen.memory_nodes, offline=offline,
    )  # fmt: skip
    print(json.dumps(tree, indent=1, sort_keys=True))


if __name__ == "__main__":
    main()
