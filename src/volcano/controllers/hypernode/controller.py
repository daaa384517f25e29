"""hypernode: count the members of each HyperNode, and keep those that labels of nodes make.

A key is a HyperNode's name; two further keys stand for all counts after a change among nodes, and for the discovery.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import ClassVar, Final

import msgspec

from volcano.api.core import ConfigMap, Node
from volcano.api.meta import Key, Resource
from volcano.api.scheme import resource_type
from volcano.api.topology import HyperNode, HyperNodeSpec
from volcano.controllers.hypernode.discovery import (
    CONFIG_KEY,
    LABEL_SOURCE,
    SOURCE_LABEL,
    DiscoveredDomain,
    discover,
    parse_discovery,
)
from volcano.controllers.hypernode.members import looks_at_nodes, node_count
from volcano.machinery.controller import Controller, Wake, Waker
from volcano.machinery.plan import (
    NOTHING,
    Create,
    Delete,
    Patch,
    Plan,
    Record,
    Step,
    Together,
    patch_status,
    ref,
)
from volcano.machinery.world import Change, World

COUNTS: Final = Key("all", "counts")
DISCOVERY: Final = Key("all", "discovery")
CONFIG_MAP: Final = Key("volcano-system", "volcano-controller-configmap")


class HyperNodeController(Controller):
    """Keeps HyperNodes true to the nodes."""

    name: ClassVar = "hypernode"

    def __init__(self, *, config_map: Key = CONFIG_MAP) -> None:
        self._config_map = config_map

    @property
    def wakes_on(self) -> Mapping[type[Resource], Waker]:
        return {HyperNode: _hypernodes, Node: _nodes, ConfigMap: self._config_maps}

    def _config_maps(self, change: Change[ConfigMap]) -> Iterable[Wake]:
        if change.object.key == self._config_map:
            yield Wake(DISCOVERY)

    def decide(self, key: Key, world: World, causes: tuple[Hashable, ...]) -> Plan:
        if key == DISCOVERY:
            return self._discover(world)
        if key == COUNTS:
            nodes = world.all(Node)
            domains = (domain for domain in world.all(HyperNode) if looks_at_nodes(domain))
            steps = [step for domain in domains for step in _counted(domain, nodes)]
            return (Together(tuple(steps)),) if steps else NOTHING
        domain = world.get(HyperNode, key)
        return tuple(_counted(domain, world.all(Node))) if domain is not None else NOTHING

    def _discover(self, world: World) -> Plan:
        configured = world.get(ConfigMap, self._config_map)
        if configured is None:
            return NOTHING
        discovery = parse_discovery((configured.data or {}).get(CONFIG_KEY, ""))
        notes = tuple(
            Record(ref(configured), "UnsupportedSource", f"no topology source is called {source}", "Warning")
            for source in discovery.unsupported
        )
        if not discovery.enabled:
            return notes
        known = [d for d in world.all(HyperNode) if d.labels.get(SOURCE_LABEL) == LABEL_SOURCE]
        wanted = discover(discovery.types, world.all(Node), known)
        return (*_reconciled(wanted, {domain.name: domain for domain in known}), *notes)


def _reconciled(wanted: list[DiscoveredDomain], known: Mapping[str, HyperNode]) -> Plan:
    """Missing ones are made, changed ones changed, others of the same source deleted; parents after children."""
    steps: list[Step] = []
    for domain in sorted(wanted, key=lambda each: (each.tier, each.name)):
        have = known.get(domain.name)
        if have is None:
            metadata = {"name": domain.name, "labels": domain.labels()}
            steps.append(Create(resource_type(HyperNode), {"metadata": metadata, "spec": domain.spec()}))
        elif patch := _difference(have, domain):
            steps.append(Patch(ref(have), patch))
    names = {domain.name for domain in wanted}
    steps += [Delete(ref(domain)) for name, domain in sorted(known.items()) if name not in names]
    return tuple(steps)


def _difference(have: HyperNode, wanted: DiscoveredDomain) -> dict[str, object]:
    patch: dict[str, object] = {}
    if have.spec != msgspec.convert(wanted.spec(), HyperNodeSpec):
        patch["spec"] = wanted.spec()
    if labels := {key: value for key, value in wanted.labels().items() if have.labels.get(key) != value}:
        patch["metadata"] = {"labels": labels}
    return patch


def _counted(domain: HyperNode, nodes: list[Node]) -> Iterable[Step]:
    count = node_count(domain, nodes)
    if count != domain.status.node_count and not domain.is_deleting:
        yield patch_status(domain, msgspec.structs.replace(domain.status, node_count=count), fresh=False)


def _hypernodes(change: Change[HyperNode]) -> Iterable[Wake]:
    if change.new is None:
        return (Wake(DISCOVERY),)
    return (Wake(change.new.key),)


def _nodes(change: Change[Node]) -> Iterable[Wake]:
    """Only names and labels matter here; heartbeats come by the thousand and do not."""
    if change.old is None or change.new is None or change.old.labels != change.new.labels:
        return (Wake(COUNTS), Wake(DISCOVERY))
    return ()
