"""Node locks: a device plugin serves one pod at a time between assignment and Allocate; the lock is a node annotation.

A node that is locked takes no pod of the family until the device plugin removes the lock, or it is too old. Pods that
are placed on one node in one cycle are bound one after the other (service.sender), so a gang does not wait for itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import numpy as np

from volcano.api.node_locks import LOCK_EXPIRY, is_locked
from volcano.scheduler.core.node_table import Mask
from volcano.scheduler.model import Node

REASON = f"node has been locked within {LOCK_EXPIRY.total_seconds() / 60:.0f} minutes"


class LockedNodes:
    """The rows that somebody has locked as the session opens."""

    reason = REASON

    def __init__(self, lock: str, nodes: Sequence[Node], now: datetime) -> None:
        self.rows: Mask = np.zeros(len(nodes), dtype=bool)
        for node in nodes:
            if lock in node.annotations:
                self.rows[node.row] = is_locked(node.annotations[lock], now)
