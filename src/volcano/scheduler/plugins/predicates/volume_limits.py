"""How many volumes of a storage driver a node can attach."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from volcano.api.core import Pod
from volcano.scheduler.core.node_table import Mask, NodeTable
from volcano.scheduler.core.node_view import NodeView
from volcano.scheduler.model import ClusterObjects, Task
from volcano.scheduler.plugins.predicates.claims import claim_keys, class_of


class VolumeLimits:
    """Counts only where a node states a limit; a volume several pods share is attached once."""

    def __init__(self, table: NodeTable, around: ClusterObjects) -> None:
        self._table, self._around = table, around

    @cached_property
    def _limits(self) -> dict[str, dict[int, int]]:
        """Driver → row → the most volumes it may have there; read when first asked for."""
        limits: dict[str, dict[int, int]] = {}
        for name, stated in self._around.csi_nodes.items():
            row = self._table.index.get(name)
            for driver in stated.spec.drivers if row is not None else ():
                most = (driver.allocatable or {}).get("count")
                if isinstance(most, int) and row is not None:
                    limits.setdefault(driver.name, {})[row] = most
        return limits

    def exceeded(self, task: Task, nodes: NodeView) -> Mask:
        wanted: dict[str, set[str]] = {}
        for driver, handle in self._volumes(task.pod) if self._limits else ():
            if driver in self._limits:
                wanted.setdefault(driver, set()).add(handle)
        if not wanted:
            return nodes.none()
        refused, rows = self._table.no_rows(), set(nodes.rows.tolist())
        attached = self._attached(wanted, rows)
        for driver, handles in wanted.items():
            for row, most in self._limits[driver].items():
                there = attached.get((driver, row), set())
                if row in rows and not handles <= there and len(there | handles) > most:
                    refused[row] = True
        return nodes.take(refused)

    def _attached(self, drivers: dict[str, set[str]], rows: set[int]) -> dict[tuple[str, int], set[str]]:
        """Volumes of these drivers on these rows."""
        found: dict[tuple[str, int], set[str]] = {}
        for shape, tasks in self._table.notable.items():
            if not shape.pod.spec.volumes:
                continue
            for task in tasks.values():
                row = self._table.index[task.node]
                for driver, handle in self._volumes(task.pod) if row in rows else ():
                    if driver in drivers:
                        found.setdefault((driver, row), set()).add(handle)
        return found

    def _volumes(self, pod: Pod) -> Iterator[tuple[str, str]]:
        """Driver and a name for each volume of the pod that a driver attaches."""
        for key, _ in claim_keys(pod):
            claim = self._around.claims.get(key)
            if claim is None:
                continue
            volume = self._around.volumes.get(claim.spec.volume_name)
            if volume is not None:
                if volume.spec.csi:
                    driver = str(volume.spec.csi.get("driver", ""))
                    yield driver, str(volume.spec.csi.get("volumeHandle", volume.name))
                continue
            storage_class = self._around.storage_classes.get(class_of(claim))
            if storage_class is not None and storage_class.provisioner not in self._around.ignored_provisioners:
                yield storage_class.provisioner, str(key)
