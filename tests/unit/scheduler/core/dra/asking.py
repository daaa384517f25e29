"""Ask our allocator about a generated cluster."""

from __future__ import annotations

from typing import Any

import msgspec

from volcano.api.core import DeviceClass, ResourceSlice
from volcano.scheduler.core.dra.asked import UnreadableClaim, read_claim
from volcano.scheduler.core.dra.device_search import CannotAllocate, DeviceMarket, allocate
from volcano.scheduler.core.dra.device_usage import DeviceUsage
from volcano.scheduler.core.dra.pools import Inventory

Chosen = list[list[tuple[str, str, str, str]]]


def answered(question: dict[str, Any]) -> tuple[Chosen | None, str]:
    """Request, driver, pool and device of each claim; None with the error's text when there is no allocation."""
    node = question["node"]["metadata"]

    def reaches(selector: dict[str, Any]) -> bool:
        return any(
            all(node["labels"].get(e["key"]) in e["values"] for e in term["matchExpressions"])
            for term in selector["nodeSelectorTerms"]
        )

    usage = DeviceUsage()
    for allocation in question["allocated"]:
        usage.add(allocation)
    classes = {each["metadata"]["name"]: msgspec.convert(each, DeviceClass) for each in question["classes"]}
    inventory = Inventory(msgspec.convert(each, ResourceSlice) for each in question["slices"])
    market = DeviceMarket(node["name"], inventory.pools(node["name"], reaches), usage, classes, reaches)
    try:
        found = allocate([read_claim(claim["spec"]) for claim in question["claims"]], market)
    except (CannotAllocate, UnreadableClaim) as error:
        return None, str(error)
    if found is None:
        return None, ""
    return [[(each.ask.full_name, *each.device.id) for each in claim] for claim in found], ""
