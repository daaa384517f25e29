"""What one pod was granted, and which of its containers sees what. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from volcano.api.kubelet import AgentContainer, AgentPod
from volcano.api.quantity import QuantityError, parse_quantity


class Ungranted(Exception):
    """A pod cannot have what it needs now; it is tried again. `reason` is the reason of the event."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class ContainerGrant(msgspec.Struct, frozen=True, omit_defaults=True):
    """The cards that a container sees, and the CPUs that are its own; without CPUs it runs on the shared ones."""

    cards: tuple[str, ...] = ()
    cpus: tuple[int, ...] = ()


class PodGrant(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of a whole pod, by container."""

    containers: dict[str, ContainerGrant] = {}
    claims: dict[str, str] = {}
    """Card → UID of the claim that it was allocated to. Pods that share the claim share the card."""
    watched: tuple[str, ...] = ()
    """Cards of claims with admin access: seen, but not held."""

    @property
    def cards(self) -> frozenset[str]:
        """The cards that no other pod may have."""
        seen = {card for each in self.containers.values() for card in each.cards}
        return frozenset(seen - set(self.watched))

    @property
    def cpus(self) -> frozenset[int]:
        return frozenset(cpu for each in self.containers.values() for cpu in each.cpus)

    def of(self, container: str) -> ContainerGrant:
        return self.containers.get(container, ContainerGrant())


def whole_amount(container: AgentContainer, resource: str) -> int:
    """How many a container asks for; what is no whole number is refused by the API server for extended resources."""
    stated = (container.resources.limits or {}).get(resource) or (container.resources.requests or {}).get(resource) or 0
    try:
        return max(0, parse_quantity(stated).value)
    except QuantityError:
        return 0


def needed(pod: AgentPod, resource: str) -> int:
    """How many a pod needs at most at once: its init containers run one after the other, before the others."""
    most, kept = 0, 0
    for container in pod.spec.init_containers:
        amount = whole_amount(container, resource)
        most = max(most, kept + amount)
        kept += amount if container.is_sidecar else 0
    return max(most, kept + sum(whole_amount(each, resource) for each in pod.spec.containers))


def divided(pod: AgentPod, resource: str, cards: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The pod's cards by container; an init container uses those of the containers that run after it."""
    found, start = {}, 0
    for container in pod.all_containers:
        amount = whole_amount(container, resource)
        if not amount:
            continue
        found[container.name] = tuple(cards[start : start + amount])
        if container.is_sidecar or container in pod.spec.containers:
            start += amount
    return found


def merged_grants(*parts: Mapping[str, ContainerGrant]) -> dict[str, ContainerGrant]:
    """What several sources grant to the same containers."""
    found: dict[str, ContainerGrant] = {}
    for part in parts:
        for name, grant in part.items():
            known = found.get(name, ContainerGrant())
            cards = tuple(dict.fromkeys((*known.cards, *grant.cards)))
            found[name] = ContainerGrant(cards, known.cpus + grant.cpus)
    return found
