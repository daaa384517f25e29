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

from volcano.api.device_families import ALL_CORES_PERCENT
from volcano.scheduler.core.card_slices import UNCUT, UNSLICED, Slice, SliceStates, Slicing
from volcano.scheduler.core.card_trial import CardTrial
from volcano.scheduler.core.node_table import Column, Mask, Rows
from volcano.scheduler.core.node_view import NodeView
from volcano.scheduler.model import Task

UNSTATED: Final = 101
MAX_ROWS_ONE_BY_ONE: Final = 4
"""Of a question about copies: for so few nodes plain numbers are quicker than columns."""
BINPACK, SPREAD = "binpack", "spread"
FULLEST = "fullest"
"""Like binpack, but nodes are not scored by it."""


@dataclass(slots=True, frozen=True)
class Portion:
    """What one container asks for: a number of cards, and a part of each."""

    count: int
    memory: float = 0.0
    percent: int = UNSTATED  # of the card's memory, instead
    cores: float = 0.0
    alone: bool = False  # only cards without users
    of_whole_cards: float = 0.0  # instead of the count: cards whose memory adds up to this
    template: str = ""  # of a card that is cut by templates
    one_domain: bool = False  # only cards that are close to each other
    near: bool = False  # rather cards that are close to each other
    apart: bool = False  # no cards that containers before it have

    def memory_of(self, capacity: Column) -> Column:
        """What it takes of cards with that much memory."""
        if self.percent != UNSTATED:
            return np.trunc(capacity * self.percent / 100)
        return np.full(len(capacity), self.memory)

    def share_of(self, capacity: Column) -> Column:
        """Which part of cards with that much memory it takes."""
        if self.alone or self.cores >= ALL_CORES_PERCENT:
            return np.ones(len(capacity))
        cores = self.cores / ALL_CORES_PERCENT
        return np.clip(np.maximum(self.memory_of(capacity) / np.maximum(capacity, 1.0), cores), 0, 1)


@dataclass(slots=True, frozen=True, eq=False)
class CardRequest:
    """A pod's containers, the cards it may use at all, and whether copies of it keep away from each other."""

    portions: Sequence[Portion]
    allowed: Mask
    keeps_apart: bool = False
    policy: str = ""  # instead of the policy of all pods


@dataclass(slots=True, frozen=True)
class Card:
    """One card of a node as it is registered."""

    id: str
    memory: float
    most_users: float = np.inf
    type: str = ""
    mode: str = ""
    all_cores: float = ALL_CORES_PERCENT
    domain: int = 0  # cards of a node with the same number are close to each other
    slicing: Slicing | None = None
    healthy: bool = True


@dataclass(slots=True, eq=False)
class Choice:
    """For each entry whether all containers find their cards, and a score; for each container the cards taken."""

    fits: Mask
    score: Column
    taken: list[Rows] = field(default_factory=list)  # cards, by container; only of use for a single entry
    slices: list[list[Slice | None]] = field(default_factory=list)  # of these cards, likewise
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
    states: Rows | None  # of cards that are cut
    allowed: Mask


