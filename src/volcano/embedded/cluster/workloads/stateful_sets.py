"""StatefulSets: numbered pods with a stable name and a volume each, started and stopped in order.

Each template is kept as a ControllerRevision, so that a pod below the partition of an update is recreated unchanged.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Final

from volcano.api.core import ControllerRevision, PersistentVolumeClaim, Pod, StatefulSet
from volcano.api.meta import JSON, Key, Resource
from volcano.api.scheme import resource_type
from volcano.embedded.cluster.workloads.pods import (
    MAX_PODS_PER_PLAN,
    is_available,
    made_pod,
    ready_since,
    template_hash,
    until_available,
)
from volcano.machinery.controller import Controller, Waker, owner_key, self_key
from volcano.machinery.plan import (
    NOTHING,
    Create,
    Delete,
    Later,
    Patch,
    Plan,
    Record,
    Step,
    Together,
    merge_difference,
    owner_reference,
    ref,
)
from volcano.machinery.world import World

REVISION_LABEL: Final = "controller-revision-hash"
NAME_LABEL: Final = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL: Final = "apps.kubernetes.io/pod-index"
DEFAULT_REVISIONS_KEPT: Final = 10


@dataclass(frozen=True, slots=True)
class Revisions:
    """The template that pods are to have, and the one they had before."""

    update: str
    current: str
    templates: Mapping[str, JSON]


class StatefulSetController(Controller):
    """Reconciles StatefulSets."""

    name: ClassVar = "statefulset"

    @property
    def wakes_on(self) -> Mapping[type[Resource], Waker]:
        return {StatefulSet: self_key, Pod: owner_key("StatefulSet")}

    @property
    def reads(self) -> tuple[type[Resource], ...]:
        return (ControllerRevision, PersistentVolumeClaim)

    def decide(self, key: Key, world: World, causes: tuple[Hashable, ...]) -> Plan:
        owner = world.get(StatefulSet, key)
        if owner is None or owner.is_deleting:
            return NOTHING
        known = world.where(ControllerRevision, "owner", owner.uid)
        revisions = _revisions(owner, known)
        pods = {
            index: pod
            for pod in world.where(Pod, "owner", owner.uid)
            if (index := ordinal(owner, pod.name)) is not None
        }
        kept = _kept(owner, revisions, known)
        moves = _Moves(owner, pods, revisions, world).steps()
        return (*kept, *moves, *_status_steps(owner, pods, revisions, world.now))


def ordinal(owner: StatefulSet, name: str) -> int | None:
    """The number in a pod's name."""
    text = name.removeprefix(f"{owner.name}-")
    return int(text) if text != name and text.isdecimal() and text == str(int(text)) else None


def wanted_ordinals(owner: StatefulSet) -> range:
    start = int((owner.spec.ordinals or {}).get("start", 0))
    return range(start, start + (1 if owner.spec.replicas is None else owner.spec.replicas))


# -- revisions ------------------------------------------------------------------------------------------------
def _revisions(owner: StatefulSet, known: list[ControllerRevision]) -> Revisions:
    update = f"{owner.name}-{template_hash(owner.spec.template)}"
    templates = {each.name: (each.data or {}).get("spec", {}).get("template") or {} for each in known}
    templates[update] = owner.spec.template or {}
    current = (owner.status or {}).get("currentRevision") or update
    return Revisions(update, current if current in templates else update, templates)


def _kept(owner: StatefulSet, revisions: Revisions, known: list[ControllerRevision]) -> Plan:
    """Store the present template; delete the oldest templates that are not in use beyond the limit."""
    names = {each.name for each in known}
    newest = max((each.revision for each in known), default=0)
    if revisions.update not in names:
        metadata: JSON = {
            "name": revisions.update,
            "namespace": owner.namespace,
            "labels": {REVISION_LABEL: revisions.update.removeprefix(f"{owner.name}-")},
            "ownerReferences": [owner_reference(owner)],
        }
        body = {"metadata": metadata, "revision": newest + 1, "data": {"spec": {"template": owner.spec.template or {}}}}
        return (Create(resource_type(ControllerRevision), body),)
    limit = DEFAULT_REVISIONS_KEPT if owner.spec.revision_history_limit is None else owner.spec.revision_history_limit
    old = sorted(
        (each for each in known if each.name not in (revisions.update, revisions.current)), key=lambda r: r.revision
    )
    return tuple(Delete(ref(each)) for each in old[: max(0, len(old) - limit)])


def revision_of(pod: Pod) -> str:
    return pod.labels.get(REVISION_LABEL, "")


