"""Steps about ResourceClaims: a claim gets devices and a user before its pod is bound; a failed bind undoes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from volcano.api.core import Pod, ResourceClaim
from volcano.api.core.devices import CLAIM_PROTECTION
from volcano.api.meta import JSON
from volcano.machinery.plan import Patch, PatchKind, Step, ref
from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.framework.record import ClaimRelease, DeviceChoice


def device_steps(devices: Iterable[DeviceChoice], snapshot: Snapshot, pod: Pod) -> Iterator[Step]:
    """An allocation cannot be changed, so one that no pod uses is removed before another is written."""
    listed = list(_claims(devices, snapshot))
    for choice, claim in listed:
        if choice.replaces:
            yield _status(claim, {"allocation": None, "reservedFor": None}, fresh=True)
    for choice, claim in listed:
        if not choice.is_new and any(user.get("uid") == pod.uid for user in claim.users):
            # The reservation is old, and a release of it may be on its way: whichever comes first, the other fails.
            yield _status(claim, _without([pod.uid]), "strategic", fresh=True)
        if choice.is_new and CLAIM_PROTECTION not in claim.metadata.finalizers:
            finalizers = [*claim.metadata.finalizers, CLAIM_PROTECTION]
            yield Patch(ref(claim), {"metadata": {"finalizers": finalizers}}, gone_ok=False)
        status: JSON = {"reservedFor": [{"resource": "pods", "name": pod.name, "uid": pod.uid}]}
        if choice.is_new:
            status["allocation"] = choice.allocation
        yield _status(claim, status, "strategic")


def device_undo_steps(devices: Iterable[DeviceChoice], snapshot: Snapshot, pod: Pod) -> Iterator[Step]:
    """The pod no longer uses the claim. A claim that was made for it loses its devices, too.

    Another claim keeps them: pods of the same gang may have been bound with them in the meantime.
    """
    for choice, claim in _claims(devices, snapshot):
        owner = claim.controller
        if choice.is_new and owner is not None and owner.uid == pod.uid:
            yield _status(claim, {"allocation": None, "reservedFor": None})
        else:
            yield _status(claim, _without([pod.uid]), "strategic")


def claim_release_steps(releases: Iterable[ClaimRelease], snapshot: Snapshot) -> Iterator[Step]:
    """Only as the claims were last seen: meanwhile somebody may have begun to use them."""
    for release in releases:
        claim = snapshot.cluster.resource_claims.get(release.claim)
        if claim is not None and release.frees:
            yield _status(claim, {"allocation": None, "reservedFor": None}, fresh=True)
        elif claim is not None:
            yield _status(claim, _without(release.users), "strategic", fresh=True)


def _without(users: Iterable[str]) -> JSON:
    return {"reservedFor": [{"$patch": "delete", "uid": uid} for uid in users]}


def _claims(devices: Iterable[DeviceChoice], snapshot: Snapshot) -> Iterator[tuple[DeviceChoice, ResourceClaim]]:
    for choice in devices:
        claim = snapshot.cluster.resource_claims.get(choice.claim)
        if claim is not None:
            yield choice, claim


def _status(claim: ResourceClaim, status: JSON, kind: PatchKind = "merge", *, fresh: bool = False) -> Patch:
    return Patch(ref(claim, fresh=fresh), {"status": status}, kind=kind, subresource="status", gone_ok=False)
