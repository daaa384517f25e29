"""The ResourceSlice of a node and the DeviceClasses of vendors, as the agent publishes them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from volcano.api.meta import JSON
from volcano.api.quantity import format_quantity
from volcano.embedded.agent.devices.cards import DRIVER, VENDORS, MachineCard

MAX_ATTRIBUTE_CHARACTERS: Final = 64
"""A string attribute of a device, as Kubernetes limits it."""


def slice_name(node: str) -> str:
    return f"{node}-{DRIVER}"


def device_class(vendor: str) -> JSON:
    """Selects every card of a vendor that an agent publishes."""
    expression = f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].vendor == "{vendor}"'
    return {
        "metadata": {"name": VENDORS[vendor].device_class},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }


def slice_body(node: str, node_uid: str, cards: Sequence[MachineCard], generation: int) -> JSON:
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": node_uid, "controller": True}
    return {
        "metadata": {"name": slice_name(node), "ownerReferences": [owner]},
        "spec": {
            "driver": DRIVER,
            "nodeName": node,
            "pool": {"name": node, "generation": generation, "resourceSliceCount": 1},
            "devices": [device(card) for card in cards],
        },
    }


def device(card: MachineCard) -> JSON:
    texts = {"vendor": card.vendor, "model": card.model, "uuid": card.uuid, "pciBusID": card.bus}
    attributes: JSON = {name: {"string": value[:MAX_ATTRIBUTE_CHARACTERS]} for name, value in texts.items() if value}
    attributes["index"] = {"int": card.index}
    if card.numa >= 0:
        attributes["numaNode"] = {"int": card.numa}
    capacity = {"memory": {"value": format_quantity(f"{card.memory_bytes // 2**20}Mi")}} if card.memory_bytes else {}
    return {"name": card.id, "attributes": attributes, **({"capacity": capacity} if capacity else {})}
