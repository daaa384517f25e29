"""CardFamily: the engine that reads a description of a family of devices, and keeps its cards during a session."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from volcano.api.device_families import AssignmentForm, DemandForm, DeviceFamily
from volcano.scheduler.core.card_slices import CHIP_TEMPLATES, WHOLE_CHIP, Slice
from volcano.scheduler.core.cards import BINPACK, FULLEST, SPREAD, CardRequest, Cards, Choice, Portion
from volcano.scheduler.core.node_table import Column, Mask
from volcano.scheduler.core.node_view import NodeView
from volcano.scheduler.framework.answers import Cause, Code
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Node, Status, Task
from volcano.scheduler.plugins.deviceshare.assignments import CardPart, annotations_for, decoded
from volcano.scheduler.plugins.deviceshare.card_filters import CardFilter
from volcano.scheduler.plugins.deviceshare.demands import DEMAND_LABELS, CardDemand, demand_of, names_resource
from volcano.scheduler.plugins.deviceshare.node_locks import LockedNodes
from volcano.scheduler.plugins.deviceshare.registers import NodeCards, cards_on

CARD_POLICY, NODE_POLICY = "hami.io/gpu-scheduler-policy", "hami.io/node-scheduler-policy"
"""Pod annotations: binpack or spread, for this pod instead of the policy of all."""
POLICIES = (BINPACK, SPREAD)
CONFIRMED_CHIP = "huawei.com/AscendReal"
"""Pod annotation with which the device plugin confirms that a chip was cut."""


class CardFamily:
    """Cards and the pods that hold them. Rows are nodes; nodes without cards are left out."""

    def __init__(
        self,
        family: DeviceFamily,
        policy: str = "",
        exclusive: Sequence[Mapping[str, str]] = (),
        *,
        takes_locks: bool = False,
    ) -> None:
        self.family = family
        self.resource_names = family.resource_names
        self._policy = policy or (FULLEST if family.fullest_first else "")
        self._exclusive = exclusive
        self._takes_locks = takes_locks and bool(family.lock)
        self._demands: dict[Hashable, CardDemand] = {}
        self._by_annotations = tuple(name for name in (family.soft_mode, family.bind_domain) if name)
        self._by_labels = DEMAND_LABELS if family.demand is DemandForm.CHIP_CORES else ()
        self._choices: dict[Hashable, tuple[int, NodeView, Choice]] = {}
        self._filters = tuple(
            name for name in (
                family.mode, family.use_id, family.avoid_id, family.use_type, family.avoid_type, family.soft_mode,
                family.bind_domain, CARD_POLICY, NODE_POLICY,
            ) if name
        )  # fmt: skip

    # -- a session -------------------------------------------------------------------------------------------------
    def open(self, session: Session) -> None:
        self._session = session
        table, family = session.table, self.family
        known = [(node.row, self._known_cards(node)) for node in table.nodes]
        nodes = [(row, of.cards) for row, of in known if of.cards]
        self._problems = {row: of.problem for row, of in known if of.problem}
        self._unknown: Mask = np.array([bool(of.problem) for _, of in known], dtype=bool)
        common = session.card_accounts
        common.accounts.append(self)
        self.cards = Cards(
            nodes,
            len(table),
            policy=self._policy,
            ascending=not family.highest_first,
            shared=not family.whole_cards,
            common=common,
        )
        self._filter = CardFilter(family, self.cards.of)
        self._held: dict[str, list[tuple[int, CardPart]]] = {}
        self._users: dict[Hashable, Counter[int]] = {}  # group or rule → the cards its pods use
        self._unstable: set[int] = set()  # chips that are being cut
        self._locks = LockedNodes(family.lock, table.nodes, session.now) if self._takes_locks else None
        for row, _ in nodes:
            for task in table.nodes[row].tasks.values():
                if self.wants(task) and task.status != Status.PIPELINED:
                    self._enter(task, self._held_by(task), leaves=task.status == Status.RELEASING)

    def _known_cards(self, node: Node) -> NodeCards:
        """Read once, and kept with the node until it or the description changes."""
        kept = node.devices.get(self.family.name)
        if kept is None or (kept[0] is not self.family and kept[0] != self.family):
            kept = node.devices[self.family.name] = self.family, cards_on(self.family, node)
        cards: NodeCards = kept[1]
        return cards

    # -- what pods ask for -----------------------------------------------------------------------------------------
    def wants(self, task: Task) -> bool:
        return bool(self._demand(task).portions)

    def concerns(self, task: Task) -> bool:
        """Whether pods of this shape may want such a card."""
        return names_resource(self.family, task.pod) if self._by_labels else self.wants(task)

    def portions(self, task: Task) -> tuple[Portion, ...]:
        return self._demand(task).portions

    def _demand(self, task: Task) -> CardDemand:
        key: Hashable = task.shape
        if self._by_annotations or self._by_labels:
            pod = task.pod
            stated = (*map(pod.annotations.get, self._by_annotations), *map(pod.labels.get, self._by_labels))
            key = (task.shape, stated)
        found = self._demands.get(key)
        if found is None:
            found = self._demands[key] = demand_of(self.family, task.pod)
        return found

    def key(self, task: Task) -> Hashable:
        """What, beyond the shape, decides which cards a pod may use."""
        annotations = task.pod.annotations
        group = self._group_of(task) if self._keeps_apart(task) else ""
        stated = tuple(annotations.get(name, "") for name in self._filters)
        return stated, group, self._rules_of(task), self.portions(task) if self._by_labels else ()

    def _keeps_apart(self, task: Task) -> bool:
        """Whether pods of the same group do not share a card."""
        return bool(self.family.group_policy) and task.pod.annotations.get(self.family.group_policy) == "spread"

    # -- answers ---------------------------------------------------------------------------------------------------
    def causes(self, task: Task, nodes: NodeView) -> Iterator[Cause]:
        demand = self._demand(task)
        has_cards = nodes.take(self.cards.counts) > 0
        refused = has_cards & ~self.choice(task, nodes).fits
        if demand.problem:
            refused = has_cards
        if self.family.uncounted_names:  # what nodes have no amount of does not keep a pod off a node without cards
            refused = refused | (~has_cards & ~nodes.take(self._unknown))
        if refused.any():
            yield Cause(refused, Code.UNSCHEDULABLE, demand.problem or self.family.refusal)
        for row, problem in self._problems.items():
            here = nodes.rows == row
            if here.any():
                yield Cause(here, Code.UNRESOLVABLE, problem)
        if self._locks is not None and self._locks.rows.any():
            locked = nodes.take(self._locks.rows) & has_cards
            if locked.any():
                yield Cause(locked, Code.UNSCHEDULABLE, self._locks.reason)

    def score(self, task: Task, nodes: NodeView) -> Column:
        scored: Column = np.floor(self.choice(task, nodes).score + 0.5)
        return -scored if task.pod.annotations.get(NODE_POLICY) == SPREAD else scored

    def choice(self, task: Task, nodes: NodeView) -> Choice:
        """Filter and score ask for the same view one after the other."""
        key = (task.shape, self.key(task))
        kept = self._choices.get(key)
        if kept is None or kept[0] != self._session.table.mark or kept[1] is not nodes:
            demand = self._demand(task)
            choice = self.cards.choose(self._wish(task, demand.portions), nodes)
            if demand.second and not choice.fits.all():
                second = self.cards.choose(self._wish(task, demand.second), nodes)
                choice.fits |= second.fits
            kept = self._choices[key] = self._session.table.mark, nodes, choice
        return kept[2]

    def _wish(self, task: Task, portions: tuple[Portion, ...]) -> CardRequest:
        rivals = self._rivals(task)
        allowed = self._filter.allowed(task.pod)
        shunned = [card for rival in rivals for card, users in self._users.get(rival, {}).items() if users]
        if self._unstable and any(portion.template for portion in portions):
            shunned += self._unstable
        if shunned:
            allowed = allowed.copy()
            allowed[shunned] = False
        stated = task.pod.annotations.get(CARD_POLICY) or task.pod.annotations.get(NODE_POLICY)
        policy = stated if stated in POLICIES else ""
        return CardRequest(portions, allowed, keeps_apart=bool(rivals), policy=policy)

    def _rivals(self, task: Task) -> list[Hashable]:
        """The pods that a pod shares no card with: its own group if it asks for that, and pods under the same rules."""
        return [*([self._group_of(task)] if self._keeps_apart(task) else []), *self._rules_of(task)]

    def _group_of(self, task: Task) -> str:
        return f"group {task.job_id}"

    def _rules_of(self, task: Task) -> tuple[str, ...]:
        labels = task.pod.labels
        return tuple(
            f"rule {number}"
            for number, rule in enumerate(self._exclusive)
            if all(labels.get(key) == value for key, value in rule.items())
        )

    # -- what happened ---------------------------------------------------------------------------------------------
    def allocate(self, task: Task) -> str | None:
        """Take cards on the task's node; an objection when there are not enough after all."""
        row = self._session.table.index.get(task.node)
        if row is None or not self.cards.counts[row]:
            return None
        if task.status not in (Status.ALLOCATED, Status.PIPELINED):
            self._enter(task, self._held_by(task))  # its eviction was undone
            return None
        at_once = task.status == Status.ALLOCATED
        demand = self._demand(task)
        choice, portions = (
            self.cards.choose_on(self._wish(task, demand.portions), row, at_once=at_once),
            demand.portions,
        )
        if not choice.fits[0] and demand.second:
            choice = self.cards.choose_on(self._wish(task, demand.second), row, at_once=at_once)
            portions = demand.second
        if not choice.fits[0]:
            return self.family.refusal
        slices = choice.slices or [[None] * len(cards) for cards in choice.taken]
        parts = [
            [self._part(portion, int(card), cut) for card, cut in zip(cards, cuts, strict=True)]
            for portion, cards, cuts in zip(portions, choice.taken, slices, strict=True)
        ]
        told = annotations_for(self.family, task.node, parts, self._session.now)
        task.bind_annotations.update(told)
        self._enter(task, [held for container in parts for held in container])
        return None

    def _part(self, portion: Portion, card: int, cut: Slice | None) -> CardPart:
        capacity, of = float(self.cards.capacity[card]), self.cards.of[card]
        if cut is not None:
            return CardPart(of.id, cut.memory, portion.cores, of.type, cut.label)
        memory = float(int(capacity * portion.percent / 100)) if portion.percent <= 100 else portion.memory
        return CardPart(of.id, memory, portion.cores, of.type)

    def release(self, task: Task) -> None:
        for card, held in self._held.pop(task.uid, ()):
            self.cards.stop_use(card, held.memory, held.cores, held.slice)
            for mark in self._marks(task):
                self._users[mark][card] -= 1
        if task.status == Status.PENDING:
            for key in self.family.assignment_keys:
                task.bind_annotations.pop(key, None)

    def _held_by(self, task: Task) -> list[CardPart]:
        """What a pod on a node holds: by what it is being bound with, or by the annotations that it has."""
        name = self.family.assigned
        text = task.bind_annotations.get(name) or task.pod.annotations.get(name, "")
        parts = decoded(self.family, text)
        if self.family.assignment is AssignmentForm.INDEXES:
            (portion, *_) = self.portions(task)
            return [replace(part, memory=portion.memory) for part in parts]
        if self.family.assignment is AssignmentForm.CHIPS:
            return [replace(part, memory=_cores_of(part)) for part in parts]
        return list(parts)

    def _enter(self, task: Task, parts: list[CardPart], *, leaves: bool = False) -> None:
        row = self._session.table.index.get(task.node)
        if row is None:
            return
        by_id = {self.cards.of[card].id: card for card in self.cards.cards_of(row)}
        entries = []
        for part in parts:
            card, held = by_id.get(part.card), part
            if card is None:
                continue  # the node no longer registers it
            if held.slice == WHOLE_CHIP:
                held = replace(held, memory=float(self.cards.capacity[card]))
            if leaves:
                self.cards.leave(card, held.memory, held.cores, held.slice)
                continue
            told = held.slice.partition("#")[0]
            entries.append((card, replace(held, slice=self.cards.use(card, held.memory, held.cores, told))))
            for mark in self._marks(task):
                self._users.setdefault(mark, Counter())[card] += 1
            if self._by_labels and CONFIRMED_CHIP not in task.pod.annotations and task.status != Status.ALLOCATED:
                self._unstable.add(card)
        self._held[task.uid] = entries

    def _marks(self, task: Task) -> list[Hashable]:
        return [self._group_of(task), *self._rules_of(task)]

    @property
    def waits_for_locks(self) -> bool:
        """Whether time alone (a lock that grows too old) may change what is decided."""
        return self._locks is not None and bool(self._locks.rows.any())

    def lock_for(self, task: Task) -> str:
        """The node annotation that must be taken before this pod is bound; empty when none."""
        return self.family.lock if self._locks is not None and self.wants(task) else ""


def _cores_of(part: CardPart) -> float:
    """Of a segment of a chip, by its template; nothing of a whole one, whose cores the node tells."""
    template = CHIP_TEMPLATES.get(part.slice.partition("#")[0])
    return float(template.cores) if template is not None else 0.0
