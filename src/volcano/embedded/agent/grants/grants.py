"""Decides what each pod gets of an agent's cards and CPUs, and records it; never the same one twice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from volcano.api.kubelet import AgentContainer, AgentPod
from volcano.embedded.agent.devices.cards import MachineCard, variables_of
from volcano.embedded.agent.devices.inventory import CardInventory
from volcano.embedded.agent.grants.ledger import GrantLedger
from volcano.embedded.agent.grants.pod_claims import FAILED, ClaimedDevice, claimed_devices, seen_by
from volcano.embedded.agent.grants.pod_grant import (
    ContainerGrant,
    PodGrant,
    Ungranted,
    divided,
    merged_grants,
    needed,
)
from volcano.machinery.client import Client

REFUSED: Final = "UnexpectedAdmissionError"


class Grants:
    """The grants of one agent. Without an inventory no cards are managed, and pods see those of the machine."""

    def __init__(
        self,
        client: Client,
        pods: Path,
        inventory: CardInventory | None,
        choose_cpus: Callable[[AgentPod, frozenset[int]], Mapping[str, ContainerGrant]] = lambda _pod, _held: {},
    ) -> None:
        self._client, self._inventory, self._choose_cpus = client, inventory, choose_cpus
        self.ledger = GrantLedger(pods)
        self.listeners: list[Callable[[], None]] = []
        """Called after pods got CPUs of their own, or gave them back."""

    async def assign(self, pod: AgentPod) -> None:
        """Grant what the pod needs, once; Ungranted while it cannot have that."""
        if self.ledger.get(pod.uid) is not None:
            return
        claimed = await claimed_devices(self._client, pod) if self._inventory and pod.spec.resource_claims else []
        # From here to the record nothing waits: two pods cannot be granted the same.
        grant = self._granted(pod, claimed)
        self.ledger.take(pod.uid, grant)
        self._tell(grant)

    def release(self, uid: str) -> None:
        grant = self.ledger.get(uid)
        self.ledger.release(uid)
        self._tell(grant)

    def _tell(self, grant: PodGrant | None) -> None:
        if grant is not None and grant.cpus:
            for listener in self.listeners:
                listener()

    def grant_of(self, pod: AgentPod, container: str) -> ContainerGrant:
        grant = self.ledger.get(pod.uid)
        return grant.of(container) if grant is not None else ContainerGrant()

    # -- what a container sees ----------------------------------------------------------------------------------
    def variables(self, pod: AgentPod, container: AgentContainer) -> dict[str, str]:
        """Variables of the vendors that have cards here; a privileged container sees all, as its device files do."""
        if self._inventory is None:
            return {}
        cards = self._cards(self.grant_of(pod, container.name))
        if container.security_context.privileged and not cards:
            return {}
        found: dict[str, str] = {}
        for vendor in sorted(self._inventory.vendors):
            found |= variables_of(vendor, [card for card in cards if card.vendor == vendor])
        return found

    def device_files(self, pod: AgentPod, container: AgentContainer, present: Sequence[str]) -> tuple[str, ...]:
        """Of the present files of cards those that the container may open."""
        if self._inventory is None or container.security_context.privileged:
            return tuple(present)
        own = {file for card in self._cards(self.grant_of(pod, container.name)) for file in card.files}
        return tuple(file for file in present if file in own or not self._inventory.owns(file))

    def _cards(self, grant: ContainerGrant) -> list[MachineCard]:
        if self._inventory is None:
            return []
        placed = [self._inventory.get(id) for id in grant.cards]
        return sorted((each.card for each in placed if each is not None), key=lambda card: (card.vendor, card.index))

    # -- what a pod gets ----------------------------------------------------------------------------------------
    def _granted(self, pod: AgentPod, claimed: list[ClaimedDevice]) -> PodGrant:
        by_container = self._of_resources(pod)
        for device in claimed:
            self._check(pod, device)
        seen = seen_by(pod, claimed)
        by_claims = {name: ContainerGrant(tuple(each.device for each in devices)) for name, devices in seen.items()}
        return PodGrant(
            containers=merged_grants(by_container, by_claims, self._choose_cpus(pod, self.ledger.held_cpus)),
            claims={each.device: each.claim_uid for each in claimed if not each.is_admin},
            watched=tuple(each.device for each in claimed if each.is_admin),
        )

    def _of_resources(self, pod: AgentPod) -> Mapping[str, ContainerGrant]:
        if self._inventory is None:
            return {}
        parts = []
        for resource in sorted(self._inventory.resources):
            count = needed(pod, resource)
            if count:
                cards = self._free(pod.spec.node_name, resource, count)
                given = divided(pod, resource, cards)
                parts.append({name: ContainerGrant(ids) for name, ids in given.items()})
        return merged_grants(*parts)

    def _free(self, node: str, resource: str, count: int) -> list[str]:
        assert self._inventory is not None, "only called with an inventory"
        held = self.ledger.held_cards
        own = [each.card for each in self._inventory.of(node) if each.card.resource == resource and not each.by_claims]
        free = [card for card in own if card.id not in held]
        if len(free) < count:
            having = f"{len(free)} of {len(own)} are free on this node"
            raise Ungranted(REFUSED, f"Allocate failed: {count} of {resource} are needed, and {having}")
        return [card.id for card in neighbours(free, count)]

    def _check(self, pod: AgentPod, device: ClaimedDevice) -> None:
        """A device of a claim must be here, handed out by claims, and not be with a pod of another claim."""
        assert self._inventory is not None, "only called with an inventory"
        placed = self._inventory.get(device.device)
        if placed is None or not placed.is_there or placed.node != pod.spec.node_name or device.pool != placed.node:
            raise Ungranted(FAILED, f"device {device.device} of pool {device.pool} is not on this node any more")
        others = {uid: claim for uid, claim in self.ledger.holders_of(device.device).items() if uid != pod.uid}
        if device.is_admin:
            return
        if not placed.by_claims:
            raise Ungranted(FAILED, f"device {device.device} is handed out as {placed.card.resource}, not by claims")
        if any(claim != device.claim_uid for claim in others.values()):
            raise Ungranted(FAILED, f"device {device.device} is still with a pod of another claim")


def neighbours(free: Sequence[MachineCard], count: int) -> list[MachineCard]:
    """Cards on one NUMA node where one has enough, and there on the one that is left with the fewest."""
    groups: dict[int, list[MachineCard]] = {}
    for card in free:
        groups.setdefault(card.numa, []).append(card)
    fitting = [group for group in groups.values() if len(group) >= count]
    return (min(fitting, key=len) if fitting else list(free))[:count]
