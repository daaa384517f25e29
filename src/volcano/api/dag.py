"""Dependencies between named things: is every name known, and can all of them ever start?

Shared by the tasks of a Job and the steps of a JobFlow. The answer names the culprit: the unknown name, or the cycle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec


class UnknownDependency(msgspec.Struct, frozen=True):
    """`name` depends on `target`, which is not defined."""

    name: str
    target: str

    def __str__(self) -> str:
        return f"{self.name} depends on {self.target}, which does not exist"


class Cycle(msgspec.Struct, frozen=True):
    """Each waits for the next, the last for the first. The first is repeated at the end."""

    names: tuple[str, ...]

    def __str__(self) -> str:
        return " -> ".join(self.names)


def first_flaw(graph: Mapping[str, Sequence[str]]) -> UnknownDependency | Cycle | None:
    """What keeps the graph from being a DAG: an unknown dependency, in the order given, or else a cycle."""
    for name, targets in graph.items():
        for target in targets:
            if target not in graph:
                return UnknownDependency(name, target)
    return find_cycle(graph)


def find_cycle(graph: Mapping[str, Iterable[str]]) -> Cycle | None:
    """The first cycle found in the order given; names that are not defined are ignored. It does not recurse."""
    finished: set[str] = set()
    for start in graph:
        if start in finished:
            continue
        trail: dict[str, None] = {start: None}
        waiting = [iter(graph[start])]
        while waiting:
            target = next(waiting[-1], None)
            if target is None:
                waiting.pop()
                finished.add(trail.popitem()[0])
            elif target in trail:
                names = list(trail)
                return Cycle((*names[names.index(target) :], target))
            elif target in graph and target not in finished:
                trail[target] = None
                waiting.append(iter(graph[target]))
    return None


def order(graph: Mapping[str, Sequence[str]]) -> list[str]:
    """All names, each after what it depends on, otherwise in the order given. The graph must have no flaw."""
    ordered: list[str] = []
    placed: set[str] = set()
    for start in graph:
        stack = [start]
        while stack:
            name = stack[-1]
            waits_for = [target for target in graph[name] if target not in placed]
            if name in placed or not waits_for:
                stack.pop()
                if name not in placed:
                    placed.add(name)
                    ordered.append(name)
            else:
                stack.extend(reversed(waits_for))
    return ordered
