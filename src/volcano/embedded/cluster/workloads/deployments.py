"""Deployments: one ReplicaSet per template, and rollouts from one to the next within maxSurge and maxUnavailable."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from volcano.api.core import Deployment, Pod, ReplicaSet
from volcano.api.indexes import Indexes
from volcano.api.meta import JSON, Key, Resource, creation_order
from volcano.api.scheme import resource_type
from volcano.api.selectors import selector_from
from volcano.embedded.cluster.workloads.deployment_status import deployment_status, next_deadline
from volcano.embedded.cluster.workloads.pods import adopted, template_hash
from volcano.embedded.cluster.workloads.rollout_limits import limits
from volcano.machinery.controller import Controller, Wake, Waker, owner_key, self_key
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
from volcano.machinery.world import Change, World

HASH_LABEL: Final = "pod-template-hash"
REVISION: Final = "deployment.kubernetes.io/revision"
DESIRED: Final = "deployment.kubernetes.io/desired-replicas"
NOT_COPIED: Final = ("kubectl.kubernetes.io/last-applied-configuration", REVISION, DESIRED)
DEFAULT_REVISIONS_KEPT: Final = 10


@dataclass(frozen=True, slots=True)
class Rollout:
    """The ReplicaSets of a Deployment: the one of the present template, if it is there, and the earlier ones."""

    deployment: Deployment
    current: ReplicaSet | None
    earlier: list[ReplicaSet]

    @property
    def wanted(self) -> int:
        replicas = self.deployment.spec.replicas
        return 1 if replicas is None else replicas

    @property
    def total(self) -> int:
        return sum(replicas_of(each) for each in (*self.earlier, *([self.current] if self.current else [])))


class DeploymentController(Controller):
    """Reconciles Deployments."""

    name: ClassVar = "deployment"
    indexes: ClassVar[Indexes] = {
        ReplicaSet: {"orphan": lambda each: [each.namespace] if each.controller is None else []}
    }

    @property
    def wakes_on(self) -> Mapping[type[Resource], Waker]:
        return {Deployment: self_key, ReplicaSet: owner_key("Deployment"), Pod: _last_pods}

    def decide(self, key: Key, world: World, causes: tuple[Hashable, ...]) -> Plan:
        deployment = world.get(Deployment, key)
        if deployment is None or deployment.is_deleting:
            return NOTHING
        adoptions = tuple(_adoptions(deployment, world))
        if adoptions:
            return (Together(adoptions),)
        rollout = _rollout(deployment, world)
        steps = (*_rolled(rollout, world), *_pruned(rollout), *_numbered(rollout))
        status = deployment_status(deployment, rollout.current, rollout.earlier, world.now)
        have = deployment.status or {}
        written: Plan = ()
        if any(have.get(name) != value for name, value in status.items()) or _vanished(have, status):
            patch = merge_difference({name: have[name] for name in have if name in STATUS_FIELDS}, status)
            written = (Patch(ref(deployment), {"status": patch}, subresource="status"),)
        deadline = next_deadline(deployment, status, world.now)
        return (*steps, *written, *((Later(deadline),) if deadline is not None else ()))


STATUS_FIELDS: Final = (
    "observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas",
    "conditions",
)  # fmt: skip


def _vanished(have: JSON, status: JSON) -> bool:
    return any(name in have and name not in status for name in STATUS_FIELDS)


def _last_pods(change: Change[Pod]) -> Iterable[Wake]:
    """With the strategy Recreate, the next ReplicaSet starts when the last pod of the earlier ones is gone."""
    owner, pod = change.object.controller, change.object
    if change.new is None and owner is not None and owner.kind == "ReplicaSet":
        hashed = pod.labels.get(HASH_LABEL, "")
        name = owner.name.removesuffix(f"-{hashed}") if hashed else ""
        if name and name != owner.name:
            yield Wake(Key(pod.namespace, name))


def replicas_of(replica_set: ReplicaSet) -> int:
    return 1 if replica_set.spec.replicas is None else replica_set.spec.replicas


def _adoptions(deployment: Deployment, world: World) -> Iterable[Step]:
    selector = selector_from(deployment.spec.selector)
    for each in world.where(ReplicaSet, "orphan", deployment.namespace):
        if selector and selector.matches(each.labels) and not each.is_deleting:
            yield adopted(deployment, each)


def _rollout(deployment: Deployment, world: World) -> Rollout:
    mine = [each for each in world.where(ReplicaSet, "owner", deployment.uid) if not each.is_deleting]
    mine.sort(key=creation_order)
    current = next((each for each in mine if _same_template(each, deployment)), None)
    return Rollout(deployment, current, [each for each in mine if each is not current])


def _same_template(replica_set: ReplicaSet, deployment: Deployment) -> bool:
    """Whether the templates are equal, apart from the label that distinguishes the ReplicaSets' pods."""
    template = dict(replica_set.spec.template or {})
    metadata = dict(template.get("metadata") or {})
    labels = {name: value for name, value in (metadata.get("labels") or {}).items() if name != HASH_LABEL}
    metadata["labels"] = labels
    return template_hash({**template, "metadata": metadata}) == template_hash(_template(deployment))


