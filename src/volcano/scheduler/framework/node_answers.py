"""Node questions, asked once per shape and cached: which nodes pass, why others do not, and their scores.

An answer is computed for all rows the first time a shape asks. Later only rows that changed are asked about again,
unless a placement changes a plugin's answer elsewhere (`row_local` is False): then all rows are asked again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np

from volcano.scheduler.core.fit import fits_in, short_of
from volcano.scheduler.core.node_table import Column, Mask, NodeTable, Rows
from volcano.scheduler.core.node_view import NodeView
from volcano.scheduler.framework.alike import is_overridden
from volcano.scheduler.framework.answers import ABORTS, BatchScores, Cause, Code
from volcano.scheduler.framework.points import POINTS
from volcano.scheduler.framework.questions import Questions
from volcano.scheduler.model import Task

NODE_POINTS: Final = ("node_filter", "node_score", "batch_node_score")
Key: TypeAlias = tuple[Hashable, ...]


@dataclass(slots=True, eq=False)
class Filtered:
    """The rows that pass the plugins' filters (`ok`), those no eviction could free (`aborted`), and all causes."""

    mark: int
    local: bool
    ok: Mask
    aborted: Mask
    causes: dict[tuple[Code, str], Mask] = field(default_factory=dict)

    def histogram(self, among: Mask | None = None) -> Counter[str]:
        """How many nodes gave each reason."""
        counted: Counter[str] = Counter()
        for (_, reason), rows in self.causes.items():
            number = int((rows if among is None else rows & among).sum())
            if number and reason:
                counted[reason] += number
        return counted


@dataclass(slots=True, eq=False)
class Scored:
    """`node` and `own` are row by row; `among` and `live` hold the parts that depend on the candidates, and on more."""

    mark: int
    local: bool
    node: Column
    own: Column
    among: list[Callable[[Mask], Column]] = field(default_factory=list)
    live: list[Callable[[Task, Mask], Column]] = field(default_factory=list)

    def total(self, candidates: Mask, task: Task) -> Column:
        return self.node + self.batch(candidates, task)

    def batch(self, candidates: Mask, task: Task) -> Column:
        batch = self.own
        for part in self.among:
            batch = batch + part(candidates)
        for asked in self.live:
            batch = batch + asked(task, candidates)
        return batch


@dataclass(slots=True, eq=False)
class Room:
    """Where the request fits now (`idle`), and where it will once all tasks being released have left (`future`)."""

    mark: int
    idle: Mask
    future: Mask


