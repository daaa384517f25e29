"""Cards: the accelerator cards of all nodes as columns, and where a pod's containers would go on them.

A question is answered for many nodes at once, and also for nodes with imagined copies of the pod (core.node_view): each
entry of a view has the cards of its node to itself, as they would be after that many copies.

What is free of a card is counted as a share of it (1.0: all): the smaller of what is left of its memory and its cores.
Plugins that do not know each other meet in `CardAccounts`: one keeps the cards, another may say which card to take.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

import numpy as np

from volcano.scheduler.core.node_table import Column, Mask, Rows
from volcano.scheduler.core.node_view import NodeView
from volcano.scheduler.model import Task

ALL_CORES: Final = 100.0
UNSTATED: Final = 101
BINPACK, SPREAD = "binpack", "spread"


@dataclass(slots=True, frozen=True)
class Portion:
    """What one container asks for: a number of cards, and a part of each."""

    count: int
    memory: float = 0.0
    percent: int = UNSTATED  # of the card's memory, instead
    cores: float = 0.0
    alone: bool = False  # only cards without users

    def memory_of(self, capacity: Column) -> Column:
        """What it takes of cards with that much memory."""
        if self.percent != UNSTATED:
            return np.trunc(capacity * self.percent / 100)
        return np.full(len(capacity), self.memory)

    def share_of(self, capacity: Column) -> Column:
        """Which part of cards with that much memory it takes."""
        if self.alone or self.cores >= ALL_CORES:
            return np.ones(len(capacity))
        return np.clip(np.maximum(self.memory_of(capacity) / np.maximum(capacity, 1.0), self.cores / ALL_CORES), 0, 1)


@dataclass(slots=True, frozen=True, eq=False)
class CardRequest:
    """A pod's containers, the cards it may use at all, and whether copies of it keep away from each other."""

    portions: Sequence[Portion]
    allowed: Mask
    keeps_apart: bool = False


@dataclass(slots=True, frozen=True)
class Card:
    """One card of a node as it is registered."""

    id: str
    memory: float
    most_users: float = np.inf
    type: str = ""
    mode: str = ""


@dataclass(slots=True, eq=False)
class Choice:
    """For each entry whether all containers find their cards, and a score; for each container the cards taken."""

    fits: Mask
    score: Column
    taken: list[Rows] = field(default_factory=list)  # cards, by container; only of use for a single entry
    before: Column | None = None  # what is free of each entry's cards, a line for each entry; kept on request
    after: Column | None = None  # the same when the pod has its cards


@dataclass(slots=True, eq=False)
class Scene:
    """Cards as entries of a view see them: copies that a trial may change."""

    entry: Rows  # of each card seen
    place: Rows  # among the cards of its entry
    card: Rows
    users: Column
    memory: Column
    cores: Column
    allowed: Mask


class CardAccount(Protocol):
    """Who keeps one family of cards, and knows which pods ask for them."""

    cards: Cards

    def wants(self, task: Task) -> bool: ...

    def portions(self, task: Task) -> tuple[Portion, ...]: ...

    def choice(self, task: Task, nodes: NodeView) -> Choice: ...

    @property
    def resource_names(self) -> tuple[str, ...]:
        """The resources by which pods ask for these cards."""
        ...


CardPreference: TypeAlias = "Callable[[Cards, Rows, Column, Column], Column]"
"""Of cards, with what is free of each and what would be taken: which to take first (the lowest)."""


@dataclass(slots=True)
class CardAccounts:
    """All families of cards of a session; and, where a plugin says so, in which order cards are taken."""

    accounts: list[CardAccount] = field(default_factory=list)
    preference: CardPreference | None = None


