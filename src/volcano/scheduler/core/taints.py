"""Which taints a pod tolerates, for all nodes at once: nodes with equal taints are asked about once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from volcano.api.core import Taint, Toleration
from volcano.api.pods.tolerations import is_tolerated
from volcano.scheduler.core.node_table import Mask, NodeTable, Rows

REPELLING: Final = ("NoSchedule", "NoExecute")
DISCOURAGING: Final = "PreferNoSchedule"
UNSCHEDULABLE: Final = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


def untolerated(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> Taint | None:
    """The first taint that keeps such a pod away, if any."""
    return next((t for t in taints if t.effect in REPELLING and not is_tolerated(t, tolerations)), None)


def repelled(table: NodeTable, tolerations: Sequence[Toleration]) -> Mask:
    """Nodes with a taint that keeps such a pod away."""
    answers = [untolerated(taints, tolerations) is not None for taints in table.taint_sets]
    return np.array(answers, dtype=bool)[table.taint_group] if answers else table.no_rows()


def discouraged(table: NodeTable, tolerations: Sequence[Toleration]) -> Rows:
    """How many taints each node has that such a pod had better avoid."""
    relevant = [t for t in tolerations if t.effect in ("", DISCOURAGING)]
    answers = [
        sum(taint.effect == DISCOURAGING and not is_tolerated(taint, relevant) for taint in taints)
        for taints in table.taint_sets
    ]
    if not answers:
        return np.zeros(len(table), dtype=np.intp)
    return np.array(answers, dtype=np.intp)[table.taint_group]
