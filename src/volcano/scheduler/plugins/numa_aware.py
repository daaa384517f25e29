"""numa-aware: a pod that asks for its cpus on one NUMA node is placed only where the kubelet would admit it."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, Final

import numpy as np

from volcano.api.numa.assignment import (
    CPU_POLICY,
    DECISION_KEY,
    POLICY_KEY,
    STATIC,
    TOPOLOGY_POLICY,
    CpuFit,
    CpuState,
    CpuWish,
    assign,
    decision_text,
    reserved_cpus,
    wish_of,
)
from volcano.api.numa.cpus import machine_from, parse_cpus
from volcano.api.numa.hints import NONE
from volcano.api.topology import NumatopologySpec
from volcano.scheduler.core.node_table import Column, Mask
from volcano.scheduler.core.node_view import NodeView
from volcano.scheduler.framework.answers import BatchScore, Cause, Code
from volcano.scheduler.framework.config import PluginOption
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import CPU, Node, Shape, Status, Task

FULL: Final = 100.0


class NumaAware(Plugin):
    name = "numa-aware"
    argument_names = frozenset({"weight"})

    def __init__(self, option: PluginOption) -> None:
        super().__init__(option)
        self._weight = option.arguments.integer("weight", 1)
        self._fits: dict[tuple[CpuState, CpuWish], CpuFit] = {}
        self._wishes: dict[Shape, CpuWish | None] = {}

    def open(self, session: Session) -> None:
        super().open(session)
        self._assigned: dict[str, tuple[int, frozenset[int]]] = {}  # task uid → row and cpus given in this session
        self._states: list[CpuState | None] = [None] * len(session.table)
        kept = session.snapshot.memory.setdefault(self.name, {})
        for node in session.table.nodes:
            if node.numa is not None:
                self._states[node.row] = self._state_of(node, kept)
        self._pinning: Mask = np.array([state is not None for state in self._states], dtype=bool)
        self._changed: list[int] = []  # rows whose state has changed, in order
        self._spans: dict[CpuWish, tuple[int, Column]] = {}  # by number of changes: the NUMA nodes spanned on each node

    def _state_of(self, node: Node, kept: dict[str, Any]) -> CpuState | None:
        """None when the kubelet there does not pin cpus."""
        spec = node.numa
        assert spec is not None
        if spec.policies.get(CPU_POLICY) != STATIC or not spec.cpu_detail or CPU not in spec.numares:
            return None
        known = node.devices.get(self.name)
        if known is None or known[0] is not spec:
            known = node.devices[self.name] = spec, _reported_state(spec)
        state: CpuState = known[1]
        for cpus in self._not_reported(node, kept):
            state = state.without(cpus)
        return state

    def _not_reported(self, node: Node, kept: dict[str, Any]) -> list[frozenset[int]]:
        """What recently bound pods will get; dropped when all of them are reported or deleted."""
        told = node.numa.pod_allocations if node.numa is not None else []
        known = {pod.uid for pod in told} | {f"{pod.namespace}/{pod.name}" for pod in told}
        tasks = self.session.snapshot.tasks
        waiting = {
            uid: cpus for uid, cpus in kept.pop(node.name, {}).items() if uid in tasks and tasks[uid].node == node.name
        }
        if all(uid in known or tasks[uid].key in known for uid in waiting):
            return []
        kept[node.name] = waiting
        return [frozenset(cpus) for cpus in waiting.values()]

    # -- pods ------------------------------------------------------------------------------------------------------
    def _wish_of(self, task: Task) -> CpuWish | None:
        """None for pods that share their cpus with others anyway."""
        if task.shape not in self._wishes:
            self._wishes[task.shape] = wish_of(task.pod.spec)
        return self._wishes[task.shape]

    def sharing_key(self, task: Task) -> Hashable:
        return None if self._wish_of(task) is None else (self.name, task.pod.annotations.get(POLICY_KEY, ""))

    # -- nodes -----------------------------------------------------------------------------------------------------
    def node_filter(self, task: Task, nodes: NodeView) -> Iterator[Cause]:
        wish, policy = self._wish_of(task), task.pod.annotations.get(POLICY_KEY, "")
        if wish is None:
            return
        reasons: dict[tuple[Code, str], Mask] = {}
        concerned = np.flatnonzero(nodes.take(self._pinning) if policy in ("", NONE) else nodes.all())
        rows, copies = nodes.rows[concerned].tolist(), nodes.copies[concerned].tolist()
        for entry, row, count in zip(concerned.tolist(), rows, copies, strict=True):
            refusal = self._refusal(wish, policy, row, count)
            if refusal is not None:
                reasons.setdefault(refusal, nodes.none())[entry] = True
        for (code, reason), refused in reasons.items():
            yield Cause(refused, code, reason)

    def _refusal(self, wish: CpuWish, policy: str, row: int, copies: int) -> tuple[Code, str] | None:
        if policy not in ("", NONE):
            objection = self._objection(self.session.table.nodes[row], policy)
            if objection:
                return Code.ERROR, objection
        fit = self._fit(wish, row, copies)
        if fit is not None and fit.refused is not None:
            return Code.UNRESOLVABLE, f"container {fit.refused} cannot be assigned by numa"
        return None

    def _objection(self, node: Node, policy: str) -> str:
        """Why a node cannot keep a pod's own policy at all."""
        if node.numa is None:
            return "numa info is empty"
        if node.numa.policies.get(CPU_POLICY) != STATIC:
            return "cpu manager policy isn't static"
        theirs = node.numa.policies.get(TOPOLOGY_POLICY, "")
        if theirs != policy:
            return f"task topology policy[{policy}] is different with node[{theirs}]"
        if not node.numa.cpu_detail:
            return "no topo information"
        return "" if CPU in node.numa.numares else "cpu allocatable map is empty"

    def _fit(self, wish: CpuWish, row: int, copies: int = 0) -> CpuFit | None:
        """What a pod would get on a node after `copies` like it; None on nodes without a policy."""
        state = self._states[row]
        if state is None or state.policy in ("", NONE):
            return None
        fit = self._known_fit(state, wish)
        for _ in range(copies):
            state = state.without(fit.cpus)
            fit = self._known_fit(state, wish)
        return fit

    def _known_fit(self, state: CpuState, wish: CpuWish) -> CpuFit:
        if (state, wish) not in self._fits:
            self._fits[state, wish] = assign(state, wish)
        return self._fits[state, wish]

    def batch_node_score(self, task: Task, nodes: NodeView) -> BatchScore:
        return BatchScore(nodes.zeros(), live=self._score)

    def _score(self, task: Task, candidates: Mask) -> Column:
        """The fewer NUMA nodes a pod would span, the better."""
        wish, score = self._wish_of(task), np.zeros(len(candidates))
        if wish is None or task.pod.annotations.get(POLICY_KEY, NONE) in ("", NONE):
            return score
        rows = np.flatnonzero(candidates)
        spans = self._spanned(wish)[rows]
        most = spans.max(initial=0.0)
        score[rows] = (FULL - np.floor(FULL * spans / most) if most else FULL) * self._weight
        return score

    def _spanned(self, wish: CpuWish) -> Column:
        seen, spans = self._spans.get(wish, (-1, np.zeros(len(self._states))))
        rows = np.flatnonzero(self._pinning).tolist() if seen < 0 else self._changed[seen:]
        for row in rows:
            spans[row] = self._span(wish, row)
        self._spans[wish] = len(self._changed), spans
        return spans

    def _span(self, wish: CpuWish, row: int) -> int:
        state, fit = self._states[row], self._fit(wish, row)
        if state is None or fit is None:
            return 0
        return len({state.machine.by_id[id].numa for id in fit.cpus})

    # -- what happened ---------------------------------------------------------------------------------------------
    def on_allocate(self, task: Task) -> None:
        row, wish = self.session.table.index.get(task.node), self._wish_of(task)
        if row is None or wish is None or task.status not in (Status.ALLOCATED, Status.PIPELINED):
            return
        state, fit = self._states[row], self._fit(wish, row)
        if state is not None and fit is not None and fit.cpus:
            self._assigned[task.uid] = row, fit.cpus
            self._states[row] = state.without(fit.cpus)
            self._changed.append(row)
            task.bind_annotations[DECISION_KEY] = decision_text(state.machine, fit.cpus)

    def on_deallocate(self, task: Task) -> None:
        row, cpus = self._assigned.pop(task.uid, (-1, frozenset[int]()))
        state = self._states[row] if cpus else None
        if state is not None:
            self._states[row] = CpuState(state.machine, state.free | cpus, state.reserved, state.policy)
            self._changed.append(row)
            task.bind_annotations.pop(DECISION_KEY, None)

    def close(self, session: Session) -> None:
        kept = session.snapshot.memory[self.name]
        for uid in session.record.binds:
            row, cpus = self._assigned.get(uid, (-1, frozenset[int]()))
            if cpus:
                kept.setdefault(session.table.nodes[row].name, {})[uid] = sorted(cpus)


def _reported_state(spec: NumatopologySpec) -> CpuState:
    machine = machine_from(spec)
    reserved = reserved_cpus(machine, spec.res_reserved.get(CPU, "0"))
    free = parse_cpus(spec.numares[CPU].allocatable) & machine.ids
    return CpuState(machine, free, reserved, spec.policies.get(TOPOLOGY_POLICY, ""))