class NodeAnswers:
    def __init__(self, table: NodeTable, ask: Questions, shard: Mask | None = None) -> None:
        self.table = table
        filters = ask.tiers("node_filter")
        if shard is not None:  # with hard sharding, the nodes that may be used at all
            filters = [[_outside_shard(shard)], *filters]
        self.causes: Callable[[Task, NodeView], Iterable[tuple[Cause, Mask]]] = POINTS["node_filter"].combine(filters)
        self._node_score: Callable[[Task, NodeView], Column] = ask.asker("node_score")
        self._batch_scores: Callable[[Task, NodeView], BatchScores] = ask.asker("batch_node_score")
        self._filtered: dict[Key, Filtered] = {}
        self._scored: dict[Key, Scored] = {}
        self._rooms: dict[int, Room] = {}
        self._plain: dict[int, Key] = {}  # shapes whose answers depend on nothing else
        askers = [plugin for point in NODE_POINTS for plugin in ask.plugins(point)]
        unique = list({id(plugin): plugin for plugin in askers}.values())
        self._keyed = [plugin.sharing_key for plugin in unique if is_overridden(plugin, "sharing_key")]
        self._locals = {
            point: [plugin.row_local for plugin in ask.plugins(point) if is_overridden(plugin, "row_local")]
            for point in NODE_POINTS
        }

    def key(self, task: Task) -> Key:
        """Tasks with the same key get the same answers."""
        number = task.shape.number
        plain = self._plain.get(number)
        if plain is not None:
            return plain
        key = (number, *(sharing_key(task) for sharing_key in self._keyed))
        if not any(part is not None for part in key[1:]):
            self._plain[number] = key
        return key

    def is_plain(self, task: Task) -> bool:
        """Whether all tasks of the shape get the same answers; known after `key`."""
        return task.shape.number in self._plain

    # -- filters --------------------------------------------------------------------------------------------------
    def filtered(self, task: Task) -> Filtered:
        """The plugins' verdict on every node, current as of now."""
        key = self.key(task)
        kept = self._filtered.get(key)
        mark = self.table.mark
        if kept is not None and kept.mark == mark:
            return kept
        if kept is None or not kept.local:
            kept = self._filter_all(task, mark)
            self._filtered[key] = kept
            return kept
        rows = self.table.changed_since(kept.mark)
        kept.mark = mark
        if len(rows):
            self._refilter(task, kept, rows)
        return kept

    def passes(self, task: Task, row: int) -> bool:
        """Whether one node passes now."""
        return bool(self.filtered(task).ok[row])

    def _filter_all(self, task: Task, mark: int) -> Filtered:
        view = NodeView(self.table, task=task)
        answer = Filtered(mark, self.is_local(task, ("node_filter",)), view.all(), view.none())
        for cause, open_rows in self.causes(task, view):
            refused = cause.refused & open_rows
            _note(answer, cause, refused)
            answer.ok &= ~refused
            if cause.code in ABORTS:
                answer.aborted |= refused
        return answer

    def _refilter(self, task: Task, kept: Filtered, rows: Rows) -> None:
        kept.ok[rows] = True
        kept.aborted[rows] = False
        for mask in kept.causes.values():
            mask[rows] = False
        for cause, open_rows in self.causes(task, NodeView(self.table, rows, task=task)):
            refused = rows[cause.refused & open_rows]
            if not len(refused):
                continue
            mask = kept.causes.setdefault((cause.code, cause.reason), np.zeros(len(self.table), dtype=bool))
            mask[refused] = True
            kept.ok[refused] = False
            if cause.code in ABORTS:
                kept.aborted[refused] = True

    # -- room ----------------------------------------------------------------------------------------------------------
    def room(self, task: Task) -> Room:
        """Where the task's request fits, current as of now."""
        kept = self._rooms.get(task.shape.number)
        mark = self.table.mark
        if kept is None:
            view = NodeView(self.table)
            kept = Room(mark, fits_in(task.request, view.idle), fits_in(task.request, view.future_idle))
            self._rooms[task.shape.number] = kept
        elif kept.mark != mark:
            rows = self.table.changed_since(kept.mark)
            view = NodeView(self.table, rows)
            kept.idle[rows] = fits_in(task.request, view.idle)
            kept.future[rows] = fits_in(task.request, view.future_idle)
            kept.mark = mark
        return kept

    def shortages(self, task: Task) -> dict[tuple[Code, str], Mask]:
        """Rows that lack room even after all tasks being released have left, by the first resource that is short."""
        view = NodeView(self.table)
        return {
            (Code.UNSCHEDULABLE, f"Insufficient {name}"): rows
            for name, rows in short_of(task.request, view.future_idle)
        }

    # -- scores ---------------------------------------------------------------------------------------------------
    def scored(self, task: Task) -> Scored:
        """The plugins' scores of every node, current as of now."""
        key = self.key(task)
        kept = self._scored.get(key)
        mark = self.table.mark
        if kept is not None and kept.mark == mark:
            return kept
        if kept is None or not kept.local:
            kept = self._score_all(task, mark)
            self._scored[key] = kept
            return kept
        rows = self.table.changed_since(kept.mark)
        kept.mark = mark
        if len(rows):
            view = NodeView(self.table, rows, task=task)
            kept.node[rows] = self._node_score(task, view)
            kept.own[rows] = self._batch_scores(task, view).own
        return kept

    def _score_all(self, task: Task, mark: int) -> Scored:
        local = self.is_local(task, ("node_score", "batch_node_score"))
        return self.scores_of(task, NodeView(self.table, task=task), mark=mark, local=local)

    def scores_of(self, task: Task, view: NodeView, *, mark: int = 0, local: bool = True) -> Scored:
        """The scores of the rows of a view."""
        batch = self._batch_scores(task, view)
        return Scored(mark, local, self._node_score(task, view), batch.own, batch.among, batch.live)

    def is_local(self, task: Task, points: Sequence[str] = NODE_POINTS) -> bool:
        """Whether a placement changes the answers for this task only on the row placed on."""
        return all(row_local(task) for point in points for row_local in self._locals[point])


def _outside_shard(shard: Mask) -> Callable[[Task, NodeView], Iterable[Cause]]:
    """A filter that refuses the nodes of other shards, before any plugin's."""

    def node_filter(task: Task, nodes: NodeView) -> Iterable[Cause]:
        yield Cause(~nodes.take(shard), Code.ERROR, "node isn't in scheduler node shard")

    return node_filter


def _note(answer: Filtered, cause: Cause, refused: Mask) -> None:
    place = (cause.code, cause.reason)
    known = answer.causes.get(place)
    answer.causes[place] = refused.copy() if known is None else known | refused
