"""Make room for one task on one node by evicting others: on the best node, or after a dry run on several nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from volcano.scheduler.core.fit import fits_row
from volcano.scheduler.core.node_table import Mask
from volcano.scheduler.framework.session import Session
from volcano.scheduler.framework.statement import Statement
from volcano.scheduler.model import Job, Node, Status, Task
from volcano.scheduler.solve.candidates import Candidates, CouldHold
from volcano.scheduler.solve.choose import nodes_by_score, shard_groups
from volcano.scheduler.solve.victims import victims_first

PREEMPT = "preempt"


class Preemption:
    """On behalf of one job. Nodes whose victims cannot free enough are remembered until they change."""

    def __init__(
        self, session: Session, job: Job, candidates: Candidates, is_victim: Callable[[Task, Task], bool]
    ) -> None:
        self._session = session
        self._job = job
        self._queue = session.queues[job.queue]
        self._candidates = candidates
        self._could_hold = CouldHold(session)
        self._is_victim = is_victim
        self._without_victims: dict[tuple[int, int], tuple[int, Mask]] = {}  # shape, priority → as of mark, rows
        self._arguments = session.config.arguments_of(PREEMPT)
        self._spares_most = self._arguments.flag("enableTopologyAwarePreemption", False)

    def make_room(self, task: Task, statement: Statement) -> bool:
        """Evict and promise into the statement; False, with nothing changed, when no node can be freed."""
        session = self._session
        if not is_eligible(session, task) or session.ask.pre_filter(task) is not None:
            return False
        freeable = self._candidates.of(task)
        for group in shard_groups(session, freeable):
            freed = (
                self._spare_most(task, group, statement)
                if self._spares_most
                else self._free_one(task, group, statement)
            )
            if freed:
                return True
        return False

    # -- the normal way ------------------------------------------------------------------------------------------------
    def _free_one(self, task: Task, group: Mask, statement: Statement) -> bool:
        """Node after node in descending score, until evictions make the task fit."""
        session = self._session
        without_victims = self._known_without_victims(task)
        among = group & self._could_hold.of(task) & ~without_victims
        for row in nodes_by_score(session, task, group, among):
            node = session.table.nodes[row]
            victims = self._victims_on(node, task)
            if victims is None:
                without_victims[row] = True
            elif self._free(node, task, victims, statement):
                return True
        return False

    def _known_without_victims(self, task: Task) -> Mask:
        key, table = (task.shape.number, task.priority), self._session.table
        mark, rows = self._without_victims.get(key, (table.mark, np.zeros(len(table), dtype=bool)))
        if mark != table.mark:
            rows[table.changed_since(mark)] = False
        self._without_victims[key] = (table.mark, rows)
        return rows

    def _victims_on(self, node: Node, task: Task) -> list[Task] | None:
        """The tasks that the plugins agree to evict there; None when that would not free enough."""
        session = self._session
        exposed = [other for other in node.tasks_in_order if self._is_victim(task, other)]
        victims = session.ask.preemptable(task, exposed) if exposed else []
        return victims if frees_enough(session, node, task, victims) else None

    def _free(self, node: Node, task: Task, victims: list[Task], statement: Statement) -> bool:
        session = self._session
        attempt = Statement(session)
        waiting = victims_first(session, task, victims)
        evicted = 0
        while not (fits := self._fits(node, task)) and waiting:
            attempt.evict(waiting.pop(), PREEMPT, preemptor=task.key)
            evicted += 1
        session.record.gauge("pod_preemption_victims", evicted)
        session.record.counters[("total_preemption_attempts", ())] += 1
        if not fits or attempt.pipeline(task, node, eviction_occurred=evicted > 0) is not None:
            attempt.discard()
            return False
        statement.merge(attempt)
        return True

    def _fits(self, node: Node, task: Task) -> bool:
        session = self._session
        return (
            session.ask.allocatable(self._queue, task)
            and fits_row(session.table, task.request, session.table.future_idle[:, node.row])
            and session.nodes.passes(task, node.row)
        )

    # -- the way that spares most --------------------------------------------------------------------------------------
    def _spare_most(self, task: Task, group: Mask, statement: Statement) -> bool:
        """Try out several nodes, evict on the one where it hurts least."""
        session = self._session
        rows = np.flatnonzero(group)
        if not len(rows):
            return False
        wanted = self._candidates_wanted(len(rows))
        offset = session.chance.below(len(rows))
        found: list[NodeVictims] = []
        for row in np.roll(rows, -offset):
            found_victims = self._dry_run(session.table.nodes[row], task)
            if found_victims is not None:
                found.append(found_victims)
                if len(found) >= wanted:
                    break
        if not found:
            return False
        least = min(found, key=lambda found_victims: found_victims.cost(session))
        for victim in least.victims:
            statement.evict(victim, PREEMPT, preemptor=task.key)
        return statement.pipeline(task, least.node, eviction_occurred=True) is None

    def _candidates_wanted(self, nodes: int) -> int:
        wanted = nodes * self._arguments.integer("minCandidateNodesPercentage", 10) // 100
        wanted = max(wanted, self._arguments.integer("minCandidateNodesAbsolute", 1))
        return min(wanted, self._arguments.integer("maxCandidateNodesAbsolute", 100), nodes)

    def _dry_run(self, node: Node, task: Task) -> NodeVictims | None:
        """Remove victims until the task fits, then keep the most important ones it fits beside; all are put back."""
        victims = self._victims_on(node, task)
        if not victims:
            return None
        moves = self._session.moves
        waiting = victims_first(self._session, task, victims)
        removed: list[tuple[Task, Status]] = []
        fits = False
        while waiting and not fits:
            victim = waiting.pop()
            removed.append((victim, victim.status))
            moves.evict(victim)
            fits = self._would_fit(node, task)
        lost: list[Task] = []
        for victim, status in reversed(removed):
            moves.bring_back(victim, status)
            if fits and not self._would_fit(node, task):
                moves.evict(victim)
                lost.append(victim)
        for victim, status in removed:
            if victim.evicted:
                moves.bring_back(victim, status)
        return NodeVictims(node, lost) if fits and lost else None

    def _would_fit(self, node: Node, task: Task) -> bool:
        session = self._session
        return (
            session.ask.simulate_allocatable(self._queue, task)
            and fits_row(session.table, task.request, session.table.future_idle[:, node.row])
            and session.nodes.passes(task, node.row)
            and session.ask.simulate_filter(task, node) is None
        )


@dataclass(slots=True)
class NodeVictims:
    """The tasks that would be evicted on a node, the most important first."""

    node: Node
    victims: list[Task] = field(default_factory=list)

    def cost(self, session: Session) -> tuple[int, int, int, float]:
        """Compared in turn: the first victim's importance, the sum of all, how many, how long they have run."""
        priorities = [victim.pod.spec.priority or 0 for victim in self.victims]
        foremost = (v for v, p in zip(self.victims, priorities, strict=True) if p == max(priorities))
        started = min(v.pod.status.start_time or session.now for v in foremost)
        return priorities[0], sum(p + 2**31 for p in priorities), len(priorities), -started.timestamp()


