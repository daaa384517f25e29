"""Which devices the claims of a pod were allocated, and which of its containers use them."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from volcano.api.core import ResourceClaim
from volcano.api.errors import NotFound
from volcano.api.kubelet import AgentPod
from volcano.api.meta import Key
from volcano.embedded.agent.devices.cards import DRIVER
from volcano.embedded.agent.grants.pod_grant import Ungranted
from volcano.machinery.client import Client

FAILED: str = "FailedPrepareDynamicResources"


class ClaimedDevice(msgspec.Struct, frozen=True):
    """One allocated device of this agent's driver."""

    entry: str  # the name of the claim in the pod's spec
    request: str
    claim_uid: str
    pool: str
    device: str
    is_admin: bool = False


async def claimed_devices(client: Client, pod: AgentPod) -> list[ClaimedDevice]:
    """Of every claim that the pod names; Ungranted while one of them is not allocated to it."""
    found: list[ClaimedDevice] = []
    for entry in pod.spec.resource_claims:
        name = entry.resource_claim_name or _generated(pod, entry.name)
        if name is None:
            if any(status.name == entry.name for status in pod.status.resource_claim_statuses):
                continue  # no claim was needed
            raise Ungranted(FAILED, f"the claim {entry.name} of the pod does not exist yet")
        try:
            claim = await client.get(ResourceClaim, Key(pod.namespace, name))
        except NotFound:
            raise Ungranted(FAILED, f'resourceclaim "{name}" not found') from None
        if all(user.get("uid") != pod.uid for user in claim.users):
            raise Ungranted(FAILED, f"resourceclaim {name} is not reserved for this pod")
        found += _allocated(entry.name, claim)
    return found


def _generated(pod: AgentPod, entry: str) -> str | None:
    known = (status for status in pod.status.resource_claim_statuses if status.name == entry)
    return next((status.resource_claim_name for status in known), None)


def _allocated(entry: str, claim: ResourceClaim) -> Iterator[ClaimedDevice]:
    allocation = (claim.status or {}).get("allocation") or {}
    for result in (allocation.get("devices") or {}).get("results") or ():
        if isinstance(result, dict) and result.get("driver") == DRIVER:
            request = str(result.get("request", "")).partition("/")[0]
            yield ClaimedDevice(
                entry,
                request,
                claim.uid,
                str(result.get("pool", "")),
                str(result.get("device", "")),
                bool(result.get("adminAccess")),
            )


def seen_by(pod: AgentPod, devices: list[ClaimedDevice]) -> dict[str, list[ClaimedDevice]]:
    """The devices of each container: those of the claims, or of single requests of claims, that it names."""
    found: dict[str, list[ClaimedDevice]] = {}
    for container in pod.all_containers:
        wanted = [(str(each.get("name", "")), str(each.get("request") or "")) for each in container.resources.claims]
        seen = [
            device
            for device in devices
            if any(device.entry == name and request in ("", device.request) for name, request in wanted)
        ]
        if seen:
            found[container.name] = seen
    return found
