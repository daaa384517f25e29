"""Relations: affinity, anti-affinity and order of a job's roles, from a PodGroup's annotations."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import combinations
from typing import Final

AFFINITY: Final = "volcano.sh/task-topology-affinity"
ANTI_AFFINITY: Final = "volcano.sh/task-topology-anti-affinity"
TASK_ORDER: Final = "volcano.sh/task-topology-task-order"
KEYS: Final = (AFFINITY, ANTI_AFFINITY, TASK_ORDER)


class InvalidRelations(ValueError):
    """An annotation names a role that is not there, or one twice."""


class Relations:
    def __init__(self, together: list[list[str]], apart: list[list[str]], order: list[str]) -> None:
        self._together = _pairs(together)
        self._apart = _pairs(apart)
        self._rank = {role: len(order) - place for place, role in reversed(list(enumerate(order)))}
        self.related = {role for pair in (*self._together, *self._apart) for role in pair}

    def of(self, one: str, other: str) -> int:
        """1 for roles that want to be together, -1 for roles that want to be apart, 0 for both and neither."""
        pair = _pair(one, other)
        return (pair in self._together) - (pair in self._apart)

    def apart(self, one: str, other: str) -> bool:
        return _pair(one, other) in self._apart

    def importance(self, role: str) -> tuple[int, int]:
        """Which role goes first: as listed, then those hardest to place."""
        return self._rank.get(role, 0), self._difficulty(role)

    def _difficulty(self, role: str) -> int:
        alone = _pair(role, role)
        if alone in self._apart:
            return 4
        if any(role in pair and len(set(pair)) == 2 for pair in self._together):
            return 3
        if alone in self._together:
            return 2
        return int(any(role in pair for pair in self._apart))


def relations_from(annotations: Mapping[str, str], roles: Collection[str], job: str) -> Relations | None:
    """None when a job states nothing of the kind."""
    if not any(key in annotations for key in KEYS):
        return None
    together = _groups(annotations.get(AFFINITY), roles, job)
    apart = _groups(annotations.get(ANTI_AFFINITY), roles, job)
    (order,) = _groups(annotations.get(TASK_ORDER, "").replace(";", ","), roles, job) or [[]]
    return Relations(together, apart, order)


def _groups(text: str | None, roles: Collection[str], job: str) -> list[list[str]]:
    groups = [[name.strip() for name in group.split(",")] for group in text.split(";")] if text else []
    for group in groups:
        named = [name for name in group if name]
        for place, name in enumerate(named):
            if name not in roles:
                raise InvalidRelations(f"task {name} do not exist in job <{job}>")
            if name in named[:place]:
                raise InvalidRelations(f"task {name} is duplicate in job <{job}>")
    return [[name for name in group if name] for group in groups]


def _pairs(groups: list[list[str]]) -> set[tuple[str, str]]:
    """A role alone in its group relates to itself; several to each other."""
    pairs: set[tuple[str, str]] = set()
    for group in groups:
        pairs |= {_pair(*pair) for pair in combinations(group, 2)} if len(group) != 1 else {(group[0], group[0])}
    return pairs


def _pair(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one <= other else (other, one)