class Cards:
    def __init__(
        self,
        nodes: Sequence[tuple[int, Sequence[Card]]],
        size: int,
        *,
        policy: str,
        ascending: bool,
        shared: bool = True,
        common: CardAccounts | None = None,
    ) -> None:
        """`nodes`: rows with their cards; `size`: how many rows there are. `ascending`: lower numbers first.

        `shared`: a card may have several users; else one user has all of it, whatever amounts say.
        """
        self.of = [card for _, cards in nodes for card in cards]
        self.row: Rows = np.array([row for row, cards in nodes for _ in cards], dtype=np.intp)
        self.number: Rows = np.array([place for _, cards in nodes for place in range(len(cards))], dtype=np.intp)
        self.most_users = np.array([card.most_users for card in self.of])
        self.capacity = np.array([card.memory for card in self.of])
        self.users, self.memory, self.cores = (np.zeros(len(self.of)) for _ in range(3))
        self.counts = np.zeros(size, dtype=np.intp)  # cards of each row
        self._first = np.zeros(size, dtype=np.intp)
        for row, cards in nodes:
            self.counts[row] = len(cards)
        self._first[1:] = np.cumsum(self.counts)[:-1]
        self._policy, self._ascending, self._shared = policy, ascending, shared
        self._common = common if common is not None else CardAccounts()

    def cards_of(self, row: int) -> range:
        return range(int(self._first[row]), int(self._first[row] + self.counts[row]))

    def use(self, card: int, memory: float, cores: float, sign: float = 1.0) -> None:
        self.users[card] += sign
        self.memory[card] += sign * memory
        self.cores[card] += sign * cores

    # -- where would it go -----------------------------------------------------------------------------------------
    def choose(self, wish: CardRequest, view: NodeView) -> Choice:
        """For every entry of a view, after the copies imagined there."""
        rows, node = view.rows, np.arange(len(view))
        most = int(view.copies.max(initial=0))
        if most:
            rows, node = np.unique(view.rows, return_inverse=True)  # copies on a node are placed one after the other
        scene = self._scene(wish, rows)
        choice = Choice(np.zeros(len(view), dtype=bool), np.zeros(len(view)))
        if self._common.preference is not None:
            shape = (len(view), int(self.counts.max(initial=0)))
            choice.before, choice.after = np.zeros(shape), np.zeros(shape)
        for copy in range(most + 1):
            here = np.flatnonzero(view.copies == copy)
            at = node[here]
            if choice.before is not None:
                choice.before[here] = self._lines(scene, len(rows))[at]
            step = self._place(wish, scene, len(rows))
            choice.fits[here], choice.score[here] = step.fits[at], step.score[at]
            if choice.after is not None:
                choice.after[here] = self._lines(scene, len(rows))[at]
        return choice

    def choose_on(self, wish: CardRequest, row: int) -> Choice:
        return self._place(wish, self._scene(wish, np.array([row], dtype=np.intp)), 1)

    def free_on(self, rows: Rows) -> Column:
        """What is free of the cards of these rows: a line for each row, 0 beyond its last card."""
        return self._lines(self._scene(CardRequest((), np.ones(len(self.of), dtype=bool)), rows), len(rows))

    def _lines(self, scene: Scene, entries: int) -> Column:
        lines = np.zeros((entries, int(self.counts.max(initial=0))))
        lines[scene.entry, scene.place] = self._free(scene)
        return lines

    def _free(self, scene: Scene) -> Column:
        if not self._shared:
            return np.where(scene.users > 0.0, 0.0, 1.0)
        left = np.minimum(
            1.0 - scene.memory / np.maximum(self.capacity[scene.card], 1.0), 1.0 - scene.cores / ALL_CORES
        )
        return np.where(scene.users < self.most_users[scene.card], np.maximum(left, 0.0), 0.0)

    def _scene(self, wish: CardRequest, rows: Rows) -> Scene:
        counts = self.counts[rows]
        entry = np.repeat(np.arange(len(rows), dtype=np.intp), counts)
        offset = np.arange(len(entry), dtype=np.intp) - np.repeat(np.cumsum(counts) - counts, counts)
        card = self._first[rows][entry] + offset
        return Scene(
            entry, offset, card, self.users[card], self.memory[card], self.cores[card], wish.allowed[card].copy()
        )

    def _place(self, wish: CardRequest, scene: Scene, entries: int) -> Choice:
        """One more such pod in every entry; where it fits, the scene shows it afterwards."""
        fits: Mask = np.bincount(scene.entry, minlength=entries) > 0
        choice = Choice(fits, np.zeros(entries))
        touched = np.zeros(len(scene.card), dtype=bool)
        for portion in wish.portions:
            taken = self._take(portion, scene, choice, entries)
            touched[taken] = True
            choice.taken.append(scene.card[taken])
        if wish.keeps_apart:
            scene.allowed &= ~touched
        return choice

    def _take(self, portion: Portion, scene: Scene, choice: Choice, entries: int) -> Rows:
        """The best cards for one container in every entry where it and those before it fit."""
        capacity = self.capacity[scene.card]
        memory = portion.memory_of(capacity)
        open_ = scene.allowed & (scene.users < self.most_users[scene.card])
        open_ &= (capacity - scene.memory >= memory) & (scene.cores + portion.cores <= ALL_CORES)
        if portion.cores >= ALL_CORES or portion.alone:
            open_ &= scene.users == 0
        elif portion.cores == 0:
            open_ &= scene.cores < ALL_CORES
        ordered = self._ordered(scene, np.flatnonzero(open_), portion)
        seen = scene.entry[ordered]
        starts = np.searchsorted(seen, seen)  # where each one's entry begins
        chosen = ordered[np.arange(len(ordered)) - starts < portion.count]
        choice.fits &= np.bincount(scene.entry[chosen], minlength=entries) >= portion.count
        chosen = chosen[choice.fits[scene.entry[chosen]]]
        scene.users[chosen] += 1.0
        scene.memory[chosen] += memory[chosen]
        scene.cores[chosen] += portion.cores
        if self._policy == BINPACK:
            full = scene.memory[chosen] / np.maximum(capacity[chosen], 1.0) * 100
            choice.score += np.bincount(scene.entry[chosen], weights=full, minlength=entries)
        return chosen

    def _ordered(self, scene: Scene, places: Rows, portion: Portion) -> Rows:
        """By entry, and within it the card to take first."""
        number, entry = self.number[scene.card[places]], scene.entry[places]
        if self._common.preference is not None:
            cards, free = scene.card[places], self._free(scene)[places]
            wanted = self._common.preference(self, cards, free, portion.share_of(self.capacity[cards]))
            return places[np.lexsort((number, free, wanted, entry))]
        if self._policy == BINPACK:
            order = np.lexsort((number, -scene.memory[places], entry))
        elif self._policy == SPREAD:
            order = np.lexsort((number, scene.users[places], entry))
        else:
            order = np.lexsort((number if self._ascending else -number, entry))
        return places[order]
