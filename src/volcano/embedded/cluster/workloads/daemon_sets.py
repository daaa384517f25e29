"""DaemonSets: a pod on every eligible node. A node affinity names the node; the scheduler binds the pod to it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from datetime import timedelta
from typing import Any, ClassVar, Final

import msgspec

from volcano.api.core import DaemonSet, Node, NodeSelectorTerm, Pod, PodSpec, Toleration
from volcano.api.meta import JSON, Key, Resource
from volcano.api.pods.tolerations import is_tolerated
from volcano.api.selectors import Selector, requirements_from
from volcano.embedded.cluster.workloads.pods import is_available, made_pod, ready_since, suffix, template_hash
from volcano.machinery.controller import Controller, Wake, Waker, owner_key, self_key
from volcano.machinery.plan import NOTHING, Delete, Later, Patch, Plan, Step, Together, merge_difference, ref
from volcano.machinery.world import Change, World

ALL_DAEMON_SETS_KEY: Final = Key("", "all/")
REVISION_LABEL: Final = "controller-revision-hash"
PREFIX: Final = "node.kubernetes.io/"
TOLERATED: Final = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)
"""Taints that daemon pods tolerate in addition to their own tolerations."""


class DaemonSetController(Controller):
    """Reconciles DaemonSets."""

    name: ClassVar = "daemonset"

    @property
    def wakes_on(self) -> Mapping[type[Resource], Waker]:
        return {DaemonSet: self_key, Pod: owner_key("DaemonSet"), Node: _nodes}

    def decide(self, key: Key, world: World, causes: tuple[Hashable, ...]) -> Plan:
        if key == ALL_DAEMON_SETS_KEY:
            return tuple(Later(timedelta(0), key=each.key) for each in world.all(DaemonSet))
        owner = world.get(DaemonSet, key)
        if owner is None or owner.is_deleting:
            return NOTHING
        pods = world.where(Pod, "owner", owner.uid)
        nodes = [node for node in world.all(Node) if belongs_on(owner, node)]
        stay = {node.name for node in world.all(Node) if belongs_on(owner, node, repelled_by=("NoExecute",))}
        return (*_moved(owner, pods, nodes, stay=stay), *_status_steps(owner, pods, nodes, world))


def _nodes(change: Change[Node]) -> Iterable[Wake]:
    old, new = change.old, change.new
    if old is None or new is None or (old.labels, old.spec.taints) != (new.labels, new.spec.taints):
        yield Wake(ALL_DAEMON_SETS_KEY)


def belongs_on(owner: DaemonSet, node: Node, *, repelled_by: tuple[str, ...] = ("NoSchedule", "NoExecute")) -> bool:
    """Whether the template's selectors and tolerations allow this node; for running pods only NoExecute counts."""
    try:
        spec = msgspec.convert((owner.spec.template or {}).get("spec") or {}, PodSpec, strict=False)
    except msgspec.ValidationError:
        return False
    if spec.node_name and spec.node_name != node.name:
        return False
    if any(node.labels.get(name) != value for name, value in spec.node_selector.items()):
        return False
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    if required is not None and not any(_term_matches(term, node) for term in required.node_selector_terms):
        return False
    daemons = [Toleration(key=PREFIX + key, operator="Exists", effect=effect) for key, effect in TOLERATED]
    tolerations = [*spec.tolerations, *daemons]
    repelling = [taint for taint in node.spec.taints if taint.effect in repelled_by]
    return all(is_tolerated(taint, tolerations) for taint in repelling)


def _term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    fields = Selector(requirements_from(term.match_fields))
    labels = Selector(requirements_from(term.match_expressions))
    return labels.matches(node.labels) and fields.matches({"metadata.name": node.name})


def node_of(pod: Pod) -> str:
    """The node a daemon pod is for, bound or not."""
    if pod.spec.node_name:
        return pod.spec.node_name
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    for term in required.node_selector_terms if required is not None else ():
        for field in term.match_fields:
            if field.key == "metadata.name" and field.operator == "In" and field.values:
                return field.values[0]
    return ""


