"""What plugins answer with: a vote, a refusal, a cause for which nodes are refused, a score among candidates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from volcano.scheduler.core.node_table import Column, Mask
from volcano.scheduler.model import Task


class Vote(IntEnum):
    REJECT = -1
    ABSTAIN = 0
    PERMIT = 1


class Code(IntEnum):
    """How final a node's refusal is. UNRESOLVABLE: no eviction would help."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5


ABORTS: Final = frozenset({Code.ERROR, Code.UNRESOLVABLE, Code.WAIT, Code.SKIP})
"""Codes with which a node is no candidate for preemption either."""


@dataclass(slots=True, frozen=True)
class Refusal:
    """A refusal, with a reason for programs and a message for people."""

    reason: str
    message: str


@dataclass(slots=True, frozen=True, eq=False)
class Cause:
    """One reason for which nodes refuse a task: which rows (of the view asked about), how final, and why."""

    refused: Mask
    code: Code
    reason: str


@dataclass(slots=True, frozen=True, eq=False)
class BatchScore:
    """A score whose parts may depend on who else is a candidate.

    `own` is each node's part that depends on that node alone. `among(candidates)`, where given, is the part that is
    normalised over the candidates: it gets a mask over the whole table and gives a column over the whole table (its
    values for non-candidates are ignored). It may depend only on what a placement does not change (labels, taints,
    the shape), or the plugin answers `row_local(task)` with False.

    `live(task, candidates)`, where given, is asked anew for every single choice: it may depend on that very task (its
    job, where its siblings are) and on whatever has happened until then, so it must be quick.
    """

    own: Column
    among: Callable[[Mask], Column] | None = None
    live: Callable[[Task, Mask], Column] | None = None


@dataclass(slots=True, frozen=True, eq=False)
class BatchScores:
    """The batch scores of all plugins: the sum of their `own` parts, and each one's other parts."""

    own: Column
    among: list[Callable[[Mask], Column]]
    live: list[Callable[[Task, Mask], Column]]
