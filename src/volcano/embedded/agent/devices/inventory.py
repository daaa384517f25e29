"""Which cards an agent has, to which of its nodes each belongs, and by which of the two ways it is handed out.

A card is handed out either as an extended resource or by claims, never by both (decision 79): the two are counted
separately by every scheduler. It keeps its node and its way for as long as the agent runs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from volcano.embedded.agent.devices.cards import ACCELERATOR_RESOURCES, VENDORS, MachineCard
from volcano.embedded.agent.devices.detection import FoundCards

ALL_BY_CLAIMS: Final = -1


class PlacedCard(msgspec.Struct, frozen=True):
    """A card with its node and its way."""

    card: MachineCard
    node: str
    by_claims: bool
    is_there: bool = True


class CardInventory:
    """`by_claims`: of each kind of card on a node, how many are handed out by claims; ALL_BY_CLAIMS for all."""

    def __init__(
        self, found: FoundCards, nodes: Sequence[str], *, by_claims: int = 0, limits: Mapping[str, int] | None = None
    ) -> None:
        self._nodes, self._by_claims = tuple(nodes), by_claims
        self._limits = dict(limits or {})
        self._placed: dict[str, PlacedCard] = {}
        self._unused: set[str] = set()  # beyond the limits
        self.vendors: set[str] = set()
        """Whose cards are managed: containers without one see none."""
        self.update(found)

    def get(self, id: str) -> PlacedCard | None:
        return self._placed.get(id)

    def of(self, node: str) -> list[PlacedCard]:
        """Those that are there, in order."""
        return [each for each in self._placed.values() if each.node == node and each.is_there]

    def owns(self, file: str) -> bool:
        """Whether a file below /dev is that of a managed card, even of one that was not listed."""
        if any(file in each.card.files for each in self._placed.values()):
            return True
        return any(re.fullmatch(VENDORS[name].card_files, file) for name in self.vendors if VENDORS[name].card_files)

    @property
    def resources(self) -> set[str]:
        """The extended resources that have had cards."""
        return {each.card.resource for each in self._placed.values() if not each.by_claims}

    def amounts(self, node: str, held: frozenset[str] = frozenset()) -> dict[str, str]:
        """Cards of each extended resource; one that is gone counts until the pod that has it has ended."""
        counted = Counter(
            each.card.resource
            for each in self._placed.values()
            if each.node == node and not each.by_claims and (each.is_there or each.card.id in held)
        )
        return {resource: str(counted[resource]) for resource in sorted(self.resources)}

    def update(self, found: FoundCards) -> bool:
        """Take another look into account; returns whether something changed. What is unknown stays as it was."""
        before = dict(self._placed)
        self.vendors |= {*found.vendors, *(card.vendor for card in found.cards)}
        present = {card.id: card for card in found.cards}
        for id, placed in self._placed.items():
            if placed.card.vendor not in found.unknown:
                is_there = id in present
                card = present.get(id, placed.card)
                self._placed[id] = msgspec.structs.replace(placed, card=card, is_there=is_there)
        fresh = [card for card in found.cards if card.id not in self._placed and card.id not in self._unused]
        for resource in sorted(ACCELERATOR_RESOURCES):
            self._place([card for card in fresh if card.resource == resource])
        return self._placed != before

    def _place(self, cards: Sequence[MachineCard]) -> None:
        """Nodes of one machine share its cards: each gets a block of neighbours."""
        if not self._nodes:
            return
        size = -(-len(cards) // len(self._nodes)) or 1
        for start, node in zip(range(0, len(cards), size), self._nodes, strict=False):
            self._place_on(node, cards[start : start + size])

    def _place_on(self, node: str, cards: Sequence[MachineCard]) -> None:
        """The last ones are handed out by claims, as far as cards that came earlier are not."""
        resource = cards[0].resource
        known = [each for each in self._placed.values() if each.node == node and each.card.resource == resource]
        room = max(0, self._limits.get(resource, len(known) + len(cards)) - len(known))
        self._unused |= {card.id for card in cards[room:]}
        cards = cards[:room]
        claimed = len(cards)
        if self._by_claims != ALL_BY_CLAIMS:
            claimed = min(claimed, max(0, self._by_claims - sum(each.by_claims for each in known)))
        for place, card in enumerate(cards):
            self._placed[card.id] = PlacedCard(card, node, by_claims=place >= len(cards) - claimed)
