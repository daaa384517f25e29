"""An allocation as the API has it: results, configuration of classes and claims, and the nodes that can use it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Final

from volcano.api.core import DeviceClass
from volcano.api.meta import JSON
from volcano.api.quantity import Quantity
from volcano.scheduler.core.dra.asked import ClaimAsk
from volcano.scheduler.core.dra.device_search import ChosenDevice

_SHARES: Final = uuid.UUID("5f8b9c1e-6f0a-5d0c-9b55-2a1f6f4f2c11")
"""Namespace of the identifiers of shares, which are made from the claim and the device."""


def allocation_result(
    claim: ClaimAsk, uid: str, chosen: Sequence[ChosenDevice], classes: Mapping[str, DeviceClass], node: str
) -> JSON:
    """The value of a ResourceClaim's status.allocation."""
    results = [_result(each, uid, number) for number, each in enumerate(chosen)]
    devices: JSON = {"results": results}
    if config := [*_class_config(claim, chosen, classes), *_claim_config(claim, chosen)]:
        devices["config"] = config
    selector = _node_selector(chosen, node)
    return {"devices": devices} if selector is None else {"devices": devices, "nodeSelector": selector}


def _result(each: ChosenDevice, uid: str, number: int) -> JSON:
    device = each.device.id
    result: JSON = {
        "request": each.ask.full_name, "driver": device.driver, "pool": device.pool, "device": device.device,
    }  # fmt: skip
    if each.ask.is_admin:
        result["adminAccess"] = True
    if each.ask.tolerations:
        result["tolerations"] = list(each.ask.tolerations)
    if each.consumed is not None:
        result["shareID"] = str(uuid.uuid5(_SHARES, f"{uid}/{number}/{'/'.join(device)}"))
        result["consumedCapacity"] = {name: str(Quantity(amount)) for name, amount in each.consumed.items()}
    return result


def _class_config(claim: ClaimAsk, chosen: Sequence[ChosenDevice], classes: Mapping[str, DeviceClass]) -> list[JSON]:
    asks = {each.ask.request: each.ask for each in chosen}
    requests: dict[str, list[str]] = {}
    for alternatives in claim.requests:
        ask = asks.get(alternatives[0].request)
        if ask is not None:
            requests.setdefault(ask.class_name, []).append(ask.full_name)
    return [
        {"source": "FromClass", "requests": names, **stated}
        for name, names in requests.items()
        for stated in (classes[name].spec or {}).get("config") or ()
    ]


def _claim_config(claim: ClaimAsk, chosen: Sequence[ChosenDevice]) -> list[JSON]:
    names = {name for each in chosen for name in (each.ask.request, each.ask.full_name)}
    return [
        {"source": "FromClaim", **stated}
        for stated in claim.config
        if not stated.get("requests") or names & set(stated["requests"])
    ]


def _node_selector(chosen: Sequence[ChosenDevice], node: str) -> JSON | None:
    fields: list[JSON] = []
    expressions: list[JSON] = []
    for each in chosen:
        reach = each.device.reach
        if reach.node_name or each.device.is_bound_to_node:
            here = {"key": "metadata.name", "operator": "In", "values": [node]}
            return {"nodeSelectorTerms": [{"matchFields": [here]}]}
        for term in ((reach.selector or {}).get("nodeSelectorTerms") or ())[:1]:
            fields += [stated for stated in term.get("matchFields") or () if stated not in fields]
            expressions += [stated for stated in term.get("matchExpressions") or () if stated not in expressions]
    term = {"matchFields": fields} if fields else {}
    if expressions:
        term["matchExpressions"] = expressions
    return {"nodeSelectorTerms": [term]} if term else None
