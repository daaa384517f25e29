"""Domain: a HyperNode. A forest of them under one virtual root that holds every node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

ROOT: Final = "<cluster-top-hypernode>"


@dataclass(slots=True, eq=False)
class Domain:
    name: str
    tier: int
    tier_name: str = ""
    parent: str = ""
    children: list[str] = field(default_factory=list)
    nodes: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        return f"<Domain {self.name} tier {self.tier}>"


@dataclass(slots=True, eq=False)
class Domains:
    """All of them; they are not `ready` while the objects contradict each other, which is then the `problem`."""

    by_name: dict[str, Domain] = field(default_factory=dict)
    problem: str = ""

    @property
    def ready(self) -> bool:
        return not self.problem

    @property
    def tiers(self) -> list[int]:
        return sorted({domain.tier for domain in self.by_name.values()})

    def of_tier(self, tier: int) -> list[Domain]:
        return [domain for domain in self.by_name.values() if domain.tier == tier]

    def tier_named(self, name: str) -> int | None:
        """The last one of that name wins."""
        return next((d.tier for d in reversed(self.by_name.values()) if d.tier_name and d.tier_name == name), None)

    def ancestors(self, name: str) -> Iterator[str]:
        """The domain itself, its parent, its parent's parent …"""
        seen: set[str] = set()
        while name and name not in seen:
            seen.add(name)
            yield name
            domain = self.by_name.get(name)
            name = domain.parent if domain else ""

    def common(self, one: str, other: str) -> str:
        """The lowest domain holding both; an empty name gives the other one."""
        if not one or not other:
            return one or other
        mine = set(self.ancestors(one))
        return next((name for name in self.ancestors(other) if name in mine), "")


def with_root(domains: Domains, nodes: Iterable[str]) -> Domains:
    """The same forest under a virtual root that holds every node of the session."""
    top = Domain(ROOT, max([1, *(domain.tier + 1 for domain in domains.by_name.values())]), nodes=frozenset(nodes))
    rooted: dict[str, Domain] = {}
    for name, domain in domains.by_name.items():
        orphan = not domain.parent or domain.parent not in domains.by_name
        if orphan:
            top.children.append(name)
        rooted[name] = Domain(
            name, domain.tier, domain.tier_name, ROOT if orphan else domain.parent, list(domain.children), domain.nodes
        )
    rooted[ROOT] = top
    return Domains(rooted, domains.problem)


def domains_from_lists(real_nodes: Mapping[str, Iterable[str]], by_tier: Mapping[str, Iterable[str]]) -> Domains:
    """From the nodes below each domain and the domains of each tier; parents by inclusion."""
    found: dict[str, Domain] = {}
    for tier, names in sorted(by_tier.items(), key=lambda item: int(item[0])):
        for name in sorted(names):
            found[name] = Domain(name, int(tier), nodes=frozenset(real_nodes.get(name, ())))
    for domain in found.values():
        above = [d for d in found.values() if d.tier > domain.tier and domain.nodes <= d.nodes and domain.nodes]
        if above:
            parent = min(above, key=lambda d: (d.tier, d.name))
            domain.parent = parent.name
            parent.children.append(domain.name)
    return Domains(found)
