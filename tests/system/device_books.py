"""What the API objects say about devices: read from every commit, and checked by plain sums.

Nothing here is shared with the scheduler: an error of its own arithmetic would not be seen otherwise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from volcano.embedded.apiserver.store.contract import DELETED, LoggedChange

FOLLOWED = ("pods", "resourceclaims.resource.k8s.io", "resourceslices.resource.k8s.io")
Json = dict[str, Any]


class DeviceBooks:
    """Pods, claims and slices as they are at the newest revision; what was wrong at any is in `violations`."""

    def __init__(self) -> None:
        self.kinds: dict[str, dict[str, Json]] = {kind: {} for kind in FOLLOWED}
        self.violations: list[str] = []
        self.allocations = 0
        self.most_used = 0

    @property
    def pods(self) -> dict[str, Json]:
        return self.kinds[FOLLOWED[0]]

    @property
    def claims(self) -> dict[str, Json]:
        return self.kinds[FOLLOWED[1]]

    def committed(self, changes: Sequence[LoggedChange]) -> None:
        for change in changes:
            key = change.stored.key
            if key.resource not in self.kinds:
                continue
            listed = self.kinds[key.resource]
            if change.kind == DELETED:
                listed.pop(key.name, None)
                continue
            before, listed[key.name] = listed.get(key.name), msgspec.json.decode(change.stored.raw)
            if key.resource == FOLLOWED[1] and _allocation(listed[key.name]) != _allocation(before or {}):
                self.allocations += bool(_allocation(listed[key.name]))
                self.violations += [f"revision {change.revision}: {what}" for what in self._overbooked()]
            elif key.resource == FOLLOWED[0]:
                self.violations += [f"revision {change.revision}: {what}" for what in self._badly_bound(key.name)]

    # -- at every revision -----------------------------------------------------------------------------------------
    def _overbooked(self) -> Iterator[str]:
        devices = {(s["spec"]["driver"], s["spec"]["pool"]["name"], d["name"]): d
                   for s in self.kinds[FOLLOWED[2]].values() for d in s["spec"].get("devices", ())}  # fmt: skip
        whole: Counter[tuple[str, ...]] = Counter()
        shares: Counter[tuple[str, ...]] = Counter()
        consumed: Counter[tuple[str, ...]] = Counter()
        for result in self.results():
            device = (result["driver"], result["pool"], result["device"])
            if "shareID" in result:
                shares[device] += 1
                consumed[device] += int(result["consumedCapacity"]["units"])
            else:
                whole[device] += 1
        self.most_used = max(self.most_used, len(whole))
        for device, number in whole.items():
            if number > 1 or device in shares:
                yield f"device {'/'.join(device)} is allocated {number + shares[device]} times"
        for device, amount in consumed.items():
            if device in devices and amount > int(devices[device]["capacity"]["units"]["value"]):
                yield f"device {'/'.join(device)}: {amount} units are consumed"
        yield from self._overcounted({*whole, *shares}, devices)

    def _overcounted(self, used: set[tuple[str, ...]], devices: dict[tuple[str, ...], Json]) -> Iterator[str]:
        counted: Counter[tuple[str, str]] = Counter()
        for device in used & devices.keys():
            for consumes in devices[device].get("consumesCounters", ()):
                counted[device[1], consumes["counterSet"]] += int(consumes["counters"]["slots"]["value"])
        has = {(s["spec"]["pool"]["name"], c["name"]): int(c["counters"]["slots"]["value"])
               for s in self.kinds[FOLLOWED[2]].values() for c in s["spec"].get("sharedCounters", ())}  # fmt: skip
        for counter, number in counted.items():
            if counter in has and number > has[counter]:
                yield f"counter {'/'.join(counter)}: {number} of {has[counter]} slots are used"

    def _badly_bound(self, name: str) -> Iterator[str]:
        """A pod gets a node only after all of its claims are allocated to it."""
        pod = self.pods[name]
        if not pod["spec"].get("nodeName") or is_finished(pod) or pod.get("checked"):
            return
        pod["checked"] = True
        for claim in self.claims_of(pod):
            if pod["metadata"]["uid"] not in _users(claim):
                yield f"pod {name} is bound, and claim {claim['metadata']['name']} is not reserved for it"

    # -- at rest -----------------------------------------------------------------------------------------------------
    def at_rest(self) -> Iterator[str]:
        """What is wrong when the scheduler has had time to repair."""
        by_uid = {pod["metadata"]["uid"]: pod for pod in self.pods.values()}
        for name, claim in self.claims.items():
            for uid in _users(claim):
                pod = by_uid.get(uid)
                if pod is None:
                    yield f"claim {name} is reserved for a pod that is gone"
                elif not pod["spec"].get("nodeName"):
                    yield f"claim {name} is reserved for {pod['metadata']['name']}, which has no node"
            if _allocation(claim) and not _users(claim):
                yield f"claim {name} is allocated and not used"
        gangs: dict[str, list[Json]] = {}
        for pod in self.pods.values():
            gangs.setdefault(pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"], []).append(pod)
        for gang, pods in gangs.items():
            placed = sum(bool(pod["spec"].get("nodeName")) for pod in pods)
            open_pods = [pod for pod in pods if not is_finished(pod)]
            is_touched = any(pod["metadata"]["labels"]["size"] != str(len(pods)) or is_finished(pod) for pod in pods)
            if open_pods and not is_touched and 0 < placed < len(pods):
                yield f"gang {gang}: {placed} of {len(pods)} pods have a node"

    def results(self) -> Iterator[Json]:
        for claim in self.claims.values():
            yield from ((_allocation(claim) or {}).get("devices") or {}).get("results", ())

    def claims_of(self, pod: Json) -> Iterator[Json]:
        made = {each["name"]: each.get("resourceClaimName") for each in pod["status"].get("resourceClaimStatuses", ())}
        for entry in pod["spec"].get("resourceClaims", ()):
            claim = self.claims.get(entry.get("resourceClaimName") or made.get(entry["name"]) or "")
            if claim is not None:
                yield claim


def _allocation(claim: Json) -> Json | None:
    found: Json | None = (claim.get("status") or {}).get("allocation")
    return found


def _users(claim: Json) -> list[str]:
    return [user["uid"] for user in (claim.get("status") or {}).get("reservedFor") or ()]


def is_finished(pod: Json) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