def _moved(owner: DaemonSet, pods: list[Pod], nodes: list[Node], *, stay: set[str]) -> Iterable[Step]:
    revision = template_hash(owner.spec.template)
    wanted = {node.name for node in nodes}
    by_node: dict[str, list[Pod]] = {}
    for pod in pods:
        by_node.setdefault(node_of(pod), []).append(pod)
    made: list[Step] = []
    doomed: list[Pod] = []
    for name in sorted(wanted):
        here = by_node.get(name, [])
        doomed += [pod for pod in here if pod.is_finished]
        living = sorted((pod for pod in here if not pod.is_finished and not pod.is_deleting), key=lambda pod: pod.name)
        doomed += living[1:]
        if not here:
            made.append(_pod(owner, name, revision))
    for name in sorted(set(by_node) - wanted):
        doomed += [pod for pod in by_node[name] if name not in stay or pod.is_finished or not pod.spec.node_name]
    doomed += _outdated(owner, by_node, wanted, revision)
    deletes = tuple(Delete(ref(pod)) for pod in {pod.key: pod for pod in doomed}.values() if not pod.is_deleting)
    if made:
        yield Together(tuple(made))
    if deletes:
        yield Together(deletes)


def _outdated(owner: DaemonSet, by_node: Mapping[str, list[Pod]], wanted: set[str], revision: str) -> list[Pod]:
    """Pods of an earlier template to replace: all that are not ready, and one that is if no other pod is missing."""
    pods = [pod for name in sorted(wanted) for pod in by_node.get(name, []) if not pod.is_finished]
    old = [pod for pod in pods if pod.labels.get(REVISION_LABEL) != revision]
    unready = [pod for pod in old if ready_since(pod) is None]
    is_one_missing = any(ready_since(pod) is None or pod.is_deleting for pod in pods) or len(pods) < len(wanted)
    serving = [pod for pod in old if ready_since(pod) is not None and not pod.is_deleting]
    return unready + ([] if is_one_missing else serving[:1])


def _pod(owner: DaemonSet, node: str, revision: str) -> Step:
    template = owner.spec.template or {}
    spec: JSON = dict(template.get("spec") or {})
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    affinity: dict[str, Any] = dict(spec.get("affinity") or {})
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    affinity["nodeAffinity"] = {**(affinity.get("nodeAffinity") or {}), **required}
    tolerations = [{"key": PREFIX + key, "operator": "Exists", "effect": effect} for key, effect in TOLERATED]
    changed = {"affinity": affinity, "tolerations": [*(spec.get("tolerations") or []), *tolerations]}
    name = f"{owner.name}-{suffix(owner.uid, node, revision)}"
    return made_pod(owner, template, name, labels={REVISION_LABEL: revision}, spec=changed)


def _status_steps(owner: DaemonSet, pods: list[Pod], nodes: list[Node], world: World) -> Iterable[Step]:
    wanted = {node.name for node in nodes}
    revision = template_hash(owner.spec.template)
    living = [pod for pod in pods if not pod.is_finished and not pod.is_deleting]
    here = [pod for pod in living if node_of(pod) in wanted]
    available = sum(is_available(pod, owner.spec.min_ready_seconds, world.now) for pod in here)
    status: JSON = {
        "desiredNumberScheduled": len(wanted),
        "currentNumberScheduled": len({node_of(pod) for pod in here}),
        "numberMisscheduled": sum(node_of(pod) not in wanted for pod in living),
        "numberReady": sum(ready_since(pod) is not None for pod in here),
        "updatedNumberScheduled": sum(pod.labels.get(REVISION_LABEL) == revision for pod in here),
        "numberAvailable": available,
        "numberUnavailable": len(wanted) - available,
        "observedGeneration": owner.metadata.generation,
    }
    have = {name: value for name, value in (owner.status or {}).items() if name in status}
    if have != status:
        yield Patch(ref(owner), {"status": merge_difference(have, status)}, subresource="status")
