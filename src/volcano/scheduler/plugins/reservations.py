"""reservations: nodes and amounts that Reservations keep are refused to jobs of others that would run into a window.

It takes part whenever a Reservation has a window to come, without being configured, in a tier before all others. A
window limits a job that is not its holder's and whose estimate reaches beyond the beginning of the window;
framework.kept_room has what is kept.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np

from volcano.api.times import timestamp
from volcano.scheduler.core.node_table import Column, Mask
from volcano.scheduler.core.node_view import NodeView
from volcano.scheduler.framework.answers import Cause, Code, Refusal, Vote
from volcano.scheduler.framework.kept_room import TOLERANCE, KeptRoom, KeptWindow
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.framework.record import KeptStatus
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Job, Node, Resources, Task


class Reservations(Plugin):
    name = "reservations"
    argument_names = frozenset[str]()

    def open(self, session: Session) -> None:
        super().open(session)
        self._room: KeptRoom | None = session.kept_room
        self._entered: dict[str, Resources] = {}  # what holders' jobs need that entered their queues in this cycle

    def _limiting(self, task: Task) -> list[KeptWindow]:
        if self._room is None or self._room.is_forecasting or _is_of_daemon(task):
            return []
        job = self.session.job_of(task)
        return [] if job is None else self._room.limiting(job)

    # -- into the queue -----------------------------------------------------------------------------------------------
    def job_enqueueable(self, job: Job) -> Vote:
        """Let the holder's jobs in as far as they fit what is kept: others that wait must not keep them out."""
        if self._room is None or job.min_resources is None:
            return Vote.ABSTAIN
        for window in self._room.windows:
            if window.start <= 0.0 and self._room.is_holder(window, job) and self._fits(window, job.min_resources):
                return Vote.PERMIT
        return Vote.ABSTAIN

    def job_enqueued(self, job: Job) -> None:
        room, needed = self._room, job.min_resources
        if room is None or needed is None:
            return
        for name in {window.name for window in room.windows if room.is_holder(window, job)}:
            self._entered[name] = self._entered.get(name, Resources()).add(needed)

    def _fits(self, window: KeptWindow, wanted: Resources) -> bool:
        """Of resources that the reservation does not name, all that is idle counts."""
        idle = np.maximum(self.session.table.idle, 0.0)
        is_named = window.kept.any(axis=1, keepdims=True)
        free = self._amount(np.where(is_named, np.minimum(window.kept, idle), idle).sum(axis=1))
        asked = wanted.copy().add(self._entered.get(window.name, Resources()))
        return not asked.exceeds_requested(free, wanted)

    # -- nodes --------------------------------------------------------------------------------------------------------
    def sharing_key(self, task: Task) -> Hashable:
        """Tasks of jobs that meet the same windows get the same answers."""
        return tuple((each.name, each.start) for each in self._limiting(task))

    def node_filter(self, task: Task, nodes: NodeView) -> Iterable[Cause]:
        for window in self._limiting(task):
            whole: Mask = nodes.take(window.whole)
            if whole.any():
                yield Cause(whole, Code.UNRESOLVABLE, reason_of(window))
            refused = self._lacks(window, task, nodes) & ~whole
            if refused.any():
                yield Cause(refused, Code.UNSCHEDULABLE, reason_of(window))

    def _lacks(self, window: KeptWindow, task: Task, nodes: NodeView) -> Mask:
        """The rows where the request would take from what is kept."""
        request = self.session.table.vector(task.request)[:, None]
        spare, kept = window.spare[:, nodes.rows], window.kept[:, nodes.rows]
        wanted = request * (1.0 + nodes.copies)[None, :]
        lacks: Mask = np.any((kept > TOLERANCE) & (wanted > spare + TOLERANCE) & (request > 0.0), axis=0)
        return lacks

    def simulate_filter(self, task: Task, node: Node) -> Refusal | None:
        """After evictions that are tried out: what late tasks of others held may be taken over."""
        row = self.session.table.index.get(node.name)
        if row is None:
            return None
        view = NodeView(self.session.table, np.array([row], dtype=np.intp), task=task)
        for window in self._limiting(task):
            if window.whole[row] or self._lacks(window, task, view).any():
                return Refusal("Reserved", reason_of(window))
        return None

    def on_allocate(self, task: Task) -> None:
        self._take(task, -1.0)

    def on_deallocate(self, task: Task) -> None:
        self._take(task, 1.0)

    def _take(self, task: Task, sign: float) -> None:
        job: Job | None = self.session.job_of(task)
        row = self.session.table.index.get(task.node)
        if self._room is not None and job is not None and row is not None:
            self._room.take(task, job, row, sign)

    # -- status -------------------------------------------------------------------------------------------------------
    def close(self, session: Session) -> None:
        for window in self._room.windows if self._room is not None else ():
            nodes = tuple(session.table.nodes[row].name for row in np.flatnonzero(window.rows))
            status = KeptStatus(
                window.window.start,
                window.window.end,
                window.window.start <= session.now,
                self._amount(window.total),
                self._amount(window.missing),
                nodes,
            )
            session.record.kept.setdefault(window.name, status)  # windows come in the order of their beginning

    def _amount(self, column: Column) -> Resources:
        return Resources({name: float(column[at]) for name, at in self.session.table.resources.items()})


def reason_of(window: KeptWindow) -> str:
    """What a node says that refuses a pod because of a window."""
    start, end = timestamp(window.window.start), timestamp(window.window.end)
    return f"kept for {window.reservation.holder} by reservation {window.name} from {start} to {end}"


def _is_of_daemon(task: Task) -> bool:
    """Pods of DaemonSets belong to their node and stay there, also during maintenance."""
    return any(owner.kind == "DaemonSet" for owner in task.pod.metadata.owner_references)
