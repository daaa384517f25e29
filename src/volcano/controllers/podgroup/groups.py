"""What the PodGroup of a plain pod looks like: name, owners, size, topology, what it inherits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from volcano.api.core import Pod
from volcano.api.jobs.estimates import ESTIMATE_KEY, without_submitter
from volcano.api.meta import JSON, OwnerReference
from volcano.api.pods.amounts import times, to_wire
from volcano.api.quotas import group_usage
from volcano.api.scheduling import QUEUE_NAME_ANNOTATION
from volcano.machinery.plan import owner_reference

MIN_MEMBER: Final = "scheduling.volcano.sh/group-min-member"
TOPOLOGY_MODE: Final = "volcano.sh/network-topology-mode"
TOPOLOGY_TIER: Final = "volcano.sh/network-topology-highest-tier"
INHERITED_PREFIX: Final = "volcano.sh/"
POD_ANNOTATIONS: Final = (
    "volcano.sh/preemptable",
    "volcano.sh/cooldown-time",
    "volcano.sh/revocable-zone",
    ESTIMATE_KEY,
)
BUDGETS: Final = ("volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable")
POD_LABELS: Final = ("volcano.sh/preemptable", "volcano.sh/cooldown-time")


def group_name(pod: Pod) -> str:
    """All pods of one controlling owner share a group; a bare pod has its own."""
    owner = pod.controller
    return owned_group_name(owner.uid if owner is not None else pod.uid)


def owned_group_name(uid: str) -> str:
    return f"podgroup-{uid}"


def group_for(pod: Pod, inherited: Mapping[str, str]) -> JSON:
    """The PodGroup a pod needs. `inherited` are the annotations of the pod's owners."""
    members = min_member(inherited)
    spec: JSON = {"minMember": members, "minResources": to_wire(times(group_usage(pod.spec), members))}
    if pod.spec.priority_class_name:
        spec["priorityClassName"] = pod.spec.priority_class_name
    if queue := pod.annotations.get(QUEUE_NAME_ANNOTATION):
        spec["queue"] = queue
    if topology := network_topology(pod.annotations):
        spec["networkTopology"] = topology
    return {
        "metadata": {
            "name": group_name(pod),
            "namespace": pod.namespace,
            "annotations": _annotations(pod, inherited),
            "labels": _picked(pod.labels, POD_LABELS),
            "ownerReferences": _owners(pod),
        },
        "spec": spec,
        "status": {"phase": "Pending"},
    }


def min_member(inherited: Mapping[str, str]) -> int:
    """What the owner asks for, 1 if it asks for nothing or for nonsense."""
    try:
        members = int(inherited.get(MIN_MEMBER, "1"))
    except ValueError:
        return 1
    return members if 0 <= members < 2**31 else 1


def network_topology(annotations: Mapping[str, str]) -> JSON | None:
    if TOPOLOGY_MODE not in annotations and TOPOLOGY_TIER not in annotations:
        return None
    mode = annotations.get(TOPOLOGY_MODE, "").lower()
    topology: JSON = {"mode": mode if mode in ("hard", "soft") else "hard"}
    try:
        topology["highestTierAllowed"] = int(annotations[TOPOLOGY_TIER])
    except (KeyError, ValueError):
        pass
    return topology


def inherited_annotations(owners: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """The first owner to say something wins."""
    answer: dict[str, str] = {}
    for said in owners:
        answer = {**said, **answer}
    return answer


def _annotations(pod: Pod, inherited: Mapping[str, str]) -> dict[str, str]:
    known = without_submitter(inherited)
    annotations = {key: value for key, value in known.items() if key.startswith(INHERITED_PREFIX)}
    annotations |= _picked(pod.annotations, POD_ANNOTATIONS)
    budget = next((key for key in BUDGETS if key in pod.annotations), None)
    if budget is not None:
        annotations[budget] = pod.annotations[budget]
    return annotations


def _owners(pod: Pod) -> list[JSON]:
    if pod.controller is None:
        return [owner_reference(pod)]
    return [_reference(owner) for owner in pod.metadata.owner_references]


def _reference(owner: OwnerReference) -> JSON:
    """Without blocking the owner's deletion: that would need rights on every kind of workload there may be."""
    reference: JSON = {"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "uid": owner.uid}
    if owner.controller is not None:
        reference["controller"] = owner.controller
    return reference


def _picked(source: Mapping[str, str], keys: Iterable[str]) -> dict[str, str]:
    return {key: source[key] for key in keys if key in source}
