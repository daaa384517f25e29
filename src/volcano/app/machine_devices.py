"""Which accelerators of this machine an agent hands out: the flags, and the lines printed at start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import click
import msgspec

from volcano.api.quantity import parse_quantity
from volcano.embedded.agent.devices.cards import ACCELERATOR_RESOURCES
from volcano.embedded.agent.devices.detection import FoundCards, find_cards
from volcano.embedded.agent.devices.inventory import ALL_BY_CLAIMS, CardInventory

DEVICES_ANNOTATION: Final = "agent.volcano.sh/devices"
"""Of a node: which of its accelerators are real."""
ALL: Final = "all"


class MachineDevices(msgspec.Struct, frozen=True):
    """The cards of this machine, and what its user should know about them."""

    inventory: CardInventory | None = None
    notes: tuple[str, ...] = ()
    annotation: str = ""

    def amounts(self, node: str) -> dict[str, str]:
        return self.inventory.amounts(node) if self.inventory is not None else {}


def parse_claim_devices(text: str) -> int:
    """How many cards of each kind are handed out by claims."""
    if text == ALL:
        return ALL_BY_CLAIMS
    if not text.isdecimal():
        raise click.BadParameter(f"{text!r} is neither a number nor {ALL}", param_hint="--claim-devices")
    return int(text)


def machine_devices(
    nodes: Sequence[str], stated: Mapping[str, str], *, is_wanted: bool, by_claims: int
) -> MachineDevices:
    """`stated` are the resources of --node-resources: with cards a limit of them, without cards a pretence."""
    found = find_cards() if is_wanted else FoundCards()
    real = {card.resource for card in found.cards}
    wanted = {name: amount for name, amount in stated.items() if name in ACCELERATOR_RESOURCES}
    pretended = {name: amount for name, amount in wanted.items() if name not in real and parse_quantity(amount)}
    notes = [*found.warnings, *(pretence(name, amount) for name, amount in sorted(pretended.items()))]
    text = "; ".join([*described(found), *notes]) or ("none found" if is_wanted else "not looked for (--no-devices)")
    inventory = None
    if found.vendors or found.unknown:
        limits = {name: parse_quantity(amount).value for name, amount in wanted.items() if name in real}
        inventory = CardInventory(found, nodes, by_claims=by_claims, limits=limits)
    return MachineDevices(inventory, tuple(notes), text)


def pretence(resource: str, amount: str) -> str:
    return (
        f"{resource}={amount} is only what --node-resources states: no such device was found on this machine, "
        "so pods that ask for it are counted and get none"
    )


def described(found: FoundCards) -> list[str]:
    """The cards by kind: `nvidia.com/gpu: 4 x NVIDIA A100`."""
    counted = Counter((card.resource, card.model or "unknown model") for card in found.cards)
    return [f"{resource}: {count} x {model}" for (resource, model), count in sorted(counted.items())]
