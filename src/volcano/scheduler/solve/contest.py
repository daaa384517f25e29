"""Contest: all nodes ranked for one shape, kept current while tasks of that shape are placed one after the other.

Ranking is asked of the plugins once for all nodes. Nodes that changed are asked about again in one call, which also
asks what *would* be with one, two … more such tasks on the promising nodes: so placing a gang of identical tasks
mostly reads answers that are already there. It decides exactly as asking anew for every task would.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from volcano.scheduler.core.fit import fits_in
from volcano.scheduler.core.node_table import Column, Mask, NodeTable, Rows
from volcano.scheduler.core.node_view import NodeView
from volcano.scheduler.framework.node_answers import Key, NodeAnswers
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Chance, Task

DEEPEST: Final = 64  # imagined copies on one node
MOST: Final = 2048  # imagined nodes in one question
NOWHERE: Final = -np.inf
NOW, LATER = 2, 1  # there is room; there will be


class Future:
    """What the next copies on one node would make of it; valid while nothing else happens there."""

    __slots__ = ("fit", "node", "own", "step", "version")

    def __init__(self, version: int, fit: npt.NDArray[np.int8], node: Column, own: Column) -> None:
        self.version, self.step = version, 0
        self.fit, self.node, self.own = fit, node, own


class Contest:
    def __init__(self, nodes: NodeAnswers, task: Task) -> None:
        self._nodes = nodes
        self._table: NodeTable = nodes.table
        self._mark = self._table.mark
        self._futures: dict[int, Future] = {}
        view = NodeView(self._table, task=task)
        self._node, self._own, self._among = nodes.scores_of(task, view)
        self._fit = self._fits(task, view)
        self._now = np.where(self._fit == NOW, self._node + self._own, NOWHERE)

    def _fits(self, task: Task, view: NodeView) -> npt.NDArray[np.int8]:
        now, later = fits_in(task.request, view.idle), fits_in(task.request, view.future_idle)
        fit: npt.NDArray[np.int8] = np.where(now, NOW, np.where(later, LATER, 0)).astype(np.int8)
        for cause, _ in self._nodes.causes(task, view):
            fit[cause.refused] = 0
        return fit

    # -- keeping current -----------------------------------------------------------------------------------------------
    def refresh(self, task: Task, expected: int) -> None:
        """Take in what happened; `expected` more tasks of this shape are about to be placed."""
        if self._mark == self._table.mark:
            return
        changed = [row for row in self._table.rows_since(self._mark) if not self._is_current(row)]
        self._mark = self._table.mark
        if not changed:
            return
        depth = 1 + min(expected, DEEPEST)
        if expected > 1 and not self._among:
            width = min(2 * expected, MOST // depth, len(self._now))
            best = np.argpartition(self._now, -width)[-width:].tolist()
            changed = sorted({*changed, *(row for row in best if not self._is_current(row))})
        self._ask(task, np.array(changed, dtype=np.intp), depth)

    def _is_current(self, row: int) -> bool:
        future = self._futures.get(row)
        return future is not None and future.version == self._table.versions[row]

    def _ask(self, task: Task, rows: Rows, depth: int) -> None:
        """Every row as it is and with up to depth - 1 copies more, in one call."""
        copies = np.tile(np.arange(depth, dtype=np.intp), len(rows))
        view = NodeView(self._table, np.repeat(rows, depth), task=task, copies=copies)
        node, own, _ = self._nodes.scores_of(task, view)
        shape = (len(rows), depth)
        fit, node, own = self._fits(task, view).reshape(shape), node.reshape(shape), own.reshape(shape)
        versions = self._table.versions
        for place, row in enumerate(rows.tolist()):
            self._futures[row] = Future(versions[row], fit[place], node[place], own[place])
        self._fit[rows], self._node[rows], self._own[rows] = fit[:, 0], node[:, 0], own[:, 0]
        self._now[rows] = np.where(fit[:, 0] == NOW, node[:, 0] + own[:, 0], NOWHERE)

    def advance(self, row: int) -> None:
        """A task of this shape was just allocated there; what that makes of the node may be known already."""
        future, table = self._futures.get(row), self._table
        if future is None or future.version + 1 != table.versions[row] or future.step + 1 >= len(future.fit):
            return
        future.version += 1
        future.step += 1
        step = future.step
        self._fit[row], self._node[row], self._own[row] = future.fit[step], future.node[step], future.own[step]
        value = self._node[row] + self._own[row] if future.fit[step] == NOW else NOWHERE
        self._now[row] = value
        if self._mark == table.mark - 1:
            self._mark = table.mark

    # -- choosing ------------------------------------------------------------------------------------------------------
    def choose(self, chance: Chance) -> tuple[int, bool] | None:
        """The best row with room now, else the best with room later; chance decides between equals."""
        if not self._among:
            best = self._now.max()
            if best != NOWHERE:
                return _pick(np.flatnonzero(self._now == best), chance), True
        elif (candidates := self._fit == NOW).any():
            return self._best_of(candidates, chance), True
        candidates = self._fit == LATER
        return (self._best_of(candidates, chance), False) if candidates.any() else None

    def _best_of(self, candidates: Mask, chance: Chance) -> int:
        rows = np.flatnonzero(candidates)
        if len(rows) == 1:
            return int(rows[0])
        total = self._own
        for part in self._among:
            total = total + part(candidates)
        scores = (self._node + total)[rows]
        return _pick(rows[scores == scores.max()], chance)


def _pick(rows: Rows, chance: Chance) -> int:
    return int(rows[0] if len(rows) == 1 else rows[chance.below(len(rows))])


class Contests:
    """One contest per kind of task, for those whose nodes can be judged one by one."""

    def __init__(self, session: Session) -> None:
        self._nodes = session.nodes
        self._contests: dict[Key, Contest | None] = {}  # None: its nodes cannot be judged one by one
        self._applicable = session.in_shard is None and not session.ask.methods("best_node")

    def of(self, task: Task) -> Contest | None:
        if not self._applicable or task.nominated_node:
            return None
        key = self._nodes.key(task)
        if key not in self._contests:
            self._contests[key] = Contest(self._nodes, task) if self._nodes.is_local(task) else None
        return self._contests[key]