def _template(deployment: Deployment) -> JSON:
    template = dict(deployment.spec.template or {})
    metadata = dict(template.get("metadata") or {})
    metadata["labels"] = dict(metadata.get("labels") or {})
    return {**template, "metadata": metadata}


# -- rolling --------------------------------------------------------------------------------------------------
def _rolled(rollout: Rollout, world: World) -> Iterable[Step]:
    deployment = rollout.deployment
    if deployment.spec.paused:
        if rollout.current is not None and not rollout.earlier:
            yield from _scale(deployment, rollout.current, rollout.wanted)
        return
    if ((deployment.spec.strategy or {}).get("type") or "RollingUpdate") == "Recreate":
        yield from _recreated(rollout, world)
    elif rollout.current is None:
        surge, _ = limits(deployment, rollout.wanted)
        room = max(0, rollout.wanted + surge - rollout.total)
        yield from _created(rollout, min(rollout.wanted, room))
    else:
        yield from _rolling(rollout, rollout.current)


def _recreated(rollout: Rollout, world: World) -> Iterable[Step]:
    """Delete all pods of earlier templates first, then create those of the present one."""
    scaled = [step for each in rollout.earlier for step in _scale(rollout.deployment, each, 0)]
    yield from scaled
    left = [pod for each in rollout.earlier for pod in world.where(Pod, "owner", each.uid) if not pod.is_finished]
    if scaled or left:
        return
    if rollout.current is None:
        yield from _created(rollout, rollout.wanted)
    else:
        yield from _scale(rollout.deployment, rollout.current, rollout.wanted)


def _rolling(rollout: Rollout, current: ReplicaSet) -> Iterable[Step]:
    """Scale the present template up within maxSurge, the earlier ones down within maxUnavailable."""
    deployment, have = rollout.deployment, replicas_of(current)
    surge, unavailable = limits(deployment, rollout.wanted)
    if have > rollout.wanted:
        yield from _scale(deployment, current, rollout.wanted)
        return
    room = rollout.wanted + surge - rollout.total
    if have < rollout.wanted and room > 0:
        yield from _scale(deployment, current, min(rollout.wanted, have + room))
        return
    must_stay = rollout.wanted - unavailable
    still_coming = have - int((current.status or {}).get("availableReplicas", 0))
    may_go = rollout.total - must_stay - max(0, still_coming)
    for each in rollout.earlier:
        # Unavailable replicas are removed first.
        idle = max(0, replicas_of(each) - int((each.status or {}).get("availableReplicas", 0)))
        less = min(idle, max(0, may_go))
        if less:
            may_go -= less
            yield from _scale(deployment, each, replicas_of(each) - less)
            return
    available = sum(int((each.status or {}).get("availableReplicas", 0)) for each in (*rollout.earlier, current))
    may_go = min(may_go, available - must_stay)
    for each in rollout.earlier:
        less = min(replicas_of(each), max(0, may_go))
        if less:
            may_go -= less
            yield from _scale(deployment, each, replicas_of(each) - less)


