"""Hints: which NUMA nodes could serve a request, and which choice a topology policy makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations, product
from typing import Final

from volcano.api.numa.cpus import Machine

NONE, BEST_EFFORT, RESTRICTED, SINGLE = "none", "best-effort", "restricted", "single-numa-node"
TOPOLOGY_POLICIES: Final = (NONE, BEST_EFFORT, RESTRICTED, SINGLE)
MAX_NUMA_NODES: Final = 12


@dataclass(frozen=True)
class Hint:
    """`nodes` None: any will do."""

    nodes: frozenset[int] | None
    preferred: bool


def hints_for(machine: Machine, free: frozenset[int], count: int) -> list[Hint]:
    """Every set of NUMA nodes with enough free cpus; preferred if no smaller set could ever have them."""
    found: list[Hint] = []
    smallest = 0
    for size in range(1, min(len(machine.numa_nodes), MAX_NUMA_NODES) + 1):
        for nodes in combinations(machine.numa_nodes, size):
            cpus = frozenset[int]().union(*(machine.on_numa[node] for node in nodes))
            if not smallest and len(cpus) >= count:
                smallest = size
            if len(cpus & free) >= count:
                found.append(Hint(frozenset(nodes), size == smallest))
    return found


def merged(policy: str, wishes: Iterable[Sequence[Hint]], nodes: Iterable[int]) -> tuple[Hint, bool]:
    """What all resources can agree on, and whether the policy admits that."""
    if policy in (NONE, ""):
        return Hint(None, True), True
    lists = [list(hints) for hints in wishes]
    if policy == SINGLE:
        lists = [[h for h in hints if h.nodes is None or (h.preferred and len(h.nodes) == 1)] for hints in lists]
    everywhere = frozenset(nodes)
    best = Hint(everywhere, False)
    for choice in product(*lists):
        common = reduce(lambda one, other: one & other, (h.nodes for h in choice if h.nodes is not None), everywhere)
        candidate = Hint(common, all(hint.preferred for hint in choice))
        if common and _rank(candidate) < _rank(best):
            best = candidate
    return best, policy == BEST_EFFORT or best.preferred


def _rank(hint: Hint) -> tuple[bool, int, list[int]]:
    nodes = hint.nodes or frozenset()
    return not hint.preferred, len(nodes), sorted(nodes, reverse=True)