# -- moving ---------------------------------------------------------------------------------------------------
class _Moves:
    """The changes to the pods: one at a time where their order matters."""

    def __init__(self, owner: StatefulSet, pods: Mapping[int, Pod], revisions: Revisions, world: World) -> None:
        self.owner, self.pods, self.revisions, self.world = owner, pods, revisions, world
        self.in_order = owner.spec.pod_management_policy != "Parallel"
        self.wanted = wanted_ordinals(owner)

    def steps(self) -> Plan:
        made, is_held_up = self._made()
        if is_held_up:
            return tuple(made)
        if any(index not in self.wanted for index in self.pods):
            return (*made, *self._condemned())
        return (*made, *self._updated())

    def _made(self) -> tuple[list[Step], bool]:
        """Create missing pods and delete finished ones; and whether the other changes wait for one of them."""
        steps: list[Step] = []
        for index in self.wanted:
            pod = self.pods.get(index)
            if pod is None:
                steps += self._pod(index)
            elif pod.is_finished and not pod.is_deleting:
                steps.append(Delete(ref(pod)))
            elif ready_since(pod) is not None and not pod.is_deleting:
                continue
            if self.in_order or len(steps) >= MAX_PODS_PER_PLAN:
                return steps, True
        return steps, False

    def _condemned(self) -> list[Step]:
        """Delete pods whose number is not wanted any more, the highest first."""
        doomed = [self.pods[index] for index in sorted(self.pods, reverse=True) if index not in self.wanted]
        if self.in_order:
            doomed = doomed[:1]
        return [Delete(ref(pod)) for pod in doomed if not pod.is_deleting]

    def _updated(self) -> list[Step]:
        """Delete the highest pod with an outdated template; it is recreated with the present one."""
        strategy = self.owner.spec.update_strategy or {}
        if strategy.get("type") == "OnDelete":
            return []
        partition = int((strategy.get("rollingUpdate") or {}).get("partition") or 0)
        for index in reversed(self.wanted):
            pod = self.pods.get(index)
            if index - self.wanted.start < partition or pod is None:
                break
            if revision_of(pod) != self.revisions.update:
                return [Delete(ref(pod))] if not pod.is_deleting else []
            if not is_available(pod, self.owner.spec.min_ready_seconds, self.world.now) or pod.is_deleting:
                return []
        return []

    def _pod(self, index: int) -> list[Step]:
        owner, name = self.owner, f"{self.owner.name}-{index}"
        revision = self._revision_for(index)
        template = self.revisions.templates[revision]
        claims = [self._claim(claim, index) for claim in owner.spec.volume_claim_templates]
        missing = [
            Create(resource_type(PersistentVolumeClaim), claim)
            for claim in claims
            if self.world.get(PersistentVolumeClaim, Key(owner.namespace, claim["metadata"]["name"])) is None
        ]
        spec: JSON = {"hostname": name, **({"subdomain": owner.spec.service_name} if owner.spec.service_name else {})}
        if claims:
            spec["volumes"] = _volumes(template, owner.spec.volume_claim_templates, claims)
        labels = {NAME_LABEL: name, INDEX_LABEL: str(index), REVISION_LABEL: revision}
        pod = made_pod(owner, template, name, labels=labels, spec=spec)
        note = Record(ref(owner), "SuccessfulCreate", f"create Pod {name} in StatefulSet {owner.name} successful")
        return [*((Together(tuple(missing)),) if missing else ()), pod, note]

    def _revision_for(self, index: int) -> str:
        strategy = self.owner.spec.update_strategy or {}
        partition = int((strategy.get("rollingUpdate") or {}).get("partition") or 0)
        is_below = index - self.wanted.start < partition
        return self.revisions.current if is_below and strategy.get("type") != "OnDelete" else self.revisions.update

    def _claim(self, template: JSON, index: int) -> JSON:
        metadata = template.get("metadata") or {}
        labels = ((self.owner.spec.selector or {}).get("matchLabels")) or {}
        return {
            "metadata": {
                "name": f"{metadata.get('name', '')}-{self.owner.name}-{index}",
                "namespace": self.owner.namespace,
                "labels": {**(metadata.get("labels") or {}), **labels},
                "annotations": dict(metadata.get("annotations") or {}),
            },
            "spec": template.get("spec") or {},
        }


def _volumes(template: JSON, claim_templates: list[JSON], claims: list[JSON]) -> list[JSON]:
    """The pod's own volumes, with those of the claims in their place."""
    named = {
        (each.get("metadata") or {}).get("name"): claim for each, claim in zip(claim_templates, claims, strict=True)
    }
    own = [each for each in (template.get("spec") or {}).get("volumes") or [] if each.get("name") not in named]
    return own + [
        {"name": name, "persistentVolumeClaim": {"claimName": claim["metadata"]["name"]}}
        for name, claim in named.items()
    ]


# -- status ---------------------------------------------------------------------------------------------------
STATUS_FIELDS: Final = (
    "observedGeneration", "replicas", "readyReplicas", "availableReplicas", "currentReplicas", "updatedReplicas",
    "currentRevision", "updateRevision",
)  # fmt: skip


def _status_steps(owner: StatefulSet, pods: Mapping[int, Pod], revisions: Revisions, now: datetime) -> Plan:
    status = _status(owner, list(pods.values()), revisions, now)
    have = {name: value for name, value in (owner.status or {}).items() if name in STATUS_FIELDS}
    again = until_available(pods.values(), owner.spec.min_ready_seconds, now)
    later: Plan = (Later(again),) if again is not None else ()
    if status == have:
        return later
    return (Patch(ref(owner), {"status": merge_difference(have, status)}, subresource="status"), *later)


def _status(owner: StatefulSet, pods: list[Pod], revisions: Revisions, now: datetime) -> JSON:
    present = [pod for pod in pods if not pod.is_finished]
    staying = [pod for pod in present if not pod.is_deleting]
    ready = [pod for pod in present if ready_since(pod) is not None]
    updated = [pod for pod in staying if revision_of(pod) == revisions.update]
    wanted = len(wanted_ordinals(owner))
    is_done = len(updated) == len(present) == wanted and len(ready) == wanted
    current = revisions.update if is_done else revisions.current
    counts = {
        "readyReplicas": len(ready),
        "availableReplicas": sum(is_available(pod, owner.spec.min_ready_seconds, now) for pod in present),
        "currentReplicas": sum(revision_of(pod) == current for pod in staying),
        "updatedReplicas": len(updated),
    }
    return {
        "replicas": len(present),
        **{name: count for name, count in counts.items() if count},
        "availableReplicas": counts["availableReplicas"],
        "currentRevision": current,
        "updateRevision": revisions.update,
        "observedGeneration": owner.metadata.generation,
    }