def _created(rollout: Rollout, replicas: int) -> Iterable[Step]:
    deployment = rollout.deployment
    template, hashed = _template(deployment), template_hash(_template(deployment))
    metadata = template["metadata"]
    labels = {**metadata["labels"], HASH_LABEL: hashed}
    selector = dict(deployment.spec.selector or {})
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), HASH_LABEL: hashed}
    name = f"{deployment.name}-{hashed}"
    body: JSON = {
        "metadata": {
            "name": name,
            "namespace": deployment.namespace,
            "labels": labels,
            "annotations": {**_annotations(deployment), REVISION: str(_revision(rollout) + 1)},
            "ownerReferences": [owner_reference(deployment)],
        },
        "spec": {
            "replicas": replicas,
            "minReadySeconds": deployment.spec.min_ready_seconds,
            "selector": selector,
            "template": {**template, "metadata": {**metadata, "labels": labels}},
        },
    }
    yield Create(resource_type(ReplicaSet), body)
    message = f"Scaled up replica set {name} from 0 to {replicas}"
    yield Record(ref(deployment), "ScalingReplicaSet", message)


def _annotations(deployment: Deployment) -> dict[str, str]:
    copied = {name: value for name, value in deployment.annotations.items() if name not in NOT_COPIED}
    wanted = 1 if deployment.spec.replicas is None else deployment.spec.replicas
    return {**copied, DESIRED: str(wanted)}


def _scale(deployment: Deployment, replica_set: ReplicaSet, replicas: int) -> Iterable[Step]:
    have = replicas_of(replica_set)
    if have == replicas:
        return
    yield Patch(ref(replica_set, fresh=True), {"spec": {"replicas": replicas}})
    how = "up" if replicas > have else "down"
    message = f"Scaled {how} replica set {replica_set.name} from {have} to {replicas}"
    yield Record(ref(deployment), "ScalingReplicaSet", message)


# -- history --------------------------------------------------------------------------------------------------
def _revision(rollout: Rollout) -> int:
    """The highest revision among the earlier ones."""
    return max((_number(each.annotations.get(REVISION)) for each in rollout.earlier), default=0)


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isdecimal() else 0


def _numbered(rollout: Rollout) -> Iterable[Step]:
    """The present template gets the highest revision, and the Deployment carries it as an annotation."""
    current, deployment = rollout.current, rollout.deployment
    if current is None:
        return
    revision = _number(current.annotations.get(REVISION))
    if revision <= _revision(rollout):
        revision = _revision(rollout) + 1
        yield Patch(ref(current), {"metadata": {"annotations": {REVISION: str(revision)}}})
    if deployment.annotations.get(REVISION) != str(revision):
        yield Patch(ref(deployment), {"metadata": {"annotations": {REVISION: str(revision)}}})


def _pruned(rollout: Rollout) -> Iterable[Step]:
    """Delete the oldest ReplicaSets without pods beyond the history limit; the others are kept for rollbacks."""
    limit = rollout.deployment.spec.revision_history_limit
    empty = [
        each
        for each in rollout.earlier
        if replicas_of(each) == 0 and not (each.status or {}).get("replicas") and rollout.current is not None
    ]
    empty.sort(key=lambda each: (_number(each.annotations.get(REVISION)), each.name))
    excess = len(empty) - (DEFAULT_REVISIONS_KEPT if limit is None else limit)
    for each in empty[: max(0, excess)]:
        yield Delete(ref(each), propagation="Background")
