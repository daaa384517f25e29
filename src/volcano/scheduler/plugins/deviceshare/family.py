"""Family: one kind of shared device. Which pods ask for it, which cards nodes have, and a bound pod's annotations."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from volcano.scheduler.core.cards import Card, CardRequest, Cards, Choice, Portion
from volcano.scheduler.core.node_table import Column, Mask
from volcano.scheduler.core.node_view import NodeView
from volcano.scheduler.framework.answers import Cause, Code
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Node, Shape, Status, Task


@dataclass(slots=True, frozen=True)
class CardPart:
    """A part of a card that a pod has."""

    card: str
    memory: float
    cores: float
    type: str = ""


class Family:
    """Cards and the pods that hold them, during one session. Rows are nodes; nodes without cards are left out."""

    name = ""
    refusal = ""
    resource_names: tuple[str, ...] = ()  # by which pods ask for it
    ascending = True  # without a policy, lower numbered cards first
    shared = True  # whether a card may have several users

    def __init__(self, policy: str = "", exclusive: Sequence[Mapping[str, str]] = ()) -> None:
        self._policy = policy
        self._exclusive = exclusive
        self._portions: dict[Shape, tuple[Portion, ...]] = {}
        self._choices: dict[Hashable, tuple[int, NodeView, Choice]] = {}

    # -- what distinguishes families -------------------------------------------------------------------------------
    @abstractmethod
    def portions_of(self, task: Task) -> tuple[Portion, ...]:
        """What each container asks for; nothing for pods that do not want such a device."""

    @abstractmethod
    def cards_on(self, node: Node) -> tuple[Card, ...]: ...

    @abstractmethod
    def held_by(self, task: Task) -> list[CardPart]:
        """What a pod on a node holds, by the annotations it was bound with."""

    @abstractmethod
    def annotations_for(self, task: Task, taken: list[list[CardPart]], now: datetime) -> dict[str, str]:
        """Annotations for the pod: the parts each container gets."""

    def key(self, task: Task) -> Hashable:
        """What, beyond the shape, decides which cards a pod may use."""
        return self._group_of(task), self._rules_of(task)

    def allows(self, task: Task) -> Mask:
        """Over all cards; not to be written to."""
        return np.ones(len(self.cards.of), dtype=bool)

    def keeps_apart(self, task: Task) -> bool:
        """Whether pods of the same group do not share a card."""
        return False

    # -- a session -------------------------------------------------------------------------------------------------
    def open(self, session: Session) -> None:
        self._session = session
        table = session.table
        nodes = [(node.row, cards) for node in table.nodes if (cards := self._known_cards(node))]
        common = session.card_accounts
        common.accounts.append(self)
        self.cards = Cards(
            nodes, len(table), policy=self._policy, ascending=self.ascending, shared=self.shared, common=common
        )
        self._held: dict[str, list[tuple[int, CardPart]]] = {}
        self._users: dict[Hashable, Counter[int]] = {}  # group or rule → the cards its pods use
        for row, _ in nodes:
            for task in table.nodes[row].tasks.values():
                if self.wants(task) and task.status not in (Status.RELEASING, Status.PIPELINED):
                    self._enter(task, self.held_by(task))

    def _known_cards(self, node: Node) -> tuple[Card, ...]:
        """Read once, and kept with the node until it changes."""
        if self.name not in node.devices:
            node.devices[self.name] = self.cards_on(node)
        cards: tuple[Card, ...] = node.devices[self.name]
        return cards

    def wants(self, task: Task) -> bool:
        return bool(self.portions(task))

    def portions(self, task: Task) -> tuple[Portion, ...]:
        if task.shape not in self._portions:
            self._portions[task.shape] = self.portions_of(task)
        return self._portions[task.shape]

    # -- answers ---------------------------------------------------------------------------------------------------
    def causes(self, task: Task, nodes: NodeView) -> Iterator[Cause]:
        refused = (nodes.take(self.cards.counts) > 0) & ~self.choice(task, nodes).fits
        if refused.any():
            yield Cause(refused, Code.UNSCHEDULABLE, self.refusal)

    def score(self, task: Task, nodes: NodeView) -> Column:
        return np.floor(self.choice(task, nodes).score + 0.5)

    def choice(self, task: Task, nodes: NodeView) -> Choice:
        """Filter and score ask for the same view one after the other."""
        key = (task.shape, self.key(task))
        kept = self._choices.get(key)
        if kept is None or kept[0] != self._session.table.mark or kept[1] is not nodes:
            choice = self.cards.choose(self._wish(task), nodes)
            kept = self._choices[key] = self._session.table.mark, nodes, choice
        return kept[2]

    def _wish(self, task: Task) -> CardRequest:
        rivals = self._rivals(task)
        allowed = self.allows(task)
        if rivals:
            allowed = allowed.copy()
            allowed[[card for rival in rivals for card, users in self._users.get(rival, {}).items() if users]] = False
        return CardRequest(self.portions(task), allowed, keeps_apart=bool(rivals))

    def _rivals(self, task: Task) -> list[Hashable]:
        """The pods that a pod shares no card with: its own group if it asks for that, and pods under the same rules."""
        return [*([self._group_of(task)] if self.keeps_apart(task) else []), *self._rules_of(task)]

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
            self._enter(task, self.held_by(task))  # its eviction was undone
            return None
        choice = self.cards.choose_on(self._wish(task), row)
        if not choice.fits[0]:
            return self.refusal
        parts = [
            [self._part(portion, int(card)) for card in cards]
            for portion, cards in zip(self.portions(task), choice.taken, strict=True)
        ]
        task.bind_annotations.update(self.annotations_for(task, parts, self._session.now))
        self._enter(task, [held for container in parts for held in container])
        return None

    def _part(self, portion: Portion, card: int) -> CardPart:
        capacity = float(self.cards.capacity[card])
        memory = float(int(capacity * portion.percent / 100)) if portion.percent <= 100 else portion.memory
        return CardPart(self.cards.of[card].id, memory, portion.cores, self.cards.of[card].type)

    def release(self, task: Task) -> None:
        for card, held in self._held.pop(task.uid, ()):
            self.cards.use(card, held.memory, held.cores, -1.0)
            for mark in self._marks(task):
                self._users[mark][card] -= 1
        if task.status == Status.PENDING:
            for key in self.annotations_for(task, [], self._session.now):
                task.bind_annotations.pop(key, None)

    def _enter(self, task: Task, parts: list[CardPart]) -> None:
        row = self._session.table.index.get(task.node)
        if row is None:
            return
        by_id = {self.cards.of[card].id: card for card in self.cards.cards_of(row)}
        entries = [(by_id[held.card], held) for held in parts if held.card in by_id]
        for card, held in entries:
            self.cards.use(card, held.memory, held.cores)
            for mark in self._marks(task):
                self._users.setdefault(mark, Counter())[card] += 1
        self._held[task.uid] = entries

    def _marks(self, task: Task) -> list[Hashable]:
        return [self._group_of(task), *self._rules_of(task)]
