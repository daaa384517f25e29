"""Topology spread constraints: which nodes would be too crowded a choice, and how evenly each would spread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from volcano.api.core import Pod, TopologySpreadConstraint
from volcano.api.meta import Key
from volcano.api.selectors import Requirement, Selector, labels_selector, selector_from
from volcano.scheduler.core.labels import ABSENT
from volcano.scheduler.core.node_affinity import demanded, demands_labels
from volcano.scheduler.core.node_table import Column, Mask, NodeTable, Rows
from volcano.scheduler.core.pod_counts import PodSelection, Query
from volcano.scheduler.core.taints import repelled
from volcano.scheduler.model import ClusterObjects, Task

HOSTNAME: Final = "kubernetes.io/hostname"
DEFAULT_SKEWS: Final = ((HOSTNAME, 3), ("topology.kubernetes.io/zone", 5))
FULL: Final = 100


@dataclass(slots=True, frozen=True)
class Constraint:
    topology_key: str
    max_skew: int
    selector: Selector
    namespace: str
    min_domains: int = 1
    honours_affinity: bool = True
    honours_taints: bool = False

    def counted(self, table: NodeTable) -> Rows:
        """Pods on each node that are to be spread."""
        if not self.selector.requirements:
            return np.zeros(len(table), dtype=np.int64)
        return table.pods.count(Query((PodSelection(frozenset({self.namespace}), self.selector),), living=True))

    def eligible(self, table: NodeTable, pod: Pod) -> Mask:
        """Nodes that take part, by the inclusion policies."""
        chosen: Mask = np.ones(len(table), dtype=bool)
        if self.honours_affinity and demands_labels(pod):
            chosen = demanded(table, pod)
        return chosen & ~repelled(table, pod.spec.tolerations) if self.honours_taints else chosen

    @property
    def label_keys(self) -> set[str]:
        return {requirement.key for requirement in self.selector.requirements}


def constraints_of(pod: Pod, when_unsatisfiable: str) -> tuple[Constraint, ...]:
    stated = pod.spec.topology_spread_constraints
    return tuple(_constraint(c, pod) for c in stated if c.when_unsatisfiable == when_unsatisfiable)


def _constraint(stated: TopologySpreadConstraint, pod: Pod) -> Constraint:
    selector = selector_from(stated.label_selector)
    if stated.match_label_keys and not selector.never:
        quoted = (Requirement(key, "In", (pod.labels[key],)) for key in stated.match_label_keys if key in pod.labels)
        selector = Selector((*selector.requirements, *quoted))
    return Constraint(
        stated.topology_key,
        stated.max_skew,
        selector,
        pod.namespace or "default",
        1 if stated.min_domains is None else stated.min_domains,
        stated.node_affinity_policy != "Ignore",
        stated.node_taints_policy == "Honor",
    )


def default_constraints(pod: Pod, selector: Selector) -> tuple[Constraint, ...]:
    """Kubernetes' default constraints, for pods that state none."""
    namespace = pod.namespace or "default"
    return tuple(Constraint(key, skew, selector, namespace) for key, skew in DEFAULT_SKEWS)


def selector_of_owners(pod: Pod, cluster: ClusterObjects) -> Selector:
    """The pods this one belongs together with: by its services and the workload that owns it."""
    namespace = pod.namespace or "default"
    labels: dict[str, str] = {}
    for key, service in cluster.services.items():
        wanted = service.spec.selector
        if key.namespace == namespace and wanted and wanted.items() <= pod.labels.items():
            labels.update(wanted)
    owner = pod.controller
    if owner is None:
        return labels_selector(labels)
    place = Key(namespace, owner.name)
    match owner.kind:
        case "ReplicationController" if place in cluster.replication_controllers:
            labels.update(cluster.replication_controllers[place].spec.selector or {})
        case "ReplicaSet" if place in cluster.replica_sets:
            return _joined(labels, selector_from(cluster.replica_sets[place].spec.selector))
        case "StatefulSet" if place in cluster.stateful_sets:
            return _joined(labels, selector_from(cluster.stateful_sets[place].spec.selector))
    return labels_selector(labels)


def _joined(labels: dict[str, str], other: Selector) -> Selector:
    return Selector((*labels_selector(labels).requirements, *other.requirements))


