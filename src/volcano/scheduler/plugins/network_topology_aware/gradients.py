"""Which domains are tried for a job or sub-job, and in which order: groups of one tier each."""

from __future__ import annotations

import numpy as np

from volcano.scheduler.core.domain_columns import DomainColumns
from volcano.scheduler.core.node_table import Mask
from volcano.scheduler.model import ROOT, Domain, Domains


def search_root(domains: Domains, allocated: str, allowed: int, within: Domain) -> Domain | None:
    """Where to look: `within`, or nearer to what is already placed; None when that cannot be without going too far."""
    if not allocated:
        return within
    reachable = [name for name in domains.ancestors(allocated) if domains.by_name[name].tier <= allowed]
    if not reachable or reachable[0] != allocated:
        return None
    widest = reachable[-1]
    if within.name in domains.ancestors(widest):
        return domains.by_name[widest]
    return within if widest in domains.ancestors(within.name) else None


def below(domains: Domains, columns: DomainColumns, top: Domain) -> Mask:
    """The domain itself and all below it, as a column over domains."""
    if top.name == ROOT:
        return np.ones(len(columns.domains), dtype=bool)
    found, waiting = np.zeros(len(columns.domains), dtype=bool), [top.name]
    while waiting:
        name = waiting.pop()
        place = columns.place.get(name)
        if place is not None and not found[place]:
            found[place] = True
            waiting.extend(domains.by_name[name].children)
    return found


def by_tier(columns: DomainColumns, chosen: Mask) -> list[list[Domain]]:
    """The chosen domains, a list for each tier, lowest first."""
    tiers = columns.tiers
    return [
        [columns.domains[place] for place in np.flatnonzero(chosen & (tiers == tier)).tolist()]
        for tier in sorted(set(tiers[chosen].tolist()))
    ]


def widest_first(gradients: list[list[Domain]], most: int) -> list[list[Domain]]:
    """In reverse, and at most that many domains; of a tier taken in part, the last ones."""
    taken: list[list[Domain]] = []
    for gradient in reversed(gradients):
        if most <= 0:
            break
        taken.append(gradient[-most:])
        most -= len(taken[-1])
    return taken
