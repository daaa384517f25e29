"""ResourceClaims of pods: made from the templates that the pods name, released and deleted when their pods are done.

Allocating devices is not done here: that is the scheduler's. A claim that no pod uses any more loses its allocation.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, ClassVar, Final

from volcano.api.copies import copied
from volcano.api.core import Pod, PodResourceClaim, ResourceClaim, ResourceClaimTemplate
from volcano.api.core.devices import CLAIM_PROTECTION
from volcano.api.indexes import Indexes
from volcano.api.meta import JSON, Key, Resource
from volcano.api.scheme import resource_type
from volcano.machinery.controller import Controller, Wake, Waker
from volcano.machinery.plan import NOTHING, Create, Delete, Patch, Plan, Record, Step, owner_reference, ref
from volcano.machinery.world import Change, World

POD_CLAIM_NAME: Final = "resource.kubernetes.io/pod-claim-name"
"""The annotation of a claim made here: which entry of its pod's spec.resourceClaims it is for."""
MAX_BASE_CHARACTERS: Final = 200  # of a claim's name, so that pod, entry and hash stay a valid name
TEMPLATE_KEY_PREFIX: Final = "template/"  # in keys that stand for all pods that wait for a template
CLAIM_KEY_PREFIX: Final = "claim/"  # in keys that stand for a claim


class ResourceClaimController(Controller):
    """Makes the claims of pods from templates and writes their names into the pods' status."""

    name: ClassVar = "resource-claim"
    indexes: ClassVar[Indexes] = {Pod: {"claim-template": lambda pod: _templates_of(pod)}}

    @property
    def wakes_on(self) -> Mapping[type[Resource], Waker]:
        return {Pod: _pods, ResourceClaim: _claims, ResourceClaimTemplate: _templates}

    def decide(self, key: Key, world: World, causes: tuple[Hashable, ...]) -> Plan:
        if key.name.startswith(TEMPLATE_KEY_PREFIX):
            return _waiting(key, world)
        if key.name.startswith(CLAIM_KEY_PREFIX):
            return tuple(_without_gone_users(Key(key.namespace, key.name.removeprefix(CLAIM_KEY_PREFIX)), world))
        pod = world.get(Pod, key)
        if pod is None or not _templates_of(pod):
            return NOTHING
        if pod.is_finished or pod.is_deleting:
            return tuple(_releases(pod, world)) if pod.is_finished else NOTHING
        return tuple(_made(pod, world))


def _templates_of(pod: Pod) -> list[str]:
    entries = pod.spec.resource_claims
    return [f"{pod.namespace}/{e.resource_claim_template_name}" for e in entries if e.resource_claim_template_name]


def _pods(change: Change[Pod]) -> Iterable[Wake]:
    pod = change.object
    if not pod.spec.resource_claims:
        return
    if change.new is not None:
        yield Wake(pod.key)
    if change.new is None or pod.is_finished:
        made = [status.resource_claim_name or "" for status in pod.status.resource_claim_statuses]
        for name in {*made, *(entry.resource_claim_name for entry in pod.spec.resource_claims)} - {""}:
            yield Wake(Key(pod.namespace, f"{CLAIM_KEY_PREFIX}{name}"))


def _claims(change: Change[ResourceClaim]) -> Iterable[Wake]:
    if change.new is not None and (change.new.users or CLAIM_PROTECTION in change.new.metadata.finalizers):
        yield Wake(Key(change.new.namespace, f"{CLAIM_KEY_PREFIX}{change.new.name}"))
    owner = change.object.controller
    if owner is not None and owner.kind == "Pod":
        yield Wake(Key(change.object.namespace, owner.name))


def _templates(change: Change[ResourceClaimTemplate]) -> Iterable[Wake]:
    if change.new is not None:
        yield Wake(Key(change.new.namespace, f"{TEMPLATE_KEY_PREFIX}{change.new.name}"))


def _waiting(key: Key, world: World) -> Plan:
    template = f"{key.namespace}/{key.name.removeprefix(TEMPLATE_KEY_PREFIX)}"
    plan: list[Step] = []
    for pod in world.where(Pod, "claim-template", template):
        if not (pod.is_finished or pod.is_deleting):
            plan += _made(pod, world)
    return tuple(plan)


