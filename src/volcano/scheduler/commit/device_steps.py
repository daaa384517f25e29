"""Steps about ResourceClaims: a claim gets devices and a user before its pod is bound; a failed bind undoes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from volcano.api.core import Pod, ResourceClaim
from volcano.api.meta import JSON
from volcano.machinery.plan import Patch, PatchKind, Step, ref
from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.framework.record import DeviceChoice

PROTECTION: Final = "resource.kubernetes.io/delete-protection"
"""The finalizer that keeps a claim while its devices are allocated."""


def device_steps(devices: Iterable[DeviceChoice], snapshot: Snapshot, pod: Pod) -> Iterator[Step]:
    """An allocation cannot be changed, so one that no pod uses is removed before another is written."""
    for choice, claim in _claims(devices, snapshot):
        if choice.replaces:
            yield _status(claim, {"allocation": None, "reservedFor": None})
        if choice.is_new and PROTECTION not in claim.metadata.finalizers:
            finalizers = [*claim.metadata.finalizers, PROTECTION]
            yield Patch(ref(claim), {"metadata": {"finalizers": finalizers}}, gone_ok=False)
        status: JSON = {"reservedFor": [{"resource": "pods", "name": pod.name, "uid": pod.uid}]}
        if choice.is_new:
            status["allocation"] = choice.allocation
        yield _status(claim, status, "strategic")


def device_undo_steps(devices: Iterable[DeviceChoice], snapshot: Snapshot, pod: Pod) -> Iterator[Step]:
    """The pod no longer uses the claim; an allocation that was made for it alone goes as well."""
    for choice, claim in _claims(devices, snapshot):
        others = [user for user in (claim.status or {}).get("reservedFor") or () if user.get("uid") != pod.uid]
        if choice.is_new and not others:
            yield _status(claim, {"allocation": None, "reservedFor": None})
        else:
            leaving = {"$patch": "delete", "uid": pod.uid}
            yield _status(claim, {"reservedFor": [leaving]}, "strategic")


def _claims(devices: Iterable[DeviceChoice], snapshot: Snapshot) -> Iterator[tuple[DeviceChoice, ResourceClaim]]:
    for choice in devices:
        claim = snapshot.cluster.resource_claims.get(choice.claim)
        if claim is not None:
            yield choice, claim


def _status(claim: ResourceClaim, status: JSON, kind: PatchKind = "merge") -> Patch:
    return Patch(ref(claim), {"status": status}, kind=kind, subresource="status", gone_ok=False)
