"""Where claims fit: nodes that look alike share a search, and every answer is the one that a search there would give."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tests.unit.scheduler.core.dra.device_clusters import DeviceCluster
from volcano.scheduler.core.assemble import snapshot_from
from volcano.scheduler.core.dra.asked import UnreadableClaim, read_claim
from volcano.scheduler.core.dra.device_search import CannotAllocate, allocate
from volcano.scheduler.core.dra.device_supply import ClaimSearch, DeviceSupply
from volcano.scheduler.core.dra.results import allocation_result
from volcano.scheduler.core.snapshot import Snapshot

NODES = 6


def a_supply(slices: list[dict[str, Any]], classes: list[dict[str, Any]], nodes: int = NODES) -> DeviceSupply:
    names = [f"n{number}" for number in range(nodes)]
    snapshot: Snapshot = snapshot_from(
        {
            "nodes": [{"metadata": {"name": name, "labels": {"zone": "ab"[i % 2]}}} for i, name in enumerate(names)],
            "resourceSlices": slices,
            "deviceClasses": classes,
        }
    )
    return DeviceSupply(snapshot.table, snapshot.cluster)


def on_nodes(seed: int) -> list[dict[str, Any]]:
    """The slices of a generated cluster, those of its node on every node; every device with an attribute of its own."""
    found = []
    for published in DeviceCluster(seed).slices:
        spec = published["spec"]
        copies = NODES if spec.get("nodeName") == "worker" else 1
        for copy in range(copies):
            devices = [
                {**each, "attributes": {**each.get("attributes", {}), "uuid": {"string": f"{copy}-{each['name']}"}}}
                for each in spec.get("devices", ())
            ]
            devices = [{**each, **({"nodeName": "n1"} if each.get("nodeName") else {})} for each in devices]
            changed = {**spec, "devices": devices} if devices else dict(spec)
            name = published["metadata"]["name"]
            if copies > 1:
                changed |= {"nodeName": f"n{copy}", "pool": {**spec["pool"], "name": f"{spec['pool']['name']}-{copy}"}}
                name = f"{name}-{copy}"
            found.append({"metadata": {"name": name}, "spec": changed})
    return found


def searched(supply: DeviceSupply, row: int, asks: list[Any]) -> Any:
    """What a search on the node itself says, with all pools in reach."""
    market = supply.market(row, supply.pools(row, with_shared=True))
    try:
        found = allocate(asks, market)
    except CannotAllocate:
        return None
    return None if found is None else [[each.device.id for each in claim] for claim in found]


def told(search: ClaimSearch, row: int) -> Any:
    found = search.places(row)
    assert bool(search.fitting()[row]) == (found is not None)
    return None if found is None else [[each.device.id for each in claim] for claim in found]


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_answers_are_those_of_a_search_on_each_node_while_devices_are_taken_and_released(first: int):
    for seed in range(first, first + 20):
        chance = random.Random(seed)
        question = DeviceCluster(seed).question()
        supply = a_supply(on_nodes(seed), question["classes"])
        try:
            asks = [read_claim(claim["spec"]) for claim in question["claims"]]
        except UnreadableClaim:
            continue
        search, held = supply.search(seed, asks), []
        for _ in range(8):
            for row in range(NODES):
                assert told(search, row) == searched(supply, row, asks), f"cluster {seed}, node {row}"
            row = chance.randrange(NODES)
            found = search.places(row)
            if held and (found is None or chance.random() < 0.4):
                supply.release(held.pop(chance.randrange(len(held))))
            elif found is not None:
                for number, (ask, chosen) in enumerate(zip(asks, found, strict=True)):
                    made = allocation_result(ask, f"u{number}", chosen, supply.around.device_classes, f"n{row}")
                    supply.take(made)
                    held.append(made)


def a_slice(node: str, devices: int, **more: Any) -> dict[str, Any]:
    listed = [{"name": f"d{n}", "attributes": {"uuid": {"string": f"{node}-{n}"}}} for n in range(devices)]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "d.example.com", "pool": pool, "nodeName": node, "devices": listed, **more}
    return {"metadata": {"name": f"s-{node}"}, "spec": spec}


CLASSES = [{"metadata": {"name": "any"}, "spec": {}}]


def asking(count: int, **more: Any) -> list[Any]:
    exactly = {"deviceClassName": "any", "allocationMode": "ExactCount", "count": count}
    return [read_claim({"devices": {"requests": [{"name": "r", "exactly": exactly}], **more}})]


def test_it_counts_how_often_claims_fit_on_a_node():
    supply = a_supply([a_slice("n0", 5), a_slice("n1", 1), a_slice("n2", 9)], CLASSES)
    search = supply.search(0, asking(2))
    rows = np.array([supply.table.index[name] for name in ("n0", "n1", "n2", "n3")])

    assert search.counts(rows, 10).tolist() == [2, 0, 4, 0]
    assert search.counts(rows, 3).tolist() == [2, 0, 3, 0]
    assert not supply.usage.taken


def test_nodes_with_the_same_devices_are_searched_once(monkeypatch: pytest.MonkeyPatch):
    calls: list[str] = []

    def counted(claims: Any, market: Any) -> Any:
        calls.append(market.node)
        return allocate(claims, market)

    monkeypatch.setattr("volcano.scheduler.core.dra.device_supply.allocate", counted)
    supply = a_supply([a_slice(f"n{number}", 4) for number in range(NODES)], CLASSES)

    assert supply.search(0, asking(2)).fitting().all()
    assert supply.search(1, asking(2, constraints=[{"distinctAttribute": "d.example.com/uuid"}])).fitting().all()
    assert len(calls) == 2


def test_pools_of_other_nodes_with_counters_do_not_make_a_placement_matter_elsewhere():
    counters = {"sharedCounters": [{"name": "card", "counters": {"slots": {"value": "2"}}}]}
    slices = []
    for number in range(2):
        partition = a_slice(f"n{number}", 3)
        for device in partition["spec"]["devices"]:
            device["consumesCounters"] = [{"counterSet": "card", "counters": {"slots": {"value": "1"}}}]
        partition["spec"]["pool"]["resourceSliceCount"] = 2
        card = a_slice(f"n{number}", 0, **counters)
        card["metadata"]["name"] = f"card-{number}"
        card["spec"]["pool"]["resourceSliceCount"] = 2
        slices += [partition, card]
    search = a_supply(slices, CLASSES, 2).search(0, asking(1))

    assert not search.uses_shared
    assert search.counts(np.array([0, 1]), 5).tolist() == [2, 2]
