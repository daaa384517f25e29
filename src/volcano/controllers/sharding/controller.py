"""sharding: one NodeShard per scheduler that says which nodes it should use, by how busy they are.

All is decided anew each period, when a node comes or goes, and when a NodeShard or the configuration changes. A shard
is rewritten only if it changes by enough.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from datetime import timedelta
from typing import ClassVar, Final

from volcano.api.core import ConfigMap, Node, Pod
from volcano.api.indexes import PODS_BY_NODE, Indexes
from volcano.api.meta import Key, Resource
from volcano.api.scheme import resource_type
from volcano.api.topology import NodeShard
from volcano.controllers.sharding.settings import (
    CONFIG_KEY,
    SettingsError,
    ShardingSettings,
    from_flags,
    parse_settings,
)
from volcano.controllers.sharding.shares import divided
from volcano.machinery.controller import Controller, Wake, Waker
from volcano.machinery.plan import Create, Delete, Later, Patch, Plan, Record, Step, ref
from volcano.machinery.world import Change, World

ALL: Final = Key("", "shards")
CONFIG_MAP: Final = Key("volcano-system", "volcano-sharding-configmap")
SOON: Final = timedelta(milliseconds=200)
ENOUGH: Final = 10  # a shard is rewritten when one in so many of its nodes is new
NODE_CAME: Final = "a node came or went"


class ShardingController(Controller):
    """Keeps NodeShards."""

    name: ClassVar = "sharding"
    indexes: ClassVar[Indexes] = PODS_BY_NODE

    def __init__(self, *, settings: ShardingSettings | None = None, config_map: Key = CONFIG_MAP) -> None:
        self._settings = settings if settings is not None else from_flags()
        self._config_map = config_map

    @property
    def wakes_on(self) -> Mapping[type[Resource], Waker]:
        return {Node: _nodes, NodeShard: _shards, ConfigMap: self._config_maps}

    @property
    def reads(self) -> tuple[type[Resource], ...]:
        return (Pod,)

    def _config_maps(self, change: Change[ConfigMap]) -> Iterable[Wake]:
        if change.object.key == self._config_map:
            yield Wake(ALL)

    def decide(self, key: Key, world: World, causes: tuple[Hashable, ...]) -> Plan:
        configured = world.get(ConfigMap, self._config_map)
        settings = self._settings
        if configured is not None:
            try:
                settings = parse_settings((configured.data or {}).get(CONFIG_KEY, ""), self._settings)
            except SettingsError as error:
                # Nothing changes until it can be read again.
                return (Record(ref(configured), "InvalidConfiguration", str(error), "Warning"),)
        if causes == (NODE_CAME,):
            return (Later(SOON),) if settings.follows_nodes else (Later(settings.period),)
        nodes = world.all(Node)
        pods = {node.name: world.where(Pod, "node", node.name) for node in nodes}
        return (*_steps(divided(settings, nodes, pods), world), Later(settings.period))


def _steps(wanted: Mapping[str, list[str]], world: World) -> Iterable[Step]:
    known = {shard.name: shard for shard in world.all(NodeShard)}
    for name, nodes in wanted.items():
        shard = known.pop(name, None)
        body = {"nodesDesired": sorted(nodes)}
        if shard is None:
            yield Create(resource_type(NodeShard), {"metadata": {"name": name}, "spec": body})
        elif _differs(shard.spec.nodes_desired, nodes):
            yield Patch(ref(shard), {"spec": body})
    yield from (Delete(ref(shard)) for shard in known.values())


def _differs(have: list[str], wanted: list[str]) -> bool:
    """In number, or in enough of the nodes."""
    if len(have) != len(wanted):
        return True
    new = len(set(wanted) - set(have))
    return new >= max(1, len(wanted) // ENOUGH) if new else False


def _nodes(change: Change[Node]) -> Iterable[Wake]:
    if change.old is None or change.new is None:
        yield Wake(ALL, NODE_CAME)


def _shards(change: Change[NodeShard]) -> Iterable[Wake]:
    if change.old is None or change.new is None or change.old.spec != change.new.spec:
        yield Wake(ALL)
