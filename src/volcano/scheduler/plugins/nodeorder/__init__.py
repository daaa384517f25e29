"""nodeorder: which of the possible nodes is best, by Kubernetes' own scorers, each with a weight.

What a score needs of a node alone is row by row; what is normalised over the candidates is asked again per choice.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

import numpy as np

from volcano.api.selectors import Selector
from volcano.scheduler.core.node_affinity import preferred_weight
from volcano.scheduler.core.node_table import Column, Mask, Rows
from volcano.scheduler.core.node_view import NodeView
from volcano.scheduler.core.pod_affinity import Neighbourhood
from volcano.scheduler.core.pod_terms import PodTerms, Term
from volcano.scheduler.core.spread import (
    Constraint,
    constraints_of,
    default_constraints,
    evenness,
    selector_of_owners,
)
from volcano.scheduler.core.taints import discouraged
from volcano.scheduler.framework.answers import BatchScore
from volcano.scheduler.framework.config import PluginOption
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Shape, Task
from volcano.scheduler.plugins.nodeorder.allocation import (
    asks_anything,
    balanced_allocation,
    least_allocated,
    most_allocated,
)
from volcano.scheduler.plugins.nodeorder.images import image_locality

WEIGHTS: Final = {
    "leastrequested": 1,
    "mostrequested": 0,
    "nodeaffinity": 2,
    "podaffinity": 2,
    "balancedresource": 1,
    "tainttoleration": 3,
    "imagelocality": 1,
    "podtopologyspread": 2,
}
FULL: Final = 100
Part = Callable[[Mask], Column]


class NodeOrder(Plugin):
    name = "nodeorder"
    argument_names = frozenset(f"{scorer}.weight" for scorer in WEIGHTS)

    def __init__(self, option: PluginOption) -> None:
        super().__init__(option)
        self._weights = {
            scorer: option.arguments.integer(f"{scorer}.weight", default) for scorer, default in WEIGHTS.items()
        }
        scores = (("leastrequested", least_allocated), ("mostrequested", most_allocated))
        balance = ("balancedresource", balanced_allocation)
        self._fullness = [(self._weights[key], score) for key, score in (*scores, balance) if self._weights[key]]

    def open(self, session: Session) -> None:
        super().open(session)
        self._table = session.table
        self._around = session.snapshot.cluster
        self._neighbours = Neighbourhood(
            session.table,
            self._around.namespaces,
            session.snapshot.shapes.sociable,
            stated=_preferences,
            frozen=_any_terms,
        )
        self._images: dict[Shape, Column | None] = {}
        self._constraints: dict[Shape, tuple[Constraint, ...]] = {}
        self._discouraged: dict[Shape, Rows] = {}
        self._avoids: dict[Shape, bool] = {}  # whether any node has a taint that such tasks had better avoid
        self._own: dict[Shape, tuple[int, Column]] = {}

    # -- whose answers are shared, and how long they hold --------------------------------------------------------
    def sharing_key(self, task: Task) -> Hashable:
        keys = self._neighbours.label_keys(self._neighbours.book.of(task).weighted)
        for constraint in self._spread(task):
            keys = keys | constraint.label_keys
        if not keys:
            return None
        labels = task.pod.labels
        return tuple((key, labels.get(key)) for key in sorted(keys))

    def row_local(self, task: Task) -> bool:
        if self._weights["podtopologyspread"] and self._spread(task):
            return False
        if not self._weights["podaffinity"]:
            return True
        return not self._neighbours.book.of(task).weighted and not self._neighbours.is_affected(task)

    def _spread(self, task: Task) -> tuple[Constraint, ...]:
        stated = task.pod.spec.topology_spread_constraints
        if not stated:
            selector = self._owners(task)
            return default_constraints(task.pod, selector) if selector else ()
        if any(constraint.match_label_keys for constraint in stated):
            return constraints_of(task.pod, "ScheduleAnyway")
        found = self._constraints.get(task.shape)
        if found is None:
            found = self._constraints[task.shape] = constraints_of(task.pod, "ScheduleAnyway")
        return found

    def _owners(self, task: Task) -> Selector | None:
        if not self._around.services and task.pod.controller is None:
            return None
        return selector_of_owners(task.pod, self._around)

    # -- scores --------------------------------------------------------------------------------------------------
    def node_score(self, task: Task, nodes: NodeView) -> Column:
        weight = self._weights["imagelocality"]
        if not weight or not self._table.labels.has_images:
            return nodes.zeros()
        if task.shape not in self._images:
            self._images[task.shape] = image_locality(self._table, task.pod)
        score = self._images[task.shape]
        return nodes.zeros() if score is None else nodes.take(score) * float(weight)

    def batch_node_score(self, task: Task, nodes: NodeView) -> BatchScore:
        if not nodes.is_whole:
            return BatchScore(self._fresh_own(task, nodes))  # the rest holds as it was, or everything is asked again
        parts = self._parts(task)
        return BatchScore(self._kept_own(task, nodes), _together(parts) if parts else None)

    def _kept_own(self, task: Task, nodes: NodeView) -> Column:
        """Of all nodes; only those that changed since the shape last asked are looked at again."""
        mark, own = self._own.get(task.shape, (0, None))
        if own is None:
            own = self._fresh_own(task, nodes)
        else:
            rows = self._table.changed_since(mark)
            own[rows] = self._fresh_own(task, NodeView(self._table, rows, task=task))
        self._own[task.shape] = (self._table.mark, own)
        return own.copy()

    def _fresh_own(self, task: Task, nodes: NodeView) -> Column:
        own: Column | None = None
        for weight, score in self._fullness:
            if score is balanced_allocation and not asks_anything(task):
                continue
            column = score(task, nodes)
            if weight != 1:
                column = column * weight
            own = column if own is None else own + column
        if own is None:
            own = nodes.zeros()
        if self._weights["tainttoleration"] and not self._avoids_any(task):
            own += float(FULL * self._weights["tainttoleration"])  # no candidate has such a taint
        return own

    def _avoids_any(self, task: Task) -> bool:
        known = self._avoids.get(task.shape)
        if known is None:
            known = self._avoids[task.shape] = bool(self._avoided(task).any())
        return known

    def _avoided(self, task: Task) -> Rows:
        found = self._discouraged.get(task.shape)
        if found is None:
            found = self._discouraged[task.shape] = discouraged(self._table, task.pod.spec.tolerations)
        return found

    def _parts(self, task: Task) -> list[tuple[int, Part]]:
        """What is normalised over the candidates, with weights."""
        weights = self._weights
        parts: list[tuple[int, Part]] = []
        if weights["tainttoleration"] and self._avoids_any(task):
            parts.append((weights["tainttoleration"], _reversed(self._avoided(task))))
        liked = preferred_weight(self._table, task.pod) if weights["nodeaffinity"] else None
        if liked is not None:
            parts.append((weights["nodeaffinity"], _scaled(liked)))
        if weights["podaffinity"]:
            near = self._neighbours.preference(task, self._neighbours.book.of(task))
            if near is not None and near.any():
                parts.append((weights["podaffinity"], _stretched(near)))
        constraints = self._spread(task) if weights["podtopologyspread"] else ()
        if constraints:
            needs_labels = bool(task.pod.spec.topology_spread_constraints)
            part = evenness(self._table, task, constraints, needs_labels=needs_labels)
            parts.append((weights["podtopologyspread"], part))
        return parts


def _together(parts: list[tuple[int, Part]]) -> Part:
    def among(candidates: Mask) -> Column:
        total = np.zeros(len(candidates))
        for weight, part in parts:
            total += part(candidates) * weight
        return total

    return among


def _scaled(raw: Rows) -> Part:
    """The best candidate gets all, the others their share of it."""

    def among(candidates: Mask) -> Column:
        highest = int(raw.max(where=candidates, initial=0))
        return np.zeros(len(raw)) if not highest else np.asarray(FULL * raw // highest, dtype=np.float64)

    return among


def _reversed(raw: Rows) -> Part:
    """The fewer the better: nothing to avoid gives all."""

    def among(candidates: Mask) -> Column:
        highest = int(raw.max(where=candidates, initial=0))
        return FULL - np.zeros(len(raw)) if not highest else np.asarray(FULL - FULL * raw // highest, dtype=np.float64)

    return among


def _stretched(raw: Rows) -> Part:
    """From the least liked candidate to the most liked."""

    def among(candidates: Mask) -> Column:
        if not candidates.any():
            return np.zeros(len(raw))
        highest, lowest = int(raw[candidates].max()), int(raw[candidates].min())
        if highest == lowest:
            return np.zeros(len(raw))
        return np.trunc(FULL * ((raw - lowest) / (highest - lowest)))

    return among


def _preferences(terms: PodTerms) -> tuple[Term, ...]:
    return terms.weighted


def _any_terms(terms: PodTerms) -> tuple[Term, ...]:
    return (*terms.required, *terms.weighted)
