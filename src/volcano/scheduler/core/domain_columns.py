"""Domains as columns beside the node table: which rows lie in which domain, and sums over them, for all at once.

Domains have places as nodes have rows. Nothing here changes while the same nodes and HyperNodes are there, so a
snapshot keeps it from cycle to cycle (`Rooted`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from volcano.scheduler.core.node_table import Column, Mask, Rows
from volcano.scheduler.model import ROOT, Domain, Domains
from volcano.scheduler.model.domain import with_root


class DomainColumns:
    def __init__(self, domains: Domains, index: Mapping[str, int]) -> None:
        self.domains: list[Domain] = list(domains.by_name.values())
        self.place: dict[str, int] = {domain.name: place for place, domain in enumerate(self.domains)}
        self.tiers: Rows = np.array([domain.tier for domain in self.domains], dtype=np.intp)
        self._size = len(index)
        inside = [self._rows_inside(domain, index) for domain in self.domains]
        lengths = [len(rows) for rows in inside]
        self._starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.intp)
        self._rows: Rows = np.concatenate([*inside, np.zeros(0, dtype=np.intp)])
        self._owners: Rows = np.repeat(np.arange(len(inside), dtype=np.intp), lengths)
        self._masks: dict[str, Mask] = {}

    def _rows_inside(self, domain: Domain, index: Mapping[str, int]) -> Rows:
        if domain.name == ROOT:
            return np.arange(self._size, dtype=np.intp)
        return np.array(sorted(index[name] for name in domain.nodes if name in index), dtype=np.intp)

    def rows_of(self, name: str) -> Rows:
        place = self.place[name]
        return self._rows[self._starts[place] : self._starts[place + 1]]

    def mask_of(self, name: str) -> Mask:
        """Shared between callers: not to be written to."""
        mask = self._masks.get(name)
        if mask is None:
            mask = self._masks[name] = np.zeros(self._size, dtype=bool)
            mask[self.rows_of(name)] = True
        return mask

    @cached_property
    def sizes(self) -> Rows:
        """How many nodes each domain has."""
        return np.diff(self._starts)

    def places_of(self, row: int) -> Rows:
        """All domains a node lies in."""
        starts, places = self._by_row
        return places[starts[row] : starts[row + 1]]

    @cached_property
    def _by_row(self) -> tuple[Rows, Rows]:
        order = np.argsort(self._rows, kind="stable")
        counts = np.bincount(self._rows, minlength=self._size)
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.intp), self._owners[order]

    @cached_property
    def homes(self) -> dict[int, Rows]:
        """By tier, lowest first: the domain of that tier each node lies in, -1 for none; of several, the first."""
        homes: dict[int, Rows] = {}
        for tier in sorted(set(self.tiers.tolist())):
            homes[tier] = home = np.full(self._size, -1, dtype=np.intp)
            for place in np.flatnonzero(self.tiers == tier)[::-1].tolist():
                home[self._rows[self._starts[place] : self._starts[place + 1]]] = place
        return homes

    @cached_property
    def lowest(self) -> Rows:
        """The domain of the lowest tier each node lies in; the root holds all."""
        lowest = np.full(self._size, -1, dtype=np.intp)
        for home in reversed(self.homes.values()):
            np.copyto(lowest, home, where=home >= 0)
        return lowest

    def sums(self, amounts: Column) -> Column:
        """Of amounts per resource and node, the amounts per resource and domain."""
        count = len(self.domains)
        summed: Column = np.zeros((len(amounts), count))
        for place, column in enumerate(amounts):
            summed[place] = np.bincount(self._owners, weights=column[self._rows], minlength=count)
        return summed


@dataclass(slots=True, eq=False)
class Rooted:
    """The domains of a snapshot under their root, as long as they and the nodes stay the same."""

    stated: Domains
    index: Mapping[str, int]
    size: int
    domains: Domains
    columns: DomainColumns

    def holds_for(self, stated: Domains, index: Mapping[str, int]) -> bool:
        return self.stated is stated and self.index is index and self.size == len(index)


def rooted(stated: Domains, index: Mapping[str, int]) -> Rooted:
    domains = with_root(stated, index)
    return Rooted(stated, index, len(index), domains, DomainColumns(domains, index))
