"""Cpus of a machine: on which NUMA node, socket and core each is, and which of the free ones the kubelet would take."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

from volcano.api.topology import NumatopologySpec

MAX_CPUS = 65536


@dataclass(frozen=True)
class Cpu:
    id: int
    numa: int
    socket: int
    core: int


@dataclass(frozen=True, eq=False)
class Machine:
    """One and the same for all machines that are built alike."""

    cpus: tuple[Cpu, ...]

    @cached_property
    def by_id(self) -> dict[int, Cpu]:
        return {cpu.id: cpu for cpu in self.cpus}

    @cached_property
    def ids(self) -> frozenset[int]:
        return frozenset(self.by_id)

    @cached_property
    def numa_nodes(self) -> tuple[int, ...]:
        return tuple(sorted({cpu.numa for cpu in self.cpus}))

    @cached_property
    def on_numa(self) -> dict[int, frozenset[int]]:
        return {node: frozenset(c.id for c in self.cpus if c.numa == node) for node in self.numa_nodes}

    @cached_property
    def per_socket(self) -> int:
        return len(self.cpus) // max(len({cpu.socket for cpu in self.cpus}), 1)

    @cached_property
    def per_core(self) -> int:
        return len(self.cpus) // max(len({(cpu.socket, cpu.core) for cpu in self.cpus}), 1)

    def take(self, free: frozenset[int], count: int) -> frozenset[int] | None:
        """`count` of the free ones: whole sockets, then whole cores, then from the cores with the fewest free ones."""
        if count < 1:
            return frozenset()
        if count > len(free):
            return None
        left, taken = set(free), set[int]()
        for size, group in ((self.per_socket, self._whole_sockets), (self.per_core, self._whole_cores)):
            for members in group(left) if size else ():
                if count - len(taken) < size:
                    break
                taken |= members
                left -= members
        while len(taken) < count:
            next_one = min(left, key=lambda id: self._tearing(id, left, taken))
            taken.add(next_one)
            left.discard(next_one)
        return frozenset(taken)

    def _whole_sockets(self, free: Iterable[int]) -> list[set[int]]:
        return self._whole([(self.by_id[id].socket, id) for id in free], self.per_socket)

    def _whole_cores(self, free: Iterable[int]) -> list[set[int]]:
        """Of sockets with the fewest whole cores first."""
        found = self._whole([((self.by_id[id].socket, self.by_id[id].core), id) for id in free], self.per_core)
        sockets = Counter(self.by_id[min(core)].socket for core in found)
        return sorted(found, key=lambda core: (sockets[(s := self.by_id[min(core)].socket)], s, min(core)))

    @staticmethod
    def _whole(members: Iterable[tuple[object, int]], size: int) -> list[set[int]]:
        groups: dict[object, set[int]] = {}
        for group, id in members:
            groups.setdefault(group, set()).add(id)
        return sorted((ids for ids in groups.values() if len(ids) == size), key=min)

    def _tearing(self, id: int, left: set[int], taken: set[int]) -> tuple[int, ...]:
        cpu = self.by_id[id]
        beside = sum(self.by_id[other].socket == cpu.socket for other in taken)
        on_socket = sum(self.by_id[other].socket == cpu.socket for other in left)
        on_core = sum((o := self.by_id[other]).core == cpu.core and o.socket == cpu.socket for other in left)
        return -beside, on_socket, on_core, cpu.socket, cpu.core, id


def machine_from(spec: NumatopologySpec) -> Machine:
    details = ((int(id), detail) for id, detail in spec.cpu_detail.items() if id.isdigit())
    return _machine(tuple(Cpu(id, d.numa, d.socket, d.core) for id, d in sorted(details, key=lambda item: item[0])))


@lru_cache(maxsize=1024)
def _machine(cpus: tuple[Cpu, ...]) -> Machine:
    return Machine(cpus)


def parse_cpus(text: str) -> frozenset[int]:
    """`0-3,8`; what cannot be read is left out."""
    found: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,6})(?:-(\d{1,6}))?\s*", part)
        if match is not None:
            first, last = int(match[1]), int(match[2] or match[1])
            found.update(range(first, min(last, first + MAX_CPUS) + 1))
    return frozenset(found)


def format_cpus(cpus: Iterable[int]) -> str:
    """`0-3,8`, as the kernel writes it."""
    parts: list[str] = []
    ordered = sorted(cpus)
    start = 0
    for place, id in enumerate(ordered):
        if place + 1 == len(ordered) or ordered[place + 1] != id + 1:
            parts.append(str(id) if place == start else f"{ordered[start]}-{id}")
            start = place + 1
    return ",".join(parts)