# -- refusing ---------------------------------------------------------------------------------------------------
def crowded(table: NodeTable, task: Task, constraints: Sequence[Constraint]) -> tuple[Mask, Mask]:
    """Nodes without a demanded label, and nodes whose domain would exceed the skew; the first constraint decides."""
    missing, skewed, settled = table.no_rows(), table.no_rows(), table.no_rows()
    carrying = _carrying(table, constraints)
    for constraint in constraints:
        column = table.labels.column(constraint.topology_key)
        absent = column.codes == ABSENT
        eligible = carrying & constraint.eligible(table, task.pod)
        matched, least = _matched(column.codes, len(column.values), eligible, constraint.counted(table), constraint)
        own = 1 if constraint.selector.matches(task.pod.labels) else 0
        over = ~absent & (matched + (own - least) > constraint.max_skew)
        missing |= absent & ~settled
        skewed |= over & ~settled
        settled |= absent | over
    return missing, skewed


def _carrying(table: NodeTable, constraints: Sequence[Constraint]) -> Mask:
    carrying: Mask = np.ones(len(table), dtype=bool)
    for constraint in constraints:
        carrying &= table.labels.column(constraint.topology_key).codes != ABSENT
    return carrying


def _matched(codes: Rows, domains: int, eligible: Mask, counted: Rows, constraint: Constraint) -> tuple[Column, float]:
    """Matching pods in each node's domain, and in the emptiest domain that takes part."""
    per_domain = _sums(codes, counted, eligible, domains + 1)
    taking_part = np.bincount(codes[eligible], minlength=domains + 1) > 0
    enough = int(taking_part.sum()) >= constraint.min_domains
    least = float(per_domain[taking_part].min()) if enough and taking_part.any() else 0.0
    return per_domain[codes], least


def _sums(codes: Rows, counted: Rows, eligible: Mask, places: int) -> Column:
    """Pods per domain, over the nodes that take part."""
    return np.bincount(codes[eligible], weights=counted[eligible], minlength=places).astype(np.float64)


# -- scoring ----------------------------------------------------------------------------------------------------
def evenness(
    table: NodeTable, task: Task, constraints: Sequence[Constraint], *, needs_labels: bool
) -> Callable[[Mask], Column]:
    """A score of 0 to 100 over the candidates. `needs_labels`: nodes without a key take no part at all."""
    carrying = _carrying(table, constraints) if needs_labels else None
    counted = [constraint.counted(table) for constraint in constraints]
    eligible = [constraint.eligible(table, task.pod) for constraint in constraints]
    if carrying is not None:
        eligible = [mask & carrying for mask in eligible]

    def among(candidates: Mask) -> Column:
        considered = candidates if carrying is None else candidates & carrying
        raw = np.zeros(len(table))
        for constraint, numbers, mask in zip(constraints, counted, eligible, strict=True):
            raw += _unevenness(table, constraint, numbers, mask, considered)
        return _normalised(np.floor(raw + 0.5), considered)

    return among


def _unevenness(table: NodeTable, constraint: Constraint, counted: Rows, eligible: Mask, considered: Mask) -> Column:
    column = table.labels.column(constraint.topology_key)
    if constraint.topology_key == HOSTNAME:
        size, numbers = int(considered.sum()), counted.astype(np.float64)
    else:
        # Nodes without the label are one more domain of their own, the last.
        places = len(column.values) + 1
        codes = np.where(column.codes == ABSENT, places - 1, column.codes)
        size = int((np.bincount(codes[considered], minlength=places) > 0).sum())
        per_domain = _sums(codes, counted, eligible, places)
        numbers = per_domain[codes]
    part = numbers * np.log(size + 2.0) + (constraint.max_skew - 1)
    return np.where(column.codes == ABSENT, 0.0, part)


def _normalised(raw: Column, considered: Mask) -> Column:
    among = raw[considered]
    if not len(among):
        return np.zeros(len(raw))
    highest, lowest = float(among.max()), float(among.min())
    if highest == 0.0:
        return np.where(considered, float(FULL), 0.0)
    return np.where(considered, np.floor(FULL * (highest + lowest - raw) / highest), 0.0)
