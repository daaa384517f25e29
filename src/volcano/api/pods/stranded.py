"""Stranded: of what is free on a node (GPUs, or any resource that is counted), how much the usual pods cannot use.

Two answers are combined. Filled with copies of one shape of pods alone, a node holds so many of them, and shapes count
by how frequent they are. A node filled with the mix runs out of whatever the mix asks most of. The second counts more,
because a node is filled by many pods. The scheduler's plugin fragmentation computes the same for all nodes as columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from volcano.api.core import Node, Pod
from volcano.api.decode import Unreadable, decode_object
from volcano.api.pods.requests import pod_requests, read_resources
from volcano.api.pods.tolerations import is_tolerated
from volcano.api.quantity import Quantity
from volcano.api.selectors import Requirement

MIXED_WEIGHT: Final = 4.0
"""How much the fill with the mix counts beside the fill with single shapes: 3 to 10 are best on the openb trace."""
ROUNDING: Final = 1e-6
MAX_SHAPES: Final = 160
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
REPELLING: Final = frozenset({"NoSchedule", "NoExecute"})


@dataclass(slots=True, frozen=True)
class PodShape:
    """Pods that ask the same of a node: what each requests (in units), how many there are, and one of them."""

    requests: Mapping[str, float]
    weight: float
    pod: Pod


def shape_key(requests: Mapping[str, float], pod: Pod) -> bytes:
    """The same for pods that ask the same of a node."""
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    return msgspec.json.encode((sorted(requests.items()), pod.spec.node_selector, required, pod.spec.tolerations))


def shapes_of(pods: Iterable[Mapping[str, Any]]) -> list[PodShape]:
    """The most frequent shapes of pods given as JSON; pods that cannot be read are left out."""
    counted: dict[bytes, tuple[int, dict[str, float], Mapping[str, Any]]] = {}
    for pod in pods:
        spec = pod.get("spec") or {}
        required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(REQUIRED)
        requests = in_units(pod_requests(read_resources(spec)))
        selects = (spec.get("nodeSelector"), required, spec.get("tolerations"))
        key = msgspec.json.encode((sorted(requests.items()), selects))
        count, _, first = counted.get(key, (0, requests, pod))
        counted[key] = count + 1, requests, first
    found = []
    for _, (count, requests, pod) in sorted(counted.items(), key=lambda item: (-item[1][0], item[0]))[:MAX_SHAPES]:
        try:
            found.append(PodShape(requests, float(count), decode_object(Pod, {"spec": pod.get("spec") or {}})))
        except Unreadable:
            continue
    return found


def in_units(amounts: Mapping[str, Quantity]) -> dict[str, float]:
    return {name: amount.nanos / 1e9 for name, amount in amounts.items()}


def admits(node: Node, pod: Pod) -> bool:
    """Whether the node's labels and taints let such a pod in."""
    spec, labels = pod.spec, node.labels
    if any(labels.get(key) != value for key, value in (spec.node_selector or {}).items()):
        return False
    taints = (taint for taint in node.spec.taints if taint.effect in REPELLING)
    if not all(is_tolerated(taint, spec.tolerations) for taint in taints):
        return False
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    if required is None:
        return True
    return any(
        all(
            Requirement(each.key, each.operator, tuple(each.values or ())).matches(labels)
            for each in term.match_expressions
        )
        for term in required.node_selector_terms
        if term.match_expressions
    )


def stranded_on(node: Node, idle: Mapping[str, float], resource: str, shapes: Sequence[PodShape]) -> float:
    """How much of a resource is free on the node, and of no use to the shapes that it lets in."""
    free = max(idle.get(resource, 0.0), 0.0)
    asking = [shape for shape in shapes if shape.requests.get(resource, 0.0) > 0.0]
    if not free or not asking:
        return 0.0  # where no pod asks for it, nothing says which pods could not use it
    return free - usable(idle, resource, free, [shape for shape in asking if admits(node, shape.pod)])


def usable(idle: Mapping[str, float], resource: str, free: float, shapes: Sequence[PodShape]) -> float:
    """How much of it shapes that all ask for the resource can use; by the rule that this module states."""
    whole = sum(shape.weight for shape in shapes)
    if not whole:
        return 0.0
    alone, mixed = 0.0, free
    pieces = sum(shape.weight * shape.requests[resource] for shape in shapes)
    names = {name for shape in shapes for name, amount in shape.requests.items() if amount > 0.0} - {resource}
    for shape in shapes:
        copies = free / shape.requests[resource] + ROUNDING
        for name in names:
            if amount := shape.requests.get(name, 0.0):
                copies = min(copies, max(idle.get(name, 0.0), 0.0) / amount + ROUNDING)
        alone += shape.weight / whole * shape.requests[resource] * math.floor(copies)
    for name in names:
        mean = sum(shape.weight * shape.requests.get(name, 0.0) for shape in shapes) / pieces
        if mean > 0.0:
            mixed = min(mixed, max(idle.get(name, 0.0), 0.0) / mean)
    return min((alone + MIXED_WEIGHT * mixed) / (1.0 + MIXED_WEIGHT), free)
