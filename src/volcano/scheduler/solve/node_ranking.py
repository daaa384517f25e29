"""NodeRanking: all nodes ranked for one shape, kept current while tasks of that shape are placed one after the other.

Ranking is asked of the plugins once for all nodes. Nodes that changed are asked about again in one call, which also
asks what *would* be with one, two … more such tasks on the promising nodes: so placing a gang of identical tasks
mostly reads answers that are already there. It decides exactly as asking anew for every task would.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from volcano.scheduler.core.fit import RequestThresholds
from volcano.scheduler.core.node_table import Column, Mask, NodeTable, Rows
from volcano.scheduler.core.node_view import NodeView
from volcano.scheduler.framework.node_answers import Key, NodeAnswers
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Chance, Task

MAX_COPIES: Final = 64  # imagined on one node
MAX_IMAGINED_ROWS: Final = 4096  # in one question: about as many as cost as much again as asking at all
NOWHERE: Final = -np.inf
NOW, LATER = 2, 1  # there is room; there will be
Fits: TypeAlias = npt.NDArray[np.int8]


class Forecast:
    """Answers for several nodes with 0, 1, 2 … copies: a line for each node, a column for each number of copies."""

    __slots__ = ("fit", "node", "own", "values")

    def __init__(self, fit: Fits, node: Column, own: Column) -> None:
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
        self._demand = RequestThresholds(self._table, task.request)
        view = NodeView(self._table, task=task)
        scored = nodes.scores_of(task, view)
        self._node, self._own, self._among, self._live = scored.node, scored.own, scored.among, scored.live
        self._fit = self._fits(task, view)
        self._now = np.where(self._fit == NOW, self._node + self._own, NOWHERE)
        self._tied: list[int] = []  # the rows with the best value, ascending; empty: not known
        self._best = NOWHERE  # that value
        self._place = 0  # in `_tied`, of the row chosen last
        self._has_imagined = False
        self._is_known = False  # whether the last sweep left nothing to ask about

    def _fits(self, task: Task, view: NodeView, rows: Rows | None = None, copies: Rows | None = None) -> Fits:
        table, demand = self._table, self._demand
        now = demand.fits(table.idle, rows, copies)
        if table.promises.any() if rows is None else table.promises[rows].any():
            # Free room may be promised to another task: then there is no room, neither now nor later.
            later = demand.fits(table.future_idle, rows, copies)
            fit: Fits = np.where(later, np.where(now, NOW, LATER), 0).astype(np.int8)
        else:
            fit = now * np.int8(NOW)
        for cause, _ in self._nodes.causes(task, view):
            fit[cause.refused] = 0
        return fit

    # -- keeping current -----------------------------------------------------------------------------------------------
    def refresh(self, task: Task, expected: int, within: Mask | None = None) -> None:
        """Take in what happened; `expected` more tasks of this shape are about to be placed (`within` these rows)."""
        table = self._table
        if self._mark == table.mark and (self._has_imagined or expected < 2):
            return
        asked = self._outdated(table.changed_since(self._mark))
        self._mark = table.mark
        imagines = expected > 1 and (within is not None or not self._among)
        if not len(asked) and (self._has_imagined or not imagines):
            return
        depth = min(1 + min(expected, MAX_COPIES), max(2, MAX_IMAGINED_ROWS // max(1, len(asked))))
        if imagines:
            best = self._promising(2 * expected, MAX_IMAGINED_ROWS // depth, within)
            if len(best):
                asked = np.union1d(asked, best) if len(asked) else best
            self._has_imagined = True
        if len(asked):
            self._ask(task, asked, depth)

    def _promising(self, sought: int, width: int, within: Mask | None) -> Rows:
        """At most `width` rows not imagined yet, of the `sought` best and those as good as the last of them."""
        now = self._now if within is None else np.where(within, self._now, NOWHERE)
        least = NOWHERE if sought >= len(now) else np.partition(now, -sought)[-sought]
        good = now > NOWHERE if least == NOWHERE else now >= least
        rows = np.flatnonzero(good & (self._valid != self._table.versions))
        return rows if len(rows) <= width else rows[np.argsort(-now[rows], kind="stable")[:width]]

    def _outdated(self, rows: Rows) -> Rows:
        outdated: Rows = rows[self._valid[rows] != self._table.versions[rows]]
        return outdated

    def _ask(self, task: Task, rows: Rows, depth: int) -> None:
        """Every row as it is and with up to depth - 1 copies more, in one call."""
        repeated = rows.repeat(depth)
        copies = np.arange(len(repeated), dtype=np.intp)
        copies %= depth
        view = NodeView(self._table, repeated, task=task, copies=copies)
        scored = self._nodes.scores_of(task, view)
        shape = (len(rows), depth)
        fit = self._fits(task, view, repeated, copies).reshape(shape)
        forecast = Forecast(fit, scored.node.reshape(shape), scored.own.reshape(shape))
        for row in rows.tolist():
            self._forecasts[row] = forecast
        self._lines[rows] = np.arange(len(rows))
        self._steps[rows] = 0
        self._valid[rows] = self._table.versions[rows]
        self._fit[rows], self._node[rows], self._own[rows] = forecast.fit[:, 0], forecast.node[:, 0], forecast.own[:, 0]
        self._now[rows] = forecast.values[:, 0]
        self._tied.clear()

    def advance(self, row: int) -> None:
        """A task of this shape was just allocated there; what that makes of the node may be known already."""
        table = self._table
        if self._step(row, table.versions[row] - 1) and self._mark == table.mark - 1:
            self._mark = table.mark

    def _step(self, row: int, version: int) -> bool:
        """One more task of this shape on a row that had this version; False when it was not imagined."""
        forecast = self._forecasts[row]
        step = self._steps[row] + 1
        if forecast is None or self._valid[row] != version or step >= forecast.fit.shape[1]:
            return False
        self._valid[row] = version + 1
        self._steps[row] = step
        place = (self._lines[row], step)
        self._fit[row], self._node[row], self._own[row] = forecast.fit[place], forecast.node[place], forecast.own[place]
        self._now[row] = value = float(forecast.values[place])
        self._keep_tied(row, value)
        return True

    def sweep(self, task: Task, number: int, expected: int, chance: Chance) -> list[int]:
        """The rows that tasks of this shape get one after the other, at most `number` of them.

        Fewer where it is not known what the last one makes of its row, or where no row has room now. The caller
        allocates tasks to these rows before it asks anything else, and then calls `swept`.
        """
        if self._among or self._live:
            return []
        self.refresh(task, expected)
        rows: list[int] = []
        versions, ahead = self._table.versions, dict[int, int]()
        self._is_known = True
        while self._is_known and len(rows) < number and (row := self._leading(chance)) is not None:
            rows.append(row)
            more = ahead[row] = ahead.get(row, -1) + 1
            self._is_known = self._step(row, versions[row] + more)
        return rows

    def swept(self) -> None:
        """The tasks of the last sweep were allocated."""
        if self._is_known:
            self._mark = self._table.mark

    def _keep_tied(self, row: int, value: float) -> None:
        """The value of one row is another now: it may lead alone, or lead no more."""
        tied = self._tied
        if not tied or value == self._best:
            return
        if value > self._best:
            self._best, self._tied, self._place = value, [row], 0
        elif self._place < len(tied) and tied[self._place] == row:
            del tied[self._place]
        else:
            tied.clear()

    # -- choosing ------------------------------------------------------------------------------------------------------
    def choose(self, task: Task, chance: Chance, within: Mask | None = None) -> tuple[int, bool] | None:
        """The best row with room now, else the best with room later; chance decides between equals."""
        if within is None and not self._among and not self._live:
            leading = self._leading(chance)
            if leading is not None:
                return leading, True
        elif (candidates := self._candidates(NOW, within)).any():
            return self._best_of(task, candidates, chance), True
        candidates = self._candidates(LATER, within)
        return (self._best_of(task, candidates, chance), False) if candidates.any() else None

    def _leading(self, chance: Chance) -> int | None:
        """The row with the best value of those with room now, where nothing but its own answers counts."""
        tied = self._tied
        if not tied:
            self._best = float(self._now.max())
            if self._best == NOWHERE:
                return None
            self._tied = tied = np.flatnonzero(self._now == self._best).tolist()
        self._place = 0 if len(tied) == 1 else chance.below(len(tied))
        return tied[self._place]

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

    def of_all_alike(self, task: Task) -> NodeRanking | None:
        """The ranking that serves every task of this shape, if one does."""
        ranking = self.of(task)
        return ranking if self._nodes.is_plain(task) else None

    def of(self, task: Task) -> NodeRanking | None:
        if not self._applicable or task.nominated_node:
            return None
        key = self._nodes.key(task)
        if key not in self._rankings:
            self._rankings[key] = NodeRanking(self._nodes, task) if self._nodes.is_local(task) else None
        return self._rankings[key]