@dataclass(slots=True)
class LeavingUse:
    """What pods that are being deleted still have of a card."""

    users: float = 0.0
    memory: float = 0.0
    cores: float = 0.0
    labels: list[str] = field(default_factory=list)


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
        self.all_cores = np.array([card.all_cores for card in self.of])
        self.domain: Rows = np.array([card.domain for card in self.of], dtype=np.intp)
        cuts = [card.slicing for card in self.of]
        self.slices = SliceStates(cuts) if any(cuts) else None
        self.leaving: dict[int, LeavingUse] = {}
        self.users, self.memory, self.cores = (np.zeros(len(self.of)) for _ in range(3))
        self.counts = np.zeros(size, dtype=np.intp)  # cards of each row
        self._first = np.zeros(size, dtype=np.intp)
        for row, cards in nodes:
            self.counts[row] = len(cards)
        self._first[1:] = np.cumsum(self.counts)[:-1]
        self.policy, self.ascending, self._shared = policy, ascending, shared
        self._limits: dict[int, tuple[list[float], list[float], list[float]]] = {}
        self._common = common if common is not None else CardAccounts()

    def cards_of(self, row: int) -> range:
        return range(int(self._first[row]), int(self._first[row] + self.counts[row]))

    def limits_of(self, row: int) -> tuple[list[float], list[float], list[float]]:
        """Memory, cores and most users of each of its cards."""
        found = self._limits.get(row)
        if found is None:
            here = slice(self.cards_of(row).start, self.cards_of(row).stop)
            found = self.capacity[here].tolist(), self.all_cores[here].tolist(), self.most_users[here].tolist()
            self._limits[row] = found
        return found

    def use(self, card: int, memory: float, cores: float, told: str = "") -> str:
        """One more user; the label of the slice that `told` names."""
        self.users[card] += 1.0
        self.memory[card] += memory
        self.cores[card] += cores
        if self.slices is None or self.slices.now[card] == UNCUT:
            return ""
        label = self.slices.label(int(self.slices.now[card]), told or UNSLICED)
        self.slices.now[card] = self.slices.after(int(self.slices.now[card]), label)
        return label

    def stop_use(self, card: int, memory: float, cores: float, label: str = "") -> None:
        self.users[card] -= 1.0
        self.memory[card] -= memory
        self.cores[card] -= cores
        if self.slices is not None and label:
            self.slices.now[card] = self.slices.without(int(self.slices.now[card]), label)

    def leave(self, card: int, memory: float, cores: float, told: str = "") -> None:
        """A pod that is being deleted has this: it is free for promises, but not yet for a pod that is bound now."""
        left = self.leaving.setdefault(card, LeavingUse())
        left.users, left.memory, left.cores = left.users + 1.0, left.memory + memory, left.cores + cores
        left.labels.append(told or UNSLICED)

    # -- where would it go -----------------------------------------------------------------------------------------
    def choose(self, wish: CardRequest, view: NodeView) -> Choice:
        """For every entry of a view, after the copies imagined there."""
        rows, node = view.rows, np.arange(len(view))
        most = int(view.copies.max(initial=0))
        if most and self._is_plain(wish) and (few := set(rows.tolist())) and len(few) <= MAX_ROWS_ONE_BY_ONE:
            return self._choose_one_by_one(wish, view, few, most)
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

    def _is_plain(self, wish: CardRequest) -> bool:
        """Whether cards are taken by the policy alone."""
        if self._common.preference is not None:
            return False
        return not any((p.one_domain or p.near) and (p.count > 1 or p.one_domain) for p in wish.portions)

    def _choose_one_by_one(self, wish: CardRequest, view: NodeView, rows: set[int], most: int) -> Choice:
        """The same for a few nodes, each by itself."""
        choice = Choice(np.zeros(len(view), dtype=bool), np.zeros(len(view)))
        scores: dict[int, list[float]] = {}  # of each row, as many as copies fit
        for row in rows:
            trial = CardTrial(self, wish, row, at_once=False)
            found = scores[row] = []
            while self.counts[row] and len(found) <= most and (placed := trial.place()) is not None:
                found.append(placed[2])
        for place, (row, copy) in enumerate(zip(view.rows.tolist(), view.copies.tolist(), strict=True)):
            if copy < len(scores[row]):
                choice.fits[place], choice.score[place] = True, scores[row][copy]
        return choice

    def choose_on(self, wish: CardRequest, row: int, *, at_once: bool = True) -> Choice:
        """On one node; `at_once`: without what pods have that are being deleted."""
        if self._is_plain(wish):
            placed = CardTrial(self, wish, row, at_once=at_once).place() if self.counts[row] else None
            if placed is None:
                return Choice(np.zeros(1, dtype=bool), np.zeros(1))
            taken = [np.array(cards, dtype=np.intp) for cards in placed[0]]
            return Choice(np.ones(1, dtype=bool), np.full(1, placed[2]), taken, placed[1])
        scene = self._scene(wish, np.array([row], dtype=np.intp))
        if at_once and self.leaving:
            self._add_leaving(scene)
        return self._place(wish, scene, 1)

    def _add_leaving(self, scene: Scene) -> None:
        for place, card in enumerate(scene.card):
            left = self.leaving.get(int(card))
            if left is None:
                continue
            scene.users[place] += left.users
            scene.memory[place] += left.memory
            scene.cores[place] += left.cores
            if self.slices is not None and scene.states is not None and scene.states[place] != UNCUT:
                for told in left.labels:
                    state = int(scene.states[place])
                    scene.states[place] = self.slices.after(state, self.slices.label(state, told))

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
            1.0 - scene.memory / np.maximum(self.capacity[scene.card], 1.0),
            1.0 - scene.cores / np.maximum(self.all_cores[scene.card], 1.0),
        )
        return np.where(scene.users < self.most_users[scene.card], np.maximum(left, 0.0), 0.0)

    def _scene(self, wish: CardRequest, rows: Rows) -> Scene:
        counts = self.counts[rows]
        entry = np.repeat(np.arange(len(rows), dtype=np.intp), counts)
        offset = np.arange(len(entry), dtype=np.intp) - np.repeat(np.cumsum(counts) - counts, counts)
        card = self._first[rows][entry] + offset
        return Scene(
            entry,
            offset,
            card,
            self.users[card],
            self.memory[card],
            self.cores[card],
            self.slices.now[card] if self.slices is not None else None,
            wish.allowed[card].copy(),
        )

    def _place(self, wish: CardRequest, scene: Scene, entries: int) -> Choice:
        """One more such pod in every entry; where it fits, the scene shows it afterwards."""
        fits: Mask = np.bincount(scene.entry, minlength=entries) > 0
        choice = Choice(fits, np.zeros(entries))
        touched = np.zeros(len(scene.card), dtype=bool)
        for portion in wish.portions:
            taken = self._take(portion, scene, choice, entries, touched if portion.apart else None, wish.policy)
            touched[taken] = True
            choice.taken.append(scene.card[taken])
        if wish.keeps_apart:
            scene.allowed &= ~touched
        return choice

    def _take(
        self, portion: Portion, scene: Scene, choice: Choice, entries: int, shunned: Mask | None, policy: str
    ) -> Rows:
        """The best cards for one container in every entry where it and those before it fit."""
        capacity = self.capacity[scene.card]
        memory = portion.memory_of(capacity)
        states = scene.states
        if self.slices is not None and scene.states is not None:
            memory, states = self.slices.fitting(scene.states, memory, portion.template)
        open_ = self._open(portion, scene, capacity, memory)
        if shunned is not None:
            open_ &= ~shunned
        ordered = self._ordered(scene, np.flatnonzero(open_), portion, policy)
        seen = scene.entry[ordered]
        starts = np.searchsorted(seen, seen)  # where each one's entry begins
        count: int | Column = portion.count
        wanted: int | Column = count
        if portion.of_whole_cards:
            count = np.full(entries, np.inf)
            count[scene.entry] = portion.of_whole_cards / np.maximum(capacity, 1.0)
            count[np.floor(count) != count] = np.inf
            wanted = count[seen]
        chosen = ordered[np.arange(len(ordered)) - starts < wanted]
        choice.fits &= np.bincount(scene.entry[chosen], minlength=entries) >= count
        chosen = chosen[choice.fits[scene.entry[chosen]]]
        if scene.states is not None and states is not None:
            if entries == 1:
                choice.slices.append(self._cuts(portion, scene, chosen))
            scene.states[chosen] = states[chosen]
        scene.users[chosen] += 1.0
        scene.memory[chosen] += memory[chosen]
        scene.cores[chosen] += portion.cores
        if (policy or self.policy) == BINPACK:
            full = scene.memory[chosen] / np.maximum(capacity[chosen], 1.0) * 100
            choice.score += np.bincount(scene.entry[chosen], weights=full, minlength=entries)
        return chosen

    def _open(self, portion: Portion, scene: Scene, capacity: Column, memory: Column) -> Mask:
        """The cards that have room for a container."""
        cores = self.all_cores[scene.card]
        open_: Mask = scene.allowed & (scene.users < self.most_users[scene.card])
        room = capacity - scene.memory >= memory
        if scene.states is not None:  # a slice is free or not, whatever its memory adds up to
            room = np.where(scene.states != UNCUT, np.isfinite(memory), room)
        open_ &= room & (scene.cores + portion.cores <= cores)
        if portion.alone:
            open_ &= scene.users == 0
        elif portion.cores > 0:
            open_ &= (scene.users == 0) | (portion.cores < cores)
        else:
            open_ &= scene.cores < cores
        if portion.one_domain:
            open_ &= self._alike(scene, open_) >= portion.count
        return open_

    def _alike(self, scene: Scene, open_: Mask) -> Rows:
        """For each card how many open cards of its domain there are."""
        width = int(self.domain.max(initial=0)) + 1
        place = scene.entry * width + self.domain[scene.card]
        alike: Rows = np.bincount(place[open_], minlength=int(place.max(initial=-1)) + 1)[place]
        return alike

    def _cuts(self, portion: Portion, scene: Scene, chosen: Rows) -> list[Slice | None]:
        assert self.slices is not None and scene.states is not None
        memory = portion.memory_of(self.capacity[scene.card])
        return [
            None
            if scene.states[place] == UNCUT
            else self.slices.cut(int(scene.states[place]), float(memory[place]), portion.template)
            for place in chosen
        ]

    def _ordered(self, scene: Scene, places: Rows, portion: Portion, policy: str) -> Rows:
        """By entry, and within it the card to take first."""
        ordered = self._by_policy(scene, places, portion, policy or self.policy)
        if not (portion.one_domain or portion.near) or portion.count < 2:
            return ordered
        open_ = np.zeros(len(scene.card), dtype=bool)
        open_[ordered] = True
        alike = self._alike(scene, open_)[ordered]
        domain = self.domain[scene.card[ordered]]
        fewest_first = alike if portion.one_domain else -alike
        return ordered[np.lexsort((np.arange(len(ordered)), domain, fewest_first, scene.entry[ordered]))]

    def _by_policy(self, scene: Scene, places: Rows, portion: Portion, policy: str) -> Rows:
        number, entry = self.number[scene.card[places]], scene.entry[places]
        if self._common.preference is not None:
            cards, free = scene.card[places], self._free(scene)[places]
            wanted = self._common.preference(self, cards, free, portion.share_of(self.capacity[cards]))
            return places[np.lexsort((number, free, wanted, entry))]
        if policy in (BINPACK, FULLEST):
            order = np.lexsort((number, -scene.memory[places], entry))
        elif policy == SPREAD:
            order = np.lexsort((number, scene.users[places], entry))
        else:
            order = np.lexsort((number if self.ascending else -number, entry))
        return places[order]
