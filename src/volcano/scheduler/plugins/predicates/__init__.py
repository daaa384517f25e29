"""predicates: which nodes could take a task at all, by Kubernetes' own rules.

Answers are whole-table masks: filters on labels and taints run once per shape, the others when something changed.
Room for the request itself is asked by the actions (core.fit).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Final

import numpy as np

from volcano.api.pods.tolerations import is_tolerated
from volcano.scheduler.core.node_affinity import demanded, demands_labels, names_conflict
from volcano.scheduler.core.node_table import Mask
from volcano.scheduler.core.node_view import NodeView
from volcano.scheduler.core.pod_affinity import Neighbourhood
from volcano.scheduler.core.pod_terms import PodTerms, Term
from volcano.scheduler.core.spread import Constraint, constraints_of, crowded
from volcano.scheduler.core.taints import UNSCHEDULABLE, repelled
from volcano.scheduler.framework.answers import ABORTS, Cause, Code, Refusal
from volcano.scheduler.framework.config import PluginOption
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Job, Node, Shape, Task
from volcano.scheduler.plugins.predicates.device_claims import DeviceClaims
from volcano.scheduler.plugins.predicates.ports import PortBook
from volcano.scheduler.plugins.predicates.volume_binding import ZONELESS, VolumeBinding
from volcano.scheduler.plugins.predicates.volume_limits import VolumeLimits

TEMPLATE_KEY: Final = "volcano.sh/template-uid"

FULL: Final = "node(s) pod number exceeded"
CLOSED: Final = "node(s) were unschedulable"
MISMATCH: Final = "node(s) didn't match Pod's node affinity/selector"
TAINTED: Final = "node(s) had untolerated taint(s)"
CACHED: Final = "plugin equivalence cache predicates failed"
NO_PORTS: Final = "node(s) didn't have free ports for the requested pod ports"
LONELY: Final = "node(s) didn't match pod affinity rules"
HOSTILE: Final = "node(s) didn't match pod anti-affinity rules"
UNWELCOME: Final = "node(s) didn't satisfy existing pods anti-affinity rules"
NO_LABEL: Final = "node(s) didn't match pod topology spread constraints (missing required label)"
SKEWED: Final = "node(s) didn't match pod topology spread constraints"
TOO_MANY_VOLUMES: Final = "node(s) exceed max volume count"

SWITCHES: Final = (
    "NodeAffinityEnable",
    "NodePortsEnable",
    "TaintTolerationEnable",
    "PodAffinityEnable",
    "NodeVolumeLimitsEnable",
    "VolumeZoneEnable",
    "PodTopologySpreadEnable",
    "VolumeBindingEnable",
)


class Predicates(Plugin):
    name = "predicates"
    keeps_pods_current = True
    argument_names = frozenset(
        {
            *(f"predicate.{switch}" for switch in SWITCHES),
            "predicate.CacheEnable",
            "predicate.DynamicResourceAllocationEnable",
            "volumebinding.weight",
            "volumebinding.bindTimeoutSeconds",
            "volumebinding.shape",
            "dynamicresources.filterTimeoutSeconds",
        }
    )

    def __init__(self, option: PluginOption) -> None:
        super().__init__(option)
        on = {switch: option.arguments.flag(f"predicate.{switch}", True) for switch in SWITCHES}
        self._on = frozenset(switch for switch, chosen in on.items() if chosen)
        self._caches = option.arguments.flag("predicate.CacheEnable", False)
        # With both switches off, Volcano does not notify this plugin of simulated removals; it filters as before them.
        self._sees_removals = option.is_on("enablePreemptable") or option.is_on("enabledAllocatable")

    def open(self, session: Session) -> None:
        super().open(session)
        table, around = session.table, session.snapshot.cluster
        self._table = table
        self._ports = PortBook()
        self._volumes = VolumeBinding(table, around)
        self._limits = VolumeLimits(table, around)
        self._device_claims = DeviceClaims(table, around, session.snapshot)
        self._neighbours = Neighbourhood(
            table,
            around.namespaces,
            session.snapshot.shapes.sociable,
            stated=_required_anti_affinity,
            frozen=_required_anti_affinity,
        )
        self._stable: dict[Hashable, list[Cause]] = {}
        self._templates: dict[str, Shape] = {}
        self._spread: dict[Shape, tuple[Constraint, ...]] = {}
        self._standing: dict[str, Mask] = {}

    def close(self, session: Session) -> None:
        for uid in session.record.binds:
            chosen = self._volumes.reserved(uid)
            if chosen:
                session.record.volumes[uid] = chosen
            devices = self._device_claims.reserved(uid)
            if devices:
                session.record.devices[uid] = devices
        session.record.claim_releases += self._device_claims.left_over()

    # -- whose answers are shared, and how long they hold --------------------------------------------------------
    def sharing_key(self, task: Task) -> Hashable:
        keys = self._neighbours.label_keys(self._terms(task).required) if "PodAffinityEnable" in self._on else set()
        for constraint in self._constraints(task):
            keys = keys | constraint.label_keys
        labels = task.pod.labels
        own = tuple((key, labels.get(key)) for key in sorted(keys)) if keys else None
        template = task.pod.annotations.get(TEMPLATE_KEY) if self._caches else None
        devices = self._device_claims.sharing_key(task) if task.pod.spec.resource_claims else None
        return (own, template, devices) if own or template or devices else None

    def row_local(self, task: Task) -> bool:
        if task.pod.spec.resource_claims and not self._device_claims.is_row_local(task):
            return False
        if self._terms(task).required or self._constraints(task):
            return False
        if self._has_volumes(task) and self._volumes.claims(task).waiting:
            return False
        return "PodAffinityEnable" not in self._on or not self._neighbours.is_affected(task)

    def _terms(self, task: Task) -> PodTerms:
        return self._neighbours.book.of(task)

    def _constraints(self, task: Task) -> tuple[Constraint, ...]:
        stated = task.pod.spec.topology_spread_constraints
        if not stated or "PodTopologySpreadEnable" not in self._on:
            return ()
        if any(constraint.match_label_keys for constraint in stated):
            return constraints_of(task.pod, "DoNotSchedule")
        found = self._spread.get(task.shape)
        if found is None:
            found = self._spread[task.shape] = constraints_of(task.pod, "DoNotSchedule")
        return found

    def _has_volumes(self, task: Task) -> bool:
        return task.shape.notable and bool(task.pod.spec.volumes)

    # -- before any node -----------------------------------------------------------------------------------------
    def pre_filter(self, task: Task) -> Refusal | None:
        if task.pod.spec.affinity is not None and "NodeAffinityEnable" in self._on and names_conflict(task.pod):
            return Refusal("NodeAffinity", "plugin NodeAffinity pre-predicates failed pod affinity terms conflict")
        if not self._sees_removals and "PodAffinityEnable" in self._on:
            causes = list(self._neighbour_causes(task, NodeView(self._table, task=task)))
            self._standing[task.uid] = np.any([self._table.no_rows(), *(cause.refused for cause in causes)], axis=0)
        if self._has_volumes(task) and "VolumeBindingEnable" in self._on:
            refusal = self._volumes.claims(task).refusal
            if refusal is not None:
                return refusal
        return self._device_claims.refusal(task) if task.pod.spec.resource_claims else None

    # -- node by node, all at once -------------------------------------------------------------------------------
    def node_filter(self, task: Task, nodes: NodeView) -> Iterator[Cause]:
        full = nodes.max_pods <= nodes.pod_count
        if full.any():
            yield Cause(full, Code.UNSCHEDULABLE, FULL)
        going_on: Mask | None = None  # rows that no filter has finally refused; None: all
        for cause in self._stable_causes(task):
            refused = nodes.take(cause.refused)
            going_on = ~refused if going_on is None else going_on & ~refused
            yield Cause(refused, cause.code, cause.reason)
        spec = task.pod.spec
        if spec.resource_claims:
            for mask, reason in self._device_claims.checks(task, nodes):
                refused = mask if going_on is None else mask & going_on
                if refused.any():
                    going_on = ~refused if going_on is None else going_on & ~refused
                    yield Cause(refused, Code.UNRESOLVABLE, reason)
        if not task.shape.notable and not spec.topology_spread_constraints and not self._neighbours.matters:
            return
        for cause in self._changing_causes(task, nodes):
            refused = cause.refused if going_on is None else cause.refused & going_on
            if refused.any():
                yield Cause(refused, cause.code, cause.reason)
                if cause.code in ABORTS:
                    going_on = ~refused if going_on is None else going_on & ~refused

    def _stable_causes(self, task: Task) -> list[Cause]:
        """What only labels, taints and the pod decide; each row in the first cause that names it."""
        key: Hashable = task.shape
        template = task.pod.annotations.get(TEMPLATE_KEY) if self._caches else None
        if template is not None:
            first = self._templates.setdefault(template, task.shape)
            if first is not task.shape:
                return [Cause(cause.refused, Code.ERROR, CACHED) for cause in self._stable.get(first, [])]
        found = self._stable.get(key)
        if found is None:
            found = self._stable[key] = list(self._read_stable(task))
        return found

    def _read_stable(self, task: Task) -> Iterable[Cause]:
        table, pod = self._table, task.pod
        left = np.ones(len(table), dtype=bool)
        checks: list[tuple[Mask, str]] = []
        if table.unschedulable.any() and not is_tolerated(UNSCHEDULABLE, pod.spec.tolerations):
            checks.append((table.unschedulable, CLOSED))
        if "NodeAffinityEnable" in self._on and demands_labels(pod):
            checks.append((~demanded(table, pod), MISMATCH))
        if "TaintTolerationEnable" in self._on:
            checks.append((repelled(table, pod.spec.tolerations), TAINTED))
        for refused, reason in checks:
            rows = refused & left
            if rows.any():
                left &= ~rows
                yield Cause(rows, Code.UNRESOLVABLE, reason)

    def _changing_causes(self, task: Task, nodes: NodeView) -> Iterator[Cause]:
        """In Kubernetes' order; rows settled by an earlier filter are left out by the caller."""
        if "NodePortsEnable" in self._on and self._ports.of(task.shape):
            yield Cause(self._ports.taken(self._table, task.shape, nodes), Code.UNSCHEDULABLE, NO_PORTS)
        if "PodAffinityEnable" in self._on:
            yield from self._neighbour_causes(task, nodes)
        volumes = self._has_volumes(task)
        if volumes and "NodeVolumeLimitsEnable" in self._on:
            yield Cause(self._limits.exceeded(task, nodes), Code.UNSCHEDULABLE, TOO_MANY_VOLUMES)
        claims = self._volumes.claims(task) if volumes else None
        if claims and "VolumeZoneEnable" in self._on:
            yield Cause(nodes.take(self._volumes.zoneless(claims)), Code.UNRESOLVABLE, ZONELESS)
        constraints = self._constraints(task)
        if constraints:
            missing, skewed = crowded(self._table, task, constraints)
            yield Cause(nodes.take(missing), Code.UNRESOLVABLE, NO_LABEL)
            yield Cause(nodes.take(skewed), Code.UNSCHEDULABLE, SKEWED)
        if claims and "VolumeBindingEnable" in self._on:
            for cause in self._volumes.causes(claims):
                yield Cause(nodes.take(cause.refused), cause.code, cause.reason)

    def _neighbour_causes(self, task: Task, nodes: NodeView) -> Iterator[Cause]:
        """The first of the three that names a row decides."""
        terms = self._terms(task)
        settled = nodes.none()
        if terms.affinity:
            settled = nodes.take(self._neighbours.lacks_affinity(task, terms.affinity))
            yield Cause(settled, Code.UNRESOLVABLE, LONELY)
        if terms.anti_affinity:
            violating = nodes.take(self._neighbours.violates_anti_affinity(terms.anti_affinity)) & ~settled
            settled = settled | violating
            yield Cause(violating, Code.UNSCHEDULABLE, HOSTILE)
        if self._neighbours.matters:
            yield Cause(
                nodes.take(self._neighbours.violates_existing_anti_affinity(task)) & ~settled,
                Code.UNSCHEDULABLE,
                UNWELCOME,
            )

    def simulate_filter(self, task: Task, node: Node) -> Refusal | None:
        """Whether inter-pod affinity allows the node, as tasks are placed now."""
        if "PodAffinityEnable" not in self._on:
            return None
        standing = self._standing.get(task.uid)
        if standing is not None:
            return Refusal("InterPodAffinity", HOSTILE) if standing[node.row] else None
        view = NodeView(self._table, np.array([node.row], dtype=np.intp), task=task)
        for cause in self._neighbour_causes(task, view):
            if cause.refused.any():
                return Refusal("InterPodAffinity", cause.reason)
        return None

    # -- what happened -------------------------------------------------------------------------------------------
    def on_allocate(self, task: Task) -> str | None:
        if self._has_volumes(task) and "VolumeBindingEnable" in self._on and self._volumes.claims(task).waiting:
            objection = self._volumes.reserve(task)
            if objection is not None:
                return objection
        return self._device_claims.reserve(task) if task.pod.spec.resource_claims else None

    def alike_limit(self, job: Job, task: Task, number: int) -> int:
        """All of them, where nothing is read of a single task and nothing is reserved for it."""
        if self._has_volumes(task) or task.pod.spec.resource_claims or not self._sees_removals:
            return 0
        return number if self.pre_filter(task) is None else 0

    def on_deallocate(self, task: Task) -> None:
        if task.shape.notable:
            self._volumes.release(task)
        if task.pod.spec.resource_claims:
            self._device_claims.release(task)


def _required_anti_affinity(terms: PodTerms) -> tuple[Term, ...]:
    return terms.anti_affinity
