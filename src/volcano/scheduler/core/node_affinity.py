"""What a pod demands of nodes' labels and names, and what it prefers, as columns."""

from __future__ import annotations

import numpy as np

from volcano.api.core import NodeSelector, Pod
from volcano.scheduler.core.node_table import Mask, NodeTable, Rows


def demands_labels(pod: Pod) -> bool:
    return bool(pod.spec.node_selector) or _required(pod) is not None


def demanded(table: NodeTable, pod: Pod) -> Mask:
    """Nodes that carry what the pod's nodeSelector and required affinity demand."""
    chosen = table.labels.labelled(pod.spec.node_selector)
    required = _required(pod)
    return chosen if required is None else chosen & table.labels.in_any_term(required)


def preferred_weight(table: NodeTable, pod: Pod) -> Rows | None:
    """The summed weights of the preferred terms each node is in; None without any."""
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    terms = affinity.preferred_during_scheduling_ignored_during_execution if affinity else ()
    terms = [term for term in terms if term.weight]
    if not terms:
        return None
    total = np.zeros(len(table), dtype=np.intp)
    for term in terms:
        total += term.weight * table.labels.in_term(term.preference)
    return total


def names_conflict(pod: Pod) -> bool:
    """Whether every term demands several node names at once, which no node has."""
    required = _required(pod)
    if required is None or not required.node_selector_terms:
        return False
    for term in required.node_selector_terms:
        demanded_names: set[str] | None = None
        for field in term.match_fields:
            if field.key == "metadata.name" and field.operator == "In":
                values = set(field.values)
                demanded_names = values if demanded_names is None else demanded_names & values
        if demanded_names is None or demanded_names:
            return False
    return True


def _required(pod: Pod) -> NodeSelector | None:
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    return affinity.required_during_scheduling_ignored_during_execution if affinity else None
