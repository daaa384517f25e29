"""What is wrong with the PersistentVolumeClaims and ResourceClaims of a pod, before any node is looked at."""

from __future__ import annotations

from volcano.api.core import Pod
from volcano.api.meta import Key
from volcano.api.nearest_words import did_you_mean
from volcano.api.why.reasons import Finding, finding
from volcano.scheduler.model import ClusterObjects
from volcano.scheduler.plugins.predicates.claims import (
    BIND_COMPLETED,
    can_provision,
    claim_keys,
    class_of,
    could_take,
    waits_for_consumer,
)


def claim_cause(around: ClusterObjects, pod: Pod) -> Finding | None:
    for key, ephemeral in claim_keys(pod):
        claim = around.claims.get(key)
        if claim is None:
            if ephemeral:
                continue
            known = [each.name for each in around.claims if each.namespace == key.namespace]
            return finding("ClaimNotFound", claim=key.name, meant=did_you_mean(key.name, known))
        if claim.is_deleting:
            return finding("ClaimEnding", claim=key.name)
        if claim.status.phase == "Lost":
            return finding("ClaimLost", claim=key.name, volume=claim.spec.volume_name)
        if claim.spec.volume_name and BIND_COMPLETED in claim.annotations:
            continue
        name = class_of(claim)
        storage_class = around.storage_classes.get(name)
        if name and storage_class is None and not any(could_take(v, key, claim) for v in around.volumes.values()):
            asked = did_you_mean(name, around.storage_classes)
            return finding("StorageClassNotFound", claim=key.name, class_name=name, meant=asked)
        is_provided = waits_for_consumer(claim, around) or can_provision(storage_class)
        if not is_provided and not any(could_take(volume, key, claim) for volume in around.volumes.values()):
            return finding("ClaimUnbound", claim=key.name, class_name=name or "(none)")
    return _resource_claim_cause(around, pod)


def _resource_claim_cause(around: ClusterObjects, pod: Pod) -> Finding | None:
    namespace = pod.namespace or "default"
    for claim in pod.spec.resource_claims:
        if claim.resource_claim_name and Key(namespace, claim.resource_claim_name) not in around.resource_claims:
            known = [each.name for each in around.resource_claims if each.namespace == namespace]
            asked = did_you_mean(claim.resource_claim_name, known)
            return finding("ResourceClaimNotFound", claim=claim.resource_claim_name, meant=asked)
    return None
