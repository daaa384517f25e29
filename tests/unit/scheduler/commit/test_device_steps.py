"""Claims before a bind, and after one that failed."""

from __future__ import annotations

from typing import Any

import msgspec

from volcano.api.core import Pod, ResourceClaim
from volcano.api.core.devices import CLAIM_PROTECTION
from volcano.api.meta import Key
from volcano.machinery.plan import ref
from volcano.scheduler.commit.device_steps import claim_release_steps, device_steps, device_undo_steps
from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.framework.record import ClaimRelease, DeviceChoice

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


def test_an_old_reservation_is_taken_back_before_it_is_made_again():
    used = snapshot()
    claim = used.cluster.resource_claims[KEY]
    status = {"allocation": ALLOCATION, "reservedFor": [{"uid": "pod-uid"}, {"uid": "other"}]}
    used.cluster.resource_claims[KEY] = msgspec.structs.replace(claim, status=status)
    first, second = device_steps([DeviceChoice(KEY, ALLOCATION, is_new=False)], used, POD)

    assert first.body == {"status": {"reservedFor": [{"$patch": "delete", "uid": "pod-uid"}]}}
    assert first.target == ref(used.cluster.resource_claims[KEY], fresh=True)
    assert second.body == {"status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "pod-uid"}]}}


def test_a_release_frees_the_devices_or_removes_single_users_and_only_as_the_claim_was_seen():
    freed = ClaimRelease(KEY, ("pod-uid",), frees=True)
    single = ClaimRelease(KEY, ("pod-uid",), frees=False)
    steps = list(claim_release_steps([freed, single, ClaimRelease(Key("ns", "gone"), (), frees=True)], snapshot()))

    assert bodies(steps) == [
        {"status": {"allocation": None, "reservedFor": None}},
        {"status": {"reservedFor": [{"$patch": "delete", "uid": "pod-uid"}]}},
    ]
    assert [step.target for step in steps] == [ref(snapshot().cluster.resource_claims[KEY], fresh=True)] * 2