def frees_enough(session: Session, node: Node, task: Task, victims: Iterable[Task]) -> bool:
    room = session.table.future_idle[:, node.row].copy()
    for victim in victims:
        room += session.table.vector(victim.request)
    return fits_row(session.table, task.request, room)


def is_eligible(session: Session, task: Task) -> bool:
    """Not with the policy Never; not while a node it was nominated to is still being freed for it."""
    if not task.preempts:
        return False
    if not task.nominated_node:
        return True
    row = session.table.index.get(task.nominated_node)
    if row is None:
        return False
    filtered = session.nodes.filtered(task)
    node = session.table.nodes[row]
    if filtered.ok[row]:
        # The eviction for it may have failed: then no pod leaves the node, and nothing else would ever make room.
        return not (
            frees_enough(session, node, task, ()) or any(t.status == Status.RELEASING for t in node.tasks.values())
        )
    if filtered.aborted[row]:
        return True
    mine = task.pod.spec.priority or 0
    return not any((other.pod.spec.priority or 0) < mine and is_leaving(other) for other in node.tasks.values())


def is_leaving(task: Task) -> bool:
    """Whether the pod is ending because it was evicted to make room."""
    return task.pod.is_deleting and any(
        c.type == "DisruptionTarget" and c.status == "True" and c.reason == "PreemptionByScheduler"
        for c in task.pod.status.conditions
    )
