"""Host ports: two pods cannot have the same one on a node."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from volcano.api.core import Pod
from volcano.scheduler.core.node_table import Mask, NodeTable
from volcano.scheduler.core.node_view import NodeView
from volcano.scheduler.model import Shape

ANY: Final = "0.0.0.0"


class HostPort(NamedTuple):
    protocol: str
    ip: str
    port: int

    def collides(self, other: HostPort) -> bool:
        if self.port != other.port or self.protocol != other.protocol:
            return False
        return self.ip == other.ip or ANY in (self.ip, other.ip)


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    lasting = [c for c in pod.spec.init_containers if c.restart_policy == "Always"]
    return tuple(
        HostPort(port.protocol or "TCP", port.host_ip or ANY, port.host_port)
        for container in (*pod.spec.containers, *lasting)
        for port in container.ports
        if port.host_port > 0
    )


class PortBook:
    """Ports by shape, read once."""

    def __init__(self) -> None:
        self._by_shape: dict[Shape, tuple[HostPort, ...]] = {}

    def of(self, shape: Shape) -> tuple[HostPort, ...]:
        if not shape.notable:
            return ()
        found = self._by_shape.get(shape)
        if found is None:
            found = self._by_shape[shape] = host_ports(shape.pod)
        return found

    def taken(self, table: NodeTable, shape: Shape, nodes: NodeView) -> Mask:
        """Rows where a port of this shape is in use, or would be by an imagined copy of it."""
        wanted = self.of(shape)
        rows = [
            table.index[task.node]
            for other, tasks in table.notable.items()
            if any(mine.collides(theirs) for mine in wanted for theirs in self.of(other))
            for task in tasks.values()
        ]
        mask = table.no_rows()
        mask[np.array(rows, dtype=np.intp)] = True
        return nodes.take(mask) | (nodes.copies > 0)
