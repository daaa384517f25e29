"""Changes of the cluster while a simulation runs: nodes fail and come back, are maintained, added or removed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import msgspec

from volcano.api import core
from volcano.simulator.draws import Draws

MAX_NODE_CHANGES: Final = 200_000


@dataclass(slots=True, frozen=True)
class NodeChange:
    """From this time on the node is as given, or (`is_there` false) is not there."""

    at: float
    node: core.Node
    is_there: bool = True
    pods_leave: bool = False  # those that run on it are evicted


def failure(node: core.Node, at: float, seconds: float | None) -> Iterator[NodeChange]:
    """The node is gone with its pods, for good or for so long."""
    yield NodeChange(at, node, is_there=False, pods_leave=True)
    if seconds is not None:
        yield NodeChange(at + seconds, node)


def maintenance(node: core.Node, at: float, seconds: float | None, *, drain: bool) -> Iterator[NodeChange]:
    """The node takes no new pods; drained, those on it are evicted."""
    closed = msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, unschedulable=True))
    yield NodeChange(at, closed, pods_leave=drain)
    if seconds is not None:
        yield NodeChange(at + seconds, node)


def random_failures(
    nodes: Iterable[core.Node], mean_between: float, repair: float, until: float, draws: Draws
) -> list[NodeChange]:
    """Each node fails after times that are exponentially distributed, and is back after the repair."""
    changes = list[NodeChange]()
    for node in nodes:
        at = draws.exponential(mean_between)
        while at < until and len(changes) < MAX_NODE_CHANGES:
            changes += failure(node, at, repair)
            at += repair + draws.exponential(mean_between)
    return changes
