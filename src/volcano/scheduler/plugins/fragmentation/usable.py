"""Usable: how much of what is free on nodes the typical shapes can use, as columns.

What is free is stranded as far as it is not usable; api.pods.stranded says by which rule. That a node holds so many
copies of one shape alone sees that cards are too small, or too few; that it is filled with the mix sees early that cpus
will not suffice for the cards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from volcano.api.pods.stranded import MIXED_WEIGHT, ROUNDING
from volcano.scheduler.core.cards import CardAccount
from volcano.scheduler.core.node_table import Column, NodeTable, Rows
from volcano.scheduler.model import PODS
from volcano.scheduler.plugins.fragmentation.mix import TypicalShape, admitted

UNLIMITED: Final = 1e12
UNIT: Final = 1000.0
"""Extended resources are counted in thousandths (model.resources)."""


@dataclass(slots=True)
class NodeState:
    """What is free on nodes: amounts by resource, and of each card a share where they have cards."""

    idle: Mapping[str, Column]
    cards: Column | None

    def cut(self, rows: Rows) -> NodeState:
        cards = None if self.cards is None else self.cards[rows]
        return NodeState({name: column[rows] for name, column in self.idle.items()}, cards)


@dataclass(slots=True, eq=False)
class NodeClass:
    """Nodes that admit the same shapes, to whose cards a shape is of the same size."""

    weights: Column  # of the shapes, summing up to 1
    amounts: Column  # pieces that one pod of the shape takes
    counts: Column  # cards that it takes a share of; for a resource that is only counted, 1
    shares: Column  # the distinct shares of a card
    share: Rows  # the place of each shape's share
    requests: dict[str, Column]
    means: dict[str, float] = field(default_factory=dict)  # what the mix asks of a resource for each piece
    inverse: dict[str, Column] = field(default_factory=dict)  # of requests
    slack: dict[str, Column] = field(default_factory=dict)  # for shapes that ask for none, so that it never limits

    def __post_init__(self) -> None:
        pieces = float(self.weights @ self.amounts)
        for name, asked in self.requests.items():
            self.means[name] = float(self.weights @ asked) / pieces
            self.inverse[name] = np.where(asked > 0.0, 1.0 / np.where(asked > 0.0, asked, 1.0), 0.0)
            self.slack[name] = np.where(asked > 0.0, ROUNDING, UNLIMITED)

    def usable(self, state: NodeState, free: Column) -> Column:
        cards = state.cards
        copies = free[:, None] / self.amounts + ROUNDING if cards is None else self._copies_on_cards(cards)
        mixed = free
        for name, inverse in self.inverse.items():
            idle = np.maximum(state.idle[name], 0.0)
            copies = np.minimum(copies, idle[:, None] * inverse + self.slack[name])
            if self.means[name] > 0.0:
                mixed = np.minimum(mixed, idle / self.means[name])
        alone = np.floor(copies) @ (self.weights * self.amounts)
        combined: Column = (alone + MIXED_WEIGHT * mixed) / (1.0 + MIXED_WEIGHT)
        return np.minimum(combined, free)

    def _copies_on_cards(self, cards: Column) -> Column:
        fitting = np.empty((len(cards), len(self.shares)))
        for place, share in enumerate(self.shares):
            fitting[:, place] = np.floor(cards / share + ROUNDING).sum(axis=1)
        copies: Column = fitting[:, self.share] / self.counts + ROUNDING
        return copies

    def worth(self, free: Column) -> Column:
        """What a single card of which so much is free is worth: times the part of the mix that finds room on it."""
        order = np.argsort(self.shares)
        by_share = np.bincount(self.share, weights=self.weights, minlength=len(self.shares))[order]
        reached = np.concatenate([[0.0], np.cumsum(by_share)])
        column: Column = free * reached[np.searchsorted(self.shares[order], free + ROUNDING, side="right")]
        return column


class Usable:
    """Of one resource that is counted, or of the cards of one account."""

    def __init__(
        self,
        table: NodeTable,
        shapes: list[TypicalShape],
        *,
        resource: str = "",
        account: CardAccount | None = None,
        place: int = 0,
    ) -> None:
        """`place`: that of the account in the shapes' portions."""
        self._table, self.resource, self.account = table, resource, account
        asking = [shape for shape in shapes if (shape.portions[place] if account else shape.request[resource] > 0.0)]
        self._place, self._shapes = place, asking
        own = (*(self.account.resource_names if self.account else ()), resource, PODS)
        names = {name for shape in asking for name, amount in shape.request.amounts.items() if amount > 0.0}
        self.names = sorted(names - set(own))
        self._classes: list[NodeClass | None] = []
        self._of = np.zeros(len(table), dtype=np.intp)
        self._tell_classes_apart()

    def _tell_classes_apart(self) -> None:
        chosen, masks = admitted(self._table, self._shapes)
        lines = [mask.astype(np.float64) for mask in masks]
        if self.account is not None:
            cards = self.account.cards
            capacity = np.zeros(len(self._table))
            capacity[cards.row[::-1]] = cards.capacity[::-1]
            lines.append(capacity)
        kinds, self._of = np.unique(np.array(lines), axis=1, return_inverse=True)
        self._of = self._of.reshape(-1)
        for kind in kinds.T:
            admits = [shape for shape, mask in zip(self._shapes, chosen, strict=True) if kind[mask] > 0.0]
            self._classes.append(self._class(admits, float(kind[-1])) if admits else None)

    def _class(self, shapes: list[TypicalShape], capacity: float) -> NodeClass | None:
        counts, taken = np.ones(len(shapes)), np.ones(len(shapes))
        for place, shape in enumerate(shapes):
            if self.account is None:
                taken[place] = shape.request[self.resource] / UNIT
                continue
            portions = [portion for portion in shape.portions[self._place] if portion.count]
            counts[place] = sum(portion.count for portion in portions)
            taken[place] = max(float(portion.share_of(np.array([capacity]))[0]) for portion in portions)
        taken = np.maximum(taken, ROUNDING)
        weights = np.array([shape.weight for shape in shapes])
        shares, share = np.unique(np.round(taken, 6), return_inverse=True)
        requests = {name: np.array([shape.request[name] for shape in shapes]) for name in self.names}
        return NodeClass(weights / weights.sum(), counts * taken, counts, shares, share.reshape(-1), requests)

    # -- answers -------------------------------------------------------------------------------------------------------
    def free(self, state: NodeState) -> Column:
        return state.cards.sum(axis=1) if state.cards is not None else np.maximum(state.idle[self.resource], 0.0) / UNIT

    def stranded(self, rows: Rows, state: NodeState) -> Column:
        """Pieces that are free on these rows and that the mix cannot use."""
        free = self.free(state)
        result = np.zeros(len(rows))
        kinds = self._of[rows]
        for kind in np.unique(kinds):
            here = np.flatnonzero((kinds == kind) & (free > 0.0))
            of = self._classes[int(kind)]
            if not len(here):
                continue
            result[here] = free[here]
            if of is not None:
                different, same = alike(state.cut(here), free[here])
                result[here] -= of.usable(state.cut(here[different]), free[here[different]])[same]
        return result

    def card_loss(self, cards: Rows, free: Column, taken: Column) -> Column:
        """What single cards lose of their worth, beyond what is taken."""
        assert self.account is not None
        loss = np.zeros(len(cards))
        kinds = self._of[self.account.cards.row[cards]]
        for kind in np.unique(kinds):
            of = self._classes[int(kind)]
            if of is not None:
                here = kinds == kind
                loss[here] = of.worth(free[here]) - of.worth(np.maximum(free[here] - taken[here], 0.0))
        return np.round(loss, 9)


def alike(state: NodeState, free: Column) -> tuple[Rows, Rows]:
    """Nodes in the same state need one answer: where each state occurs first, and the state of each node."""
    cards = free[:, None] if state.cards is None else np.sort(state.cards, axis=1)
    lines = np.ascontiguousarray(np.column_stack([*state.idle.values(), cards]))
    whole = lines.view(np.dtype((np.void, lines.dtype.itemsize * lines.shape[1]))).reshape(-1)
    _, first, same = np.unique(whole, return_index=True, return_inverse=True)
    return first.astype(np.intp), same.reshape(-1).astype(np.intp)
