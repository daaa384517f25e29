"""Claims of devices (dynamic resource allocation): the nodes where a pod's ResourceClaims are or can be allocated.

What a placement of this session was given is assumed, so that no device is given twice. How devices are chosen is
core.dra; the allocation is written before the pod is bound (commit.device_steps).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Final

import msgspec
import numpy as np

from volcano.api.core import NodeSelector, Pod, ResourceClaim
from volcano.api.core.devices import MAX_CLAIM_USERS
from volcano.api.meta import JSON, Key
from volcano.scheduler.core.dra.asked import ClaimAsk, UnreadableClaim, read_claim
from volcano.scheduler.core.dra.device_search import CannotAllocate, ChosenDevice, DeviceMarket, allocate
from volcano.scheduler.core.dra.device_usage import DeviceUsage
from volcano.scheduler.core.dra.pools import DevicePool, Inventory
from volcano.scheduler.core.dra.results import allocation_result
from volcano.scheduler.core.node_table import Mask, NodeTable
from volcano.scheduler.framework.answers import Refusal
from volcano.scheduler.framework.record import DeviceChoice
from volcano.scheduler.model import ClusterObjects, Task

ELSEWHERE: Final = "resourceclaim not available on the node"
IN_USE: Final = "resourceclaim in use"
UNALLOCATED: Final = "cannot allocate all claims"
NAME: Final = "DynamicResources"


class DeviceClaims:
    def __init__(self, table: NodeTable, around: ClusterObjects) -> None:
        self._table, self._around = table, around
        self._supply: DeviceSupply | None = None
        self._made: dict[Key, JSON] = {}  # allocations of this session
        self._users: dict[Key, set[str]] = {}  # the tasks of this session that use a claim
        self._reserved: dict[str, tuple[DeviceChoice, ...]] = {}  # by task uid
        self._asks: dict[Key, tuple[ResourceClaim, ClaimAsk, bytes]] = {}

    # -- before any node -----------------------------------------------------------------------------------------
    def refusal(self, task: Task) -> Refusal | None:
        """Why no node need be looked at yet."""
        for name, entry in _named(task.pod):
            if name is None:
                said = f'waiting for dynamic resource controller to create the resourceclaim "{entry}"'
                return _refusal(said)
            claim = self._claim(task, name)
            if claim is None or claim.is_deleting:
                return _refusal(f'resourceclaim "{name}" {"not found" if claim is None else "is being deleted"}')
            try:
                self._ask(claim)
            except UnreadableClaim as error:
                return _refusal(f'resourceclaim "{name}": {error}')
        return None

    def sharing_key(self, task: Task) -> Hashable:
        """Equal for tasks whose claims ask for the same and are in the same state."""
        return tuple(self._state(claim) for claim in self._claims(task))

    def is_row_local(self) -> bool:
        """Whether a placement changes what fits on its own node alone."""
        return not self._devices.inventory.has_shared

    # -- node by node, all at once -------------------------------------------------------------------------------
    def checks(self, task: Task) -> Iterator[tuple[Mask, str]]:
        """For every reason the rows refused."""
        wanted: list[ResourceClaim] = []
        for claim in self._claims(task):
            allocation = self._allocation(claim)
            if allocation is None or self._is_movable(claim, task.uid):
                wanted.append(claim)
                continue
            if self._is_full(claim, task):
                yield np.ones(len(self._table), dtype=bool), IN_USE
            reachable = self._reachable(allocation)
            if not reachable.all():
                yield ~reachable, ELSEWHERE
        if wanted:
            yield ~self._fits(wanted), UNALLOCATED

    def _fits(self, claims: Sequence[ResourceClaim]) -> Mask:
        asks = [self._ask(claim) for claim in claims]
        key = b"\n".join(text for _, text in asks)
        held = [claim for claim in claims if self._allocation(claim) is not None]
        if not held:
            return self._devices.fitting(key, [ask for ask, _ in asks])
        here = np.ones(len(self._table), dtype=bool)
        for claim in held:
            here &= self._reachable(self._allocation(claim) or {})
        with_own = self._devices.fitting_without(
            [self._allocation(claim) or {} for claim in held], [a for a, _ in asks]
        )
        open_claims = [self._ask(claim)[0] for claim in claims if claim not in held]
        if open_claims:
            here &= self._devices.fitting(b"", open_claims, is_kept=False)
        return here | with_own

    # -- what happened -------------------------------------------------------------------------------------------
    def reserve(self, task: Task) -> str | None:
        """Give the claims of a placed task their devices; an objection when they cannot be had any more."""
        row = self._table.index[task.node]
        claims = list(self._claims(task))
        settled, wanted = [], []
        for claim in claims:
            allocation = self._allocation(claim)
            if allocation is not None and self._reachable(allocation)[row]:
                settled.append(DeviceChoice(claim.key, allocation, is_new=claim.key in self._made))
            elif allocation is None or self._is_movable(claim, task.uid):
                wanted.append(claim)
            else:
                return ELSEWHERE
        chosen: list[DeviceChoice] = []
        if wanted:
            freed = [allocation for claim in wanted if (allocation := self._allocation(claim)) is not None]
            found = self._devices.allocated(row, [self._ask(claim)[0] for claim in wanted], freed)
            if found is None:
                return UNALLOCATED
            for claim, devices in zip(wanted, found, strict=True):
                replaced = self._allocation(claim)
                made = allocation_result(
                    self._ask(claim)[0], claim.uid, devices, self._around.device_classes, task.node
                )
                if replaced is not None:
                    self._devices.release(replaced, row)
                self._devices.take(made, row)
                self._made[claim.key] = made
                chosen.append(DeviceChoice(claim.key, made, is_new=True, replaces=replaced is not None))
        for choice in (*settled, *chosen):
            self._users.setdefault(choice.claim, set()).add(task.uid)
        self._reserved[task.uid] = (*settled, *chosen)
        return None

    def release(self, task: Task) -> None:
        for choice in self._reserved.pop(task.uid, ()):
            users = self._users.get(choice.claim, set())
            users.discard(task.uid)
            if choice.is_new and not users and choice.claim in self._made:
                row = self._table.index.get(task.node, -1)
                self._devices.release(self._made.pop(choice.claim), row)
                claim = self._around.resource_claims.get(choice.claim)
                if choice.replaces and claim is not None and (claim.status or {}).get("allocation"):
                    self._devices.take((claim.status or {})["allocation"], row)

    def reserved(self, uid: str) -> tuple[DeviceChoice, ...]:
        return self._reserved.get(uid, ())

    # -- claims --------------------------------------------------------------------------------------------------
    @property
    def _devices(self) -> DeviceSupply:
        if self._supply is None:
            self._supply = DeviceSupply(self._table, self._around)
        return self._supply

    def _claims(self, task: Task) -> Iterator[ResourceClaim]:
        for name, _ in _named(task.pod):
            claim = self._claim(task, name) if name else None
            if claim is not None:
                yield claim

    def _claim(self, task: Task, name: str) -> ResourceClaim | None:
        return self._around.resource_claims.get(Key(task.namespace, name))

    def _ask(self, claim: ResourceClaim) -> tuple[ClaimAsk, bytes]:
        known = self._asks.get(claim.key)
        if known is None or known[0] is not claim:
            text = msgspec.json.encode(claim.spec, order="deterministic")
            known = self._asks[claim.key] = (claim, read_claim(claim.spec), text)
        return known[1], known[2]

    def _state(self, claim: ResourceClaim) -> Hashable:
        allocation = self._allocation(claim)
        if allocation is None:
            return self._ask(claim)[1]
        return (claim.key, id(allocation), len(self._users.get(claim.key, ())))

    def _allocation(self, claim: ResourceClaim) -> JSON | None:
        """What the claim has: from this session, from a write in flight, or from the API."""
        made = self._made.get(claim.key) or self._around.assumed_allocations.get(claim.key)
        stated = (claim.status or {}).get("allocation")
        return made or (stated if isinstance(stated, dict) else None)

    def _is_movable(self, claim: ResourceClaim, uid: str) -> bool:
        """Whether the task alone uses the claim's allocation, left by a bind that failed: it may be made anew."""
        if claim.key in self._made or claim.key in self._around.assumed_allocations:
            return False
        return [user.get("uid") for user in claim.users] == [uid]

    def _is_full(self, claim: ResourceClaim, task: Task) -> bool:
        users = {str(user.get("uid")) for user in claim.users} | self._users.get(claim.key, set())
        return len(users) >= MAX_CLAIM_USERS and task.uid not in users

    def _reachable(self, allocation: JSON) -> Mask:
        selector = allocation.get("nodeSelector")
        if not selector:
            return np.ones(len(self._table), dtype=bool)
        return self._table.labels.in_any_term(_read(selector))


