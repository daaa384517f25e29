"""Choose a node for a task among candidates: groups in order of preference, the best score, chance between equals."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from volcano.scheduler.core.node_table import Mask
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Node, Task


def shard_groups(session: Session, candidates: Mask) -> Iterator[Mask]:
    """With soft sharding our own nodes come first; without, there is one group."""
    if session.in_shard is None:
        yield candidates
    else:
        yield candidates & session.in_shard
        yield candidates & ~session.in_shard


def best_node(session: Session, task: Task, candidates: Mask) -> Node | None:
    """The node with the highest score; a single candidate is not scored."""
    rows = np.flatnonzero(candidates)
    nodes = session.table.nodes
    if not len(rows):
        return None
    if len(rows) == 1:
        return nodes[int(rows[0])]
    scores = session.nodes.scored(task).total(candidates, task)[rows]
    if session.ask.is_answered("best_node"):
        chosen = session.ask.best_node(task, [nodes[row] for row in rows], scores)
        if chosen is not None:
            return chosen
    top = rows[scores == scores.max()]
    return nodes[int(top[0] if len(top) == 1 else top[session.chance.below(len(top))])]


def nodes_by_score(session: Session, task: Task, candidates: Mask, among: Mask) -> Iterator[int]:
    """Those `among` the candidates by descending score; of equal ones, in the order of the table."""
    rows = np.flatnonzero(among)
    if not len(rows):
        return
    scores = session.nodes.scored(task).total(candidates, task)[rows]
    yield int(rows[scores.argmax()])  # mostly it is the only one that is asked for
    for row in rows[np.argsort(-scores, kind="stable")[1:]]:
        yield int(row)


def node_for(session: Session, task: Task, feasible: Mask) -> tuple[Node, bool] | None:
    """Where to place the task, and whether there is room now; otherwise room is promised there."""
    room = session.nodes.room(task)
    for fitting, now in ((room.idle, True), (room.future & ~room.idle, False)):
        for group in shard_groups(session, feasible & fitting):
            node = best_node(session, task, group)
            if node is not None:
                return node, now
    return None
