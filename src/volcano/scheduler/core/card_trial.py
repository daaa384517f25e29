"""CardTrial: the cards of a single node as plain numbers, on which copies of a pod are placed one after the other.

It answers as `Cards` does for many nodes; for one node with a few cards plain numbers are several times quicker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from volcano.scheduler.core.card_slices import UNCUT, Slice

if TYPE_CHECKING:
    from volcano.scheduler.core.cards import CardRequest, Cards, Portion

UNSTATED_PERCENT = 101


class CardTrial:
    def __init__(self, cards: Cards, wish: CardRequest, row: int, *, at_once: bool) -> None:
        """`at_once`: without what pods have that are being deleted."""
        span = cards.cards_of(row)
        here = slice(span.start, span.stop)
        self.first, self._wish, self._slices = span.start, wish, cards.slices
        self._users: list[float] = cards.users[here].tolist()
        self._memory: list[float] = cards.memory[here].tolist()
        self._cores: list[float] = cards.cores[here].tolist()
        self._states: list[int] | None = cards.slices.now[here].tolist() if cards.slices is not None else None
        self._capacity, self._all_cores, self._most = cards.limits_of(row)
        self._allowed: list[bool] = wish.allowed[here].tolist()
        self._policy = wish.policy or cards.policy
        self._direction = 1 if cards.ascending else -1
        if at_once and cards.leaving:
            for place, card in enumerate(span):
                self._add_leaving(cards, place, card)

    def _add_leaving(self, cards: Cards, place: int, card: int) -> None:
        left = cards.leaving.get(card)
        if left is None:
            return
        self._users[place] += left.users
        self._memory[place] += left.memory
        self._cores[place] += left.cores
        if self._slices is not None and self._states is not None and self._states[place] != UNCUT:
            for told in left.labels:
                label = self._slices.label(self._states[place], told)
                self._states[place] = self._slices.after(self._states[place], label)

    def place(self) -> tuple[list[list[int]], list[list[Slice | None]], float] | None:
        """One more such pod: the cards of each container, their slices and a score; None when it does not fit."""
        taken: list[list[int]] = []
        slices: list[list[Slice | None]] = []
        score, touched = 0.0, set[int]()
        for portion in self._wish.portions:
            chosen = self._take(portion, touched if portion.apart else ())
            if chosen is None:
                return None
            cuts = []
            for place, need, cut in chosen:
                self._users[place] += 1.0
                self._memory[place] += need
                self._cores[place] += portion.cores
                if cut is not None and self._slices is not None and self._states is not None:
                    self._states[place] = self._slices.after(self._states[place], cut.label)
                score += self._memory[place] / max(self._capacity[place], 1.0) * 100
                cuts.append(cut)
            taken.append([self.first + place for place, _, _ in chosen])
            slices.append(cuts)
            touched.update(place for place, _, _ in chosen)
        if self._wish.keeps_apart:
            for place in touched:
                self._allowed[place] = False
        return taken, slices, score if self._policy == "binpack" else 0.0

    def _take(self, portion: Portion, shunned: set[int] | tuple[()]) -> list[tuple[int, float, Slice | None]] | None:
        """Places of cards with what is taken of each."""
        count = portion.count
        if portion.of_whole_cards:
            whole = portion.of_whole_cards / max(self._capacity[0], 1.0) if self._capacity else 0.5
            if whole % 1:
                return None
            count = int(whole)
        if not count:
            return []
        fitting = [
            (key, place, need, cut)
            for place in range(len(self._users))
            if self._allowed[place] and place not in shunned
            for key, need, cut in self._room(portion, place)
        ]
        if len(fitting) < count:
            return None
        fitting.sort(key=lambda each: each[0])
        return [(place, need, cut) for _, place, need, cut in fitting[:count]]

    def _room(self, portion: Portion, place: int) -> list[tuple[tuple[float, int], float, Slice | None]]:
        """How early the card is taken, what is taken of it, and the slice; nothing when it has no room."""
        users, used, cores = self._users[place], self._cores[place], self._all_cores[place]
        if users >= self._most[place] or used + portion.cores > cores:
            return []
        if portion.alone:
            if users:
                return []
        elif portion.cores > 0:
            if users and portion.cores >= cores:
                return []
        elif used >= cores:
            return []
        capacity, held, cut = self._capacity[place], self._memory[place], None
        need = portion.memory if portion.percent == UNSTATED_PERCENT else float(int(capacity * portion.percent / 100))
        if self._states is not None and self._slices is not None and self._states[place] != UNCUT:
            cut = self._slices.cut(self._states[place], need, portion.template)
            if cut is None:
                return []
            need = cut.memory
        elif capacity - held < need:
            return []
        if self._policy in ("binpack", "fullest"):
            key = (-held, place)
        elif self._policy == "spread":
            key = (users, place)
        else:
            key = (0.0, self._direction * place)
        return [(key, need, cut)]