def _made(pod: Pod, world: World) -> Iterable[Step]:
    """Create what is missing, and tell the pod the names of its claims."""
    told = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
    statuses: list[JSON] = []
    for entry in pod.spec.resource_claims:
        if not entry.resource_claim_template_name:
            continue
        name = told.get(entry.name) or claim_name(pod, entry)
        claim = world.get(ResourceClaim, Key(pod.namespace, name))
        if claim is None:
            template = world.get(ResourceClaimTemplate, Key(pod.namespace, entry.resource_claim_template_name))
            if template is None:
                missing = f'resourceclaimtemplate "{entry.resource_claim_template_name}" not found'
                why = f"PodResourceClaim {entry.name}: {missing}"
                yield Record(ref(pod), "FailedResourceClaimCreation", why, "Warning")
                continue
            yield Create(resource_type(ResourceClaim), claim_from(pod, entry, template))
        elif not _is_of(claim, pod):
            why = f"PodResourceClaim {entry.name}: resourceclaim {name} was not created for the pod"
            yield Record(ref(pod), "FailedResourceClaimCreation", why, "Warning")
            continue
        statuses.append({"name": entry.name, "resourceClaimName": name})
    if statuses and {each["name"]: each["resourceClaimName"] for each in statuses} != told:
        yield Patch(ref(pod), {"status": {"resourceClaimStatuses": statuses}}, subresource="status")


def claim_name(pod: Pod, entry: PodResourceClaim) -> str:
    """The same for the same pod each time, so that deciding twice makes one claim; another for its successor."""
    digest = hashlib.sha256(f"{pod.uid}/{entry.name}".encode()).hexdigest()
    return f"{f'{pod.name}-{entry.name}'[:MAX_BASE_CHARACTERS].rstrip('-.')}-{digest[:10]}"


def claim_from(pod: Pod, entry: PodResourceClaim, template: ResourceClaimTemplate) -> JSON:
    spec = template.spec or {}
    given: Any = spec.get("metadata") or {}
    return {
        "metadata": {
            "name": claim_name(pod, entry),
            "namespace": pod.namespace,
            "labels": copied(given.get("labels") or {}),
            "annotations": {**(given.get("annotations") or {}), POD_CLAIM_NAME: entry.name},
            "ownerReferences": [owner_reference(pod)],
        },
        "spec": copied(spec.get("spec") or {}),
    }


def _is_of(claim: ResourceClaim, pod: Pod) -> bool:
    owner = claim.controller
    return owner is not None and owner.uid == pod.uid


def _releases(pod: Pod, world: World) -> Iterable[Step]:
    """A pod that has finished needs its devices no more: the claims that were made for it go."""
    for status in pod.status.resource_claim_statuses:
        claim = world.get(ResourceClaim, Key(pod.namespace, status.resource_claim_name or ""))
        if claim is not None and _is_of(claim, pod) and not claim.is_deleting:
            yield Delete(ref(claim))


def _without_gone_users(key: Key, world: World) -> Iterable[Step]:
    """Pods that have finished or are gone use the claim no more; without users its devices are free again.

    A claim that was allocated a moment ago has its user already: the scheduler writes both at once. It protects the
    claim before that, so a claim that is not allocated yet keeps the finalizer until it is deleted.
    """
    claim = world.get(ResourceClaim, key)
    if claim is None:
        return
    users = claim.users
    staying = [user for user in users if _is_using(user, key.namespace, world)]
    status: JSON = claim.status or {}
    if users and len(staying) < len(users):
        body: JSON = {"reservedFor": staying or None}
        if not staying:
            body["allocation"] = None
        yield Patch(ref(claim, fresh=True), {"status": body}, subresource="status")
    elif claim.is_deleting and not status.get("allocation") and CLAIM_PROTECTION in claim.metadata.finalizers:
        left = [name for name in claim.metadata.finalizers if name != CLAIM_PROTECTION]
        yield Patch(ref(claim, fresh=True), {"metadata": {"finalizers": left}})


def _is_using(user: JSON, namespace: str, world: World) -> bool:
    if user.get("resource") != "pods" or user.get("apiGroup"):
        return True
    pod = world.get(Pod, Key(namespace, str(user.get("name"))))
    return pod is not None and pod.uid == user.get("uid") and not pod.is_finished
