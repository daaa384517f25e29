"""Claims before a bind, and after one that failed."""

from __future__ import annotations

from typing import Any

import msgspec

from volcano.api.core import Pod, ResourceClaim
from volcano.api.core.devices import CLAIM_PROTECTION
from volcano.api.meta import Key
from volcano.scheduler.commit.device_steps import device_steps, device_undo_steps
from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.framework.record import DeviceChoice

KEY = Key("ns", "claim")
POD = msgspec.convert({"metadata": {"name": "p", "namespace": "ns", "uid": "pod-uid"}}, Pod)
ALLOCATION: dict[str, Any] = {"devices": {"results": []}}


def bodies(steps: Any) -> list[Any]:
    return [step.body for step in steps]


def snapshot(owner: str = "") -> Snapshot:
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": owner, "controller": True}] if owner else []
    found = Snapshot()
    metadata = {"name": "claim", "namespace": "ns", "ownerReferences": owners}
    found.cluster.resource_claims[KEY] = msgspec.convert({"metadata": metadata}, ResourceClaim)
    return found


def test_a_claim_is_protected_and_gets_its_allocation_together_with_its_user():
    first, second = bodies(device_steps([DeviceChoice(KEY, ALLOCATION, is_new=True)], snapshot(), POD))

    assert first == {"metadata": {"finalizers": [CLAIM_PROTECTION]}}
    user = {"resource": "pods", "name": "p", "uid": "pod-uid"}
    assert second == {"status": {"reservedFor": [user], "allocation": ALLOCATION}}


def test_an_allocation_that_is_replaced_is_removed_first():
    choice = DeviceChoice(KEY, ALLOCATION, is_new=True, replaces=True)

    assert bodies(device_steps([choice], snapshot(), POD))[0] == {"status": {"allocation": None, "reservedFor": None}}


def test_a_failed_bind_takes_the_devices_from_a_claim_that_was_made_for_the_pod():
    undone = bodies(device_undo_steps([DeviceChoice(KEY, ALLOCATION, is_new=True)], snapshot("pod-uid"), POD))

    assert undone == [{"status": {"allocation": None, "reservedFor": None}}]


def test_a_failed_bind_leaves_the_devices_of_a_shared_claim_to_the_pods_that_were_bound_with_it():
    undone = bodies(device_undo_steps([DeviceChoice(KEY, ALLOCATION, is_new=True)], snapshot(), POD))

    assert undone == [{"status": {"reservedFor": [{"$patch": "delete", "uid": "pod-uid"}]}}]
