"""What all workloads do with pods: name and make them from a template, count them, choose which go first."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, Final

import msgspec

from volcano.api.core import Pod
from volcano.api.meta import JSON, Key, Resource
from volcano.api.scheme import resource_type
from volcano.machinery.plan import Create, Patch, owner_reference, ref
from volcano.machinery.world import World

ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Letters and digits that make no words, as Kubernetes' own generated names use them."""

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MAX_PODS_PER_PLAN: Final = 500  # created or deleted
MAX_NAME_PREFIX_CHARACTERS: Final = 57


def suffix(*of: object, length: int = 5) -> str:
    """Letters that look random and are always the same for the same arguments."""
    number = int.from_bytes(hashlib.sha256("/".join(map(str, of)).encode()).digest()[:16])
    letters = []
    for _ in range(length):
        number, rest = divmod(number, len(ALPHABET))
        letters.append(ALPHABET[rest])
    return "".join(letters)


def template_hash(template: JSON | None) -> str:
    """Equal for equal templates, whatever the order of their fields."""
    encoded = msgspec.json.encode(template or {}, order="deterministic")
    return suffix(hashlib.sha256(encoded).hexdigest(), length=10)


def free_names(owner: Resource, world: World) -> Iterator[str]:
    """Names for pods of an owner, always in the same order, without names that any pod has."""
    for index in count():
        name = f"{owner.name[:MAX_NAME_PREFIX_CHARACTERS]}-{suffix(owner.uid, index)}"
        if world.get(Pod, Key(owner.namespace, name)) is None:
            yield name


def made_pod(
    owner: Resource,
    template: JSON | None,
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    spec: Mapping[str, Any] | None = None,
) -> Create:
    """A pod of this template, controlled by `owner`."""
    template = template or {}
    metadata = template.get("metadata") or {}
    body: JSON = {
        "metadata": {
            "name": name,
            "namespace": owner.namespace,
            "labels": {**(metadata.get("labels") or {}), **(labels or {})},
            "annotations": {**(metadata.get("annotations") or {}), **(annotations or {})},
            "ownerReferences": [owner_reference(owner)],
        },
        "spec": {**(template.get("spec") or {}), **(spec or {})},
    }
    if metadata.get("finalizers"):
        body["metadata"]["finalizers"] = metadata["finalizers"]
    return Create(resource_type(Pod), body)


def adopted(owner: Resource, child: Resource) -> Patch:
    """Make `owner` the controller of a matching child that has none."""
    others = [msgspec.to_builtins(each) for each in child.metadata.owner_references if each.uid != owner.uid]
    return Patch(ref(child, fresh=True), {"metadata": {"ownerReferences": [*others, owner_reference(owner)]}})


def released(owner: Resource, child: Resource) -> Patch:
    """Remove `owner` from a child that does not match any more."""
    others = [msgspec.to_builtins(each) for each in child.metadata.owner_references if each.uid != owner.uid]
    return Patch(ref(child, fresh=True), {"metadata": {"ownerReferences": others or None}})


def orphans(pod: Pod) -> list[str]:
    """An index rule: pods without a controller, by namespace."""
    return [pod.namespace] if pod.controller is None else []


def is_active(pod: Pod) -> bool:
    return not pod.is_finished and not pod.is_deleting


def ready_since(pod: Pod) -> datetime | None:
    """Since when a pod is ready; None if it is not."""
    ready = next((c for c in pod.status.conditions if c.type == "Ready" and c.status == "True"), None)
    if ready is None:
        return None
    return ready.last_transition_time or pod.metadata.creation_timestamp or EPOCH


def is_available(pod: Pod, min_ready_seconds: int, now: datetime) -> bool:
    """Ready for long enough."""
    since = ready_since(pod)
    return since is not None and since + timedelta(seconds=min_ready_seconds) <= now


def until_available(pods: Iterable[Pod], min_ready_seconds: int, now: datetime) -> timedelta | None:
    """How long until the next ready pod counts as available."""
    waits = [
        since + timedelta(seconds=min_ready_seconds) - now
        for pod in pods
        if (since := ready_since(pod)) is not None and since + timedelta(seconds=min_ready_seconds) > now
    ]
    return min(waits, default=None)


def first_to_go(pod: Pod) -> tuple[Any, ...]:
    """A sort key: pods without a node first, then those not running, not ready, restarted often, young."""
    phases = {"Pending": 0, "Unknown": 1, "Running": 2}
    restarts = max((status.restart_count for status in pod.status.container_statuses), default=0)
    age = (pod.metadata.creation_timestamp or EPOCH).timestamp()
    return (
        bool(pod.spec.node_name),
        phases.get(pod.status.phase, 0),
        ready_since(pod) is not None,
        -restarts,
        -age,
        pod.name,
    )
