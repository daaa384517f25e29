"""Why no node takes a pod, or not enough nodes take a gang, on a cluster where nothing else runs.

The conditions of a pod are looked at one by one, each over all nodes: labels, size, taints, cordons, and what plugins
refuse. Which of them is the cause: labels that no node has, then sizes among the nodes with these labels, then what
keeps the pod off the nodes that are large enough.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from volcano.api.core import Pod, Taint
from volcano.api.meta import LabelSelector
from volcano.api.nearest_words import did_you_mean, nearest_word
from volcano.api.pods.tolerations import is_tolerated
from volcano.api.why.reasons import Finding, finding, named
from volcano.scheduler.core.fit import fits_in
from volcano.scheduler.core.node_affinity import demanded, demands_labels, names_conflict
from volcano.scheduler.core.node_table import Mask, NodeTable
from volcano.scheduler.core.node_view import NodeView
from volcano.scheduler.core.taints import UNSCHEDULABLE, repelled, untolerated
from volcano.scheduler.explain.amounts_text import amount_text, request_text
from volcano.scheduler.explain.causes_claims import claim_cause
from volcano.scheduler.explain.causes_devices import device_cause
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import EPSILON, PODS, Job, Task
from volcano.scheduler.plugins.predicates import (
    CLOSED,
    FULL,
    HOSTILE,
    LONELY,
    MISMATCH,
    NO_LABEL,
    NO_PORTS,
    SKEWED,
    TAINTED,
    UNWELCOME,
)
from volcano.scheduler.plugins.predicates.device_claims import UNALLOCATED
from volcano.scheduler.plugins.predicates.ports import host_ports

NOT_READY_KEYS: Final = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
VOLUME_WORDS: Final = ("volume",)


@dataclass(slots=True)
class NodeMasks:
    """Which nodes satisfy which condition of one pod, if nothing but the pods of nodes themselves ran."""

    labelled: Mask
    large: Mask
    not_ready: Mask
    cordoned: Mask
    tainted: Mask

    @property
    def suitable(self) -> Mask:
        return self.labelled & self.large

    @property
    def open(self) -> Mask:
        return self.suitable & ~self.not_ready & ~self.cordoned & ~self.tainted


def node_masks(table: NodeTable, task: Task) -> NodeMasks:
    pod = task.pod
    everywhere = np.ones(len(table), dtype=bool)
    labelled = demanded(table, pod) if demands_labels(pod) else everywhere
    not_ready = _first_taints(table, pod, lambda taint: taint.key in NOT_READY_KEYS)
    closed = not is_tolerated(UNSCHEDULABLE, pod.spec.tolerations)
    cordoned = (table.unschedulable if closed else table.no_rows()) & ~not_ready
    tainted = repelled(table, pod.spec.tolerations) & ~not_ready & ~cordoned
    return NodeMasks(labelled, fits_in(task.request, NodeView(table).idle), not_ready, cordoned, tainted)


def _first_taints(table: NodeTable, pod: Pod, chosen: object) -> Mask:
    assert callable(chosen)
    answers = [
        any(chosen(taint) and untolerated([taint], pod.spec.tolerations) is not None for taint in taints)
        for taints in table.taint_sets
    ]
    return np.array(answers, dtype=bool)[table.taint_group] if answers else table.no_rows()


def no_node_cause(session: Session, task: Task) -> Finding | None:
    """Why no node at all takes the pod; None when one does."""
    table = session.table
    if not len(table):
        return finding("NoNodes")
    claimed = claim_cause(session.snapshot.cluster, task.pod)
    if claimed is not None:
        return claimed
    missing = _missing_resource(table, task)
    if missing is not None:
        return missing
    if names_conflict(task.pod):
        return finding("AffinityContradicts", term=affinity_text(task.pod))
    masks = node_masks(table, task)
    if not masks.labelled.any():
        return _label_cause(table, task.pod)
    if not masks.suitable.any():
        return _size_cause(table, task, masks.labelled)
    refusal = session.ask.pre_filter(task)
    if refusal is not None:
        text = refusal.message.partition("failed ")[2] or refusal.message
        return finding("NodesRefuse", count=len(table), suitable=len(table), message=text)
    filtered = session.nodes.filtered(task)
    if (masks.suitable & filtered.ok).any():
        return None
    if task.claims and any(reason == UNALLOCATED for _, reason in filtered.causes):
        missing_devices = device_cause(session, session.jobs[task.job_id], 1)
        if missing_devices is not None:
            return missing_devices
    return _refusal_cause(session, task, masks, filtered.causes)


def _missing_resource(table: NodeTable, task: Task) -> Finding | None:
    view = NodeView(table)
    for name in task.request.names:
        if name != PODS and not (view.allocatable[name] >= EPSILON).any():
            known = [each for each in table.resources if (view.allocatable[each] >= EPSILON).any()]
            return finding("NoNodeHasResource", resource=name, meant=did_you_mean(name, known))
    return None


# -- labels -----------------------------------------------------------------------------------------------------------
def _label_cause(table: NodeTable, pod: Pod) -> Finding:
    selector = pod.spec.node_selector
    for key, value in selector.items():
        if not table.labels.labelled({key: value}).any():
            return finding("NoNodeHasLabel", term=f"{key}={value}", meant=label_meant(table, key, value))
    if selector and not table.labels.labelled(selector).any():
        return finding("NoNodeHasLabels", term=named([f"{key}={value}" for key, value in selector.items()], 4))
    return finding("NoNodeInAffinity", term=affinity_text(pod), meant=_affinity_meant(table, pod))


def label_meant(table: NodeTable, key: str, value: str) -> str:
    near = nearest_label(table, key, value)
    return f"; did you mean {near[0]}={near[1]}?" if near else ""


def nearest_label(table: NodeTable, key: str, value: str) -> tuple[str, str] | None:
    """The label that exists and is nearest: another value of the key, or the value under another key."""
    values: dict[str, set[str]] = {}
    for node in table.nodes:
        for each, text in node.labels.items():
            values.setdefault(each, set()).add(text)
    if key in values:
        near = nearest_word(value, values[key])
        return (key, near) if near else None
    near_key = nearest_word(key, (each for each, texts in values.items() if value in texts))
    if near_key:
        return near_key, value
    near_key = nearest_word(key, values)
    near_value = nearest_word(value, values[near_key]) if near_key else ""
    return (near_key, near_value) if near_key and near_value else None


def affinity_text(pod: Pod) -> str:
    terms = []
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    for term in required.node_selector_terms if required is not None else ():
        parts = [_expression(e.key, e.operator, e.values) for e in (*term.match_expressions, *term.match_fields)]
        terms.append(" and ".join(parts))
    return " or ".join(terms)


def _expression(key: str, operator: str, values: Iterable[str]) -> str:
    listed = ", ".join(values)
    return f"{key} {operator} {listed}".rstrip()


def _affinity_meant(table: NodeTable, pod: Pod) -> str:
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    for term in required.node_selector_terms if required is not None else ():
        for expression in term.match_expressions:
            if expression.operator == "In" and len(expression.values) == 1:
                value = expression.values[0]
                if not table.labels.labelled({expression.key: value}).any():
                    return label_meant(table, expression.key, value)
    return ""


# -- sizes ------------------------------------------------------------------------------------------------------------
def _size_cause(table: NodeTable, task: Task, among: Mask) -> Finding:
    view = NodeView(table)
    for name in task.request.names:
        room = view.idle[name][among]
        if not (room > task.request[name] - EPSILON).any():
            return finding(
                "PodTooLarge",
                of_task=f" of task {task.role}" if task.role else "",
                needed=amount_text(task.request[name], name),
                resource=name,
                suitable=int(among.sum()),
                most=amount_text(float(room.max(initial=0.0)), name),
            )
    return finding("NoNodeHasAll", request=request_text(task.request))


# -- refusals ---------------------------------------------------------------------------------------------------------
def _refusal_cause(session: Session, task: Task, masks: NodeMasks, causes: object) -> Finding:
    table, suitable = session.table, masks.suitable
    assert isinstance(causes, dict)
    counts: Counter[str] = Counter()
    counts["NodesNotReady"] = int((masks.not_ready & suitable).sum())
    counts["NodesCordoned"] = int((masks.cordoned & suitable).sum())
    counts["TaintNotTolerated"] = int((masks.tainted & suitable).sum())
    for (_, reason), refused in causes.items():
        if reason not in (CLOSED, MISMATCH, TAINTED):
            counts[reason] += int((refused & masks.open).sum())
    if masks.open.any():
        for name in ("NodesNotReady", "NodesCordoned", "TaintNotTolerated"):
            counts[name] = 0  # open nodes are left: what refuses these is the cause
    cause, count = max(counts.items(), key=lambda item: item[1])
    total = int(suitable.sum())
    match cause:
        case "NodesNotReady" | "NodesCordoned":
            rows = (masks.not_ready if cause == "NodesNotReady" else masks.cordoned) & suitable
            names = [table.nodes[row].name for row in np.flatnonzero(rows)]
            return finding(cause, count=count, suitable=total, nodes=named(names))
        case "TaintNotTolerated":
            taint = _commonest_taint(table, task.pod, masks.tainted & suitable)
            return finding(cause, count=count, suitable=total, taint=taint_text(taint) if taint is not None else "")
    return refused_finding(session, task, cause, count, total)


def _commonest_taint(table: NodeTable, pod: Pod, rows: Mask) -> Taint | None:
    first = [untolerated(taints, pod.spec.tolerations) for taints in table.taint_sets]
    groups = Counter(int(group) for group in table.taint_group[rows])
    for group, _ in groups.most_common():
        if first[group] is not None:
            return first[group]
    return None


def taint_text(taint: Taint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def refused_finding(session: Session, task: Task, reason: str, count: int, total: int) -> Finding:
    """A refusal by a filter, where no number of pods is the matter."""
    pod = task.pod
    if reason == LONELY:
        return finding("NoPodNear", term=_pod_affinity_text(pod))
    if reason == NO_LABEL:
        table = session.table
        keys = [c.topology_key for c in pod.spec.topology_spread_constraints]
        missing = [key for key in keys if not any(key in node.labels for node in table.nodes)] or keys
        known = {key for node in table.nodes for key in node.labels}
        return finding("SpreadKeyMissing", key=missing[0], meant=did_you_mean(missing[0], known))
    if any(word in reason for word in VOLUME_WORDS):
        claims = [v.persistent_volume_claim.claim_name for v in pod.spec.volumes if v.persistent_volume_claim]
        return finding("VolumeElsewhere", claim=named(claims))
    return finding("NodesRefuse", count=count, suitable=total, message=reason)


def _pod_affinity_text(pod: Pod) -> str:
    affinity = pod.spec.affinity.pod_affinity if pod.spec.affinity else None
    terms = affinity.required_during_scheduling_ignored_during_execution if affinity else ()
    return named([f"{selector_text(term.label_selector)} in the same {term.topology_key}" for term in terms], 2)


def selector_text(selector: LabelSelector | None) -> str:
    if selector is None:
        return "no pod"
    parts = [f"{key}={value}" for key, value in (selector.match_labels or {}).items()]
    parts += [_expression(e.key, e.operator, e.values) for e in selector.match_expressions or ()]
    return ",".join(parts) or "every pod"


# -- how many at a time -----------------------------------------------------------------------------------------------
def limit_cause(session: Session, job: Job, task: Task, most: int, needed: int) -> Finding:
    """Why no more than `most` pods are placed at once; the session is as the placing of these left it."""
    table, pod = session.table, task.pod
    filtered, room = session.nodes.filtered(task), session.nodes.room(task).future
    reasons: Counter[str] = Counter()
    for (_, reason), refused in filtered.causes.items():
        if reason not in (CLOSED, MISMATCH, TAINTED):
            reasons[reason] += int(refused.sum())
    masks = node_masks(table, task)
    unrefused = filtered.ok & ~room & masks.labelled & ~masks.cordoned & ~masks.tainted & ~masks.not_ready
    reasons["room"] = int(unrefused.sum())
    cause = max(reasons.items(), key=lambda item: item[1])[0]
    if cause in (HOSTILE, UNWELCOME):
        return finding("AntiAffinityLimit", most=most, key=_short_key(anti_affinity_key(pod)), needed=needed)
    if cause == NO_PORTS:
        ports = named([str(port.port) for port in host_ports(pod)])
        return finding("HostPortLimit", most=most, port=ports, needed=needed)
    if cause == SKEWED:
        constraint = next(c for c in pod.spec.topology_spread_constraints if c.when_unsatisfiable == "DoNotSchedule")
        return finding(
            "SpreadLimit", most=most, skew=constraint.max_skew, key=_short_key(constraint.topology_key), needed=needed
        )
    if cause == LONELY:
        affinity = pod.spec.affinity.pod_affinity if pod.spec.affinity else None
        terms = affinity.required_during_scheduling_ignored_during_execution if affinity else ()
        key = _short_key(terms[0].topology_key) if terms else "node"
        return finding("AffinityLimit", most=most, key=key, needed=needed)
    if cause == FULL:
        return finding("PodNumberLimit", most=most, needed=needed)
    if cause == UNALLOCATED and (missing := device_cause(session, job, needed)) is not None:
        return missing
    if cause == "room":
        return _room_limit(session, task, most, needed)
    return refused_finding(session, task, cause, reasons[cause], len(table))


def anti_affinity_key(pod: Pod) -> str:
    affinity = pod.spec.affinity.pod_anti_affinity if pod.spec.affinity else None
    terms = affinity.required_during_scheduling_ignored_during_execution if affinity else ()
    return terms[0].topology_key if terms else "kubernetes.io/hostname"


def _short_key(key: str) -> str:
    return "node" if key == "kubernetes.io/hostname" else key


def _room_limit(session: Session, task: Task, most: int, needed: int) -> Finding:
    """Of equal pods one to a node, the number of nodes is the matter; else how many pods all nodes hold."""
    nodes = Counter(other.node for other in session.jobs[task.job_id].tasks.values() if other.node)
    alike = len({other.shape for other in session.jobs[task.job_id].tasks.values()}) == 1
    if alike and all(number == 1 for number in nodes.values()):
        return finding("TooFewNodes", needed=needed, request=request_text(task.request), suit=most)
    return finding("GangTooLarge", needed=needed, request=request_text(task.request), holds=most)