class DeviceSupply:
    """The cluster's devices during a session: what each node reaches, and what is allocated."""

    def __init__(self, table: NodeTable, around: ClusterObjects) -> None:
        self._table, self._around = table, around
        self.inventory = Inventory(around.resource_slices.values(), around.read_slices)
        self._usage = DeviceUsage()
        for claim in around.resource_claims.values():
            allocation = around.assumed_allocations.get(claim.key) or (claim.status or {}).get("allocation")
            if isinstance(allocation, dict):
                self._usage.add(allocation)
        self._pools: dict[int, tuple[DevicePool, ...]] = {}
        self._selected: dict[bytes, Mask] = {}
        self._masks: dict[bytes, tuple[Mask, set[int]]] = {}  # what fits, and the rows to be looked at again

    def fitting(self, key: bytes, asks: Sequence[ClaimAsk], *, is_kept: bool = True) -> Mask:
        """The nodes where the claims can be allocated together."""
        known = self._masks.get(key) if is_kept else None
        if known is None:
            mask = np.fromiter((self._is_fit(row, asks) for row in range(len(self._table))), bool, len(self._table))
            if is_kept:
                self._masks[key] = (mask, set())
            return mask
        mask, stale = known
        for row in stale:
            mask[row] = self._is_fit(row, asks)
        stale.clear()
        return mask.copy()

    def fitting_without(self, freed: Sequence[JSON], asks: Sequence[ClaimAsk]) -> Mask:
        """The same as if these allocations were released."""
        for allocation in freed:
            self._usage.remove(allocation)
        try:
            return self.fitting(b"", asks, is_kept=False)
        finally:
            for allocation in freed:
                self._usage.add(allocation)

    def allocated(
        self, row: int, asks: Sequence[ClaimAsk], freed: Sequence[JSON] = ()
    ) -> list[list[ChosenDevice]] | None:
        """The devices of each claim on a node."""
        for allocation in freed:
            self._usage.remove(allocation)
        try:
            return allocate(asks, self._market(row))
        except CannotAllocate:
            return None
        finally:
            for allocation in freed:
                self._usage.add(allocation)

    def take(self, allocation: JSON, row: int) -> None:
        self._usage.add(allocation)
        self._outdate(row)

    def release(self, allocation: JSON, row: int) -> None:
        self._usage.remove(allocation)
        self._outdate(row)

    def _outdate(self, row: int) -> None:
        if self.inventory.has_shared or row < 0:
            self._masks.clear()
        for _, stale in self._masks.values():
            stale.add(row)

    def _is_fit(self, row: int, asks: Sequence[ClaimAsk]) -> bool:
        try:
            return allocate(asks, self._market(row)) is not None
        except CannotAllocate:
            return False

    def _market(self, row: int) -> DeviceMarket:
        def reaches(selector: JSON) -> bool:
            return bool(self._selection(selector)[row])

        pools = self._pools.get(row)
        if pools is None:
            pools = self._pools[row] = self.inventory.pools(self._table.nodes[row].name, reaches)
        name = self._table.nodes[row].name
        return DeviceMarket(name, pools, self._usage, self._around.device_classes, reaches)

    def _selection(self, selector: JSON) -> Mask:
        key = msgspec.json.encode(selector, order="deterministic")
        found = self._selected.get(key)
        if found is None:
            found = self._selected[key] = self._table.labels.in_any_term(_read(selector))
        return found


def _refusal(said: str) -> Refusal:
    return Refusal(NAME, f"plugin {NAME} pre-predicates failed {said}")


def _named(pod: Pod) -> list[tuple[str | None, str]]:
    """The claims a pod uses, with the name of the entry; None for one that is still to be made from its template."""
    made = {status.name: status for status in pod.status.resource_claim_statuses}
    found: list[tuple[str | None, str]] = []
    for entry in pod.spec.resource_claims:
        if entry.resource_claim_name:
            found.append((entry.resource_claim_name, entry.name))
        elif entry.name not in made:
            found.append((None, entry.name))
        elif made[entry.name].resource_claim_name:
            found.append((made[entry.name].resource_claim_name, entry.name))
    return found


def _read(selector: JSON) -> NodeSelector:
    """A selector that cannot be read chooses no node."""
    try:
        return msgspec.convert(selector, NodeSelector)
    except msgspec.ValidationError:
        return NodeSelector()
