"""NodeRanking: all nodes ranked for one shape, kept current while tasks of that shape are placed one after the other.

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

MAX_COPIES: Final = 64  # imagined on one node
MAX_IMAGINED_ROWS: Final = 2048  # in one question
NOWHERE: Final = -np.inf
NOW, LATER = 2, 1  # there is room; there will be


class Forecast:
    """Answers for several nodes with 0, 1, 2 … copies: a line for each node, a column for each number of copies."""

    __slots__ = ("fit", "node", "own", "values")

    def __init__(self, fit: npt.NDArray[np.int8], node: Column, own: Column) -> None:
        self.fit, self.node, self.own = fit, node, own
        self.values = np.where(fit == NOW, node + own, NOWHERE)


class NodeRanking:
    def __init__(self, nodes: NodeAnswers, task: Task) -> None:
        self._nodes = nodes
        self._table: NodeTable = nodes.table
        self._mark = self._table.mark
        size = len(self._table)
        self._forecasts: list[Forecast | None] = [None] * size
        self._lines = np.zeros(size, dtype=np.intp)  # a node's line in its forecast
        self._steps = np.zeros(size, dtype=np.intp)  # and how many of the copies have become real
        self._valid = np.full(size, -1, dtype=np.int64)  # the version of the row for which that holds
        view = NodeView(self._table, task=task)
        scored = nodes.scores_of(task, view)
        self._node, self._own, self._among, self._live = scored.node, scored.own, scored.among, scored.live
        self._fit = self._fits(task, view)
        self._now = np.where(self._fit == NOW, self._node + self._own, NOWHERE)

    def _fits(self, task: Task, view: NodeView) -> npt.NDArray[np.int8]:
        now, later = fits_in(task.request, view.idle), fits_in(task.request, view.future_idle)
        # Free room may be promised to another task: then there is no room, neither now nor later.
        fit: npt.NDArray[np.int8] = np.where(later, np.where(now, NOW, LATER), 0).astype(np.int8)
        for cause, _ in self._nodes.causes(task, view):
            fit[cause.refused] = 0
        return fit

    # -- keeping current -----------------------------------------------------------------------------------------------
    def refresh(self, task: Task, expected: int, within: Mask | None = None) -> None:
        """Take in what happened; `expected` more tasks of this shape are about to be placed (`within` these rows)."""
        table = self._table
        if self._mark == table.mark:
            return
        asked = self._outdated(table.changed_since(self._mark))
        self._mark = table.mark
        if not len(asked):
            return
        depth = 1 + min(expected, MAX_COPIES)
        if expected > 1 and (within is not None or not self._among):
            best = self._outdated(self._promising(min(2 * expected, MAX_IMAGINED_ROWS // depth), within))
            asked = np.unique(np.concatenate([asked, best]))
        self._ask(task, asked, depth)

    def _promising(self, width: int, within: Mask | None) -> Rows:
        """About `width` rows where tasks are likely to be placed."""
        if within is None:
            width = min(width, len(self._now))
            return np.argpartition(self._now, -width)[-width:]
        rows = np.flatnonzero(within & (self._fit == NOW))
        return rows if len(rows) <= width else rows[np.argpartition(self._now[rows], -width)[-width:]]

    def _outdated(self, rows: Rows) -> Rows:
        outdated: Rows = rows[self._valid[rows] != self._table.versions[rows]]
        return outdated

    def _ask(self, task: Task, rows: Rows, depth: int) -> None:
        """Every row as it is and with up to depth - 1 copies more, in one call."""
        copies = np.tile(np.arange(depth, dtype=np.intp), len(rows))
        view = NodeView(self._table, np.repeat(rows, depth), task=task, copies=copies)
        scored = self._nodes.scores_of(task, view)
        shape = (len(rows), depth)
        fit = self._fits(task, view).reshape(shape)
        forecast = Forecast(fit, scored.node.reshape(shape), scored.own.reshape(shape))
        for row in rows.tolist():
            self._forecasts[row] = forecast
        self._lines[rows] = np.arange(len(rows))
        self._steps[rows] = 0
        self._valid[rows] = self._table.versions[rows]
        self._fit[rows], self._node[rows], self._own[rows] = forecast.fit[:, 0], forecast.node[:, 0], forecast.own[:, 0]
        self._now[rows] = forecast.values[:, 0]

    def advance(self, row: int) -> None:
        """A task of this shape was just allocated there; what that makes of the node may be known already."""
        forecast, table = self._forecasts[row], self._table
        step = self._steps[row] + 1
        if forecast is None or self._valid[row] + 1 != table.versions[row] or step >= forecast.fit.shape[1]:
            return
        self._valid[row] += 1
        self._steps[row] = step
        place = (self._lines[row], step)
        self._fit[row], self._node[row], self._own[row] = forecast.fit[place], forecast.node[place], forecast.own[place]
        self._now[row] = forecast.values[place]
        if self._mark == table.mark - 1:
            self._mark = table.mark

    # -- choosing ------------------------------------------------------------------------------------------------------
    def choose(self, task: Task, chance: Chance, within: Mask | None = None) -> tuple[int, bool] | None:
        """The best row with room now, else the best with room later; chance decides between equals."""
        if within is None and not self._among and not self._live:
            best = self._now.max()
            if best != NOWHERE:
                return _pick(np.flatnonzero(self._now == best), chance), True
        elif (candidates := self._candidates(NOW, within)).any():
            return self._best_of(task, candidates, chance), True
        candidates = self._candidates(LATER, within)
        return (self._best_of(task, candidates, chance), False) if candidates.any() else None

    def _candidates(self, fit: int, within: Mask | None) -> Mask:
        candidates: Mask = self._fit == fit
        return candidates if within is None else candidates & within

    def _best_of(self, task: Task, candidates: Mask, chance: Chance) -> int:
        rows = np.flatnonzero(candidates)
        if len(rows) == 1:
            return int(rows[0])
        total = self._own
        for part in self._among:
            total = total + part(candidates)
        for asked in self._live:
            total = total + asked(task, candidates)
        scores = (self._node + total)[rows]
        return _pick(rows[scores == scores.max()], chance)


def _pick(rows: Rows, chance: Chance) -> int:
    return int(rows[0] if len(rows) == 1 else rows[chance.below(len(rows))])


class NodeRankings:
    """One ranking per kind of task, for those whose nodes can be judged one by one."""

    def __init__(self, session: Session) -> None:
        self._nodes = session.nodes
        self._rankings: dict[Key, NodeRanking | None] = {}  # None: its nodes cannot be judged one by one
        self._applicable = session.in_shard is None and not session.ask.is_answered("best_node")

    def of(self, task: Task) -> NodeRanking | None:
        if not self._applicable or task.nominated_node:
            return None
        key = self._nodes.key(task)
        if key not in self._rankings:
            self._rankings[key] = NodeRanking(self._nodes, task) if self._nodes.is_local(task) else None
        return self._rankings[key]
