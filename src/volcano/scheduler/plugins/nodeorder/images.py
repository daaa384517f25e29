"""Image locality: nodes that already have a task's images, weighed by size and by how common an image is."""

from __future__ import annotations

from typing import Final

import numpy as np

from volcano.api.core import Pod
from volcano.scheduler.core.node_table import Column, NodeTable

MEGABYTE: Final = 1024 * 1024
LEAST: Final = 23 * MEGABYTE
MAX_BYTES_PER_CONTAINER: Final = 1000 * MEGABYTE
FULL: Final = 100


def image_locality(table: NodeTable, pod: Pod) -> Column | None:
    """0 to 100 for every node; None when no node has any of the images."""
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    mounted = [str(volume.image.get("reference", "")) for volume in pod.spec.volumes if volume.image]
    total = np.zeros(len(table))
    for name in (*(container.image for container in containers), *mounted):
        sizes = table.labels.image_sizes(_with_tag(name)) if name else None
        if sizes is not None:
            spread = float((sizes >= 0).sum()) / len(table)
            total += np.where(sizes >= 0, np.trunc(sizes * spread), 0.0)
    if not total.any():
        return None
    most = MAX_BYTES_PER_CONTAINER * len(containers)
    clipped = np.clip(total, LEAST, max(most, LEAST))
    return np.floor(FULL * (clipped - LEAST) / max(most - LEAST, 1))


def _with_tag(name: str) -> str:
    return f"{name}:latest" if name.rfind(":") <= name.rfind("/") else name
