"""Random clusters with devices and claims, the same for the same number: what the allocator is compared on."""

from __future__ import annotations

import random
from typing import Any

NODE = "worker"
DRIVERS = ("gpu.example.com", "nic.example.com")
MODELS = ("a100", "h100", "l4")
SELECTORS = (
    'device.attributes["gpu.example.com"].model == "a100"',
    'device.attributes["gpu.example.com"].index > 1',
    'device.driver == "gpu.example.com"',
    'has(device.attributes["gpu.example.com"].numa) && device.attributes["gpu.example.com"].numa == 0',
    'device.attributes["gpu.example.com"].version.compareTo(semver("2.0.0")) >= 0',
    'device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0',
    'device.attributes["other.example.com"].speed == 1',
    "has(device.attributes['other.example.com'].speed)",
    'device.driver in ["nic.example.com", "gpu.example.com"]',
    "device.allowMultipleAllocations == true",
)
POLICIES: tuple[dict[str, Any] | None, ...] = (
    None,
    {"default": "10Gi", "validValues": ["10Gi", "20Gi", "40Gi"]},
    {"default": "8Gi", "validRange": {"min": "8Gi", "max": "64Gi", "step": "8Gi"}},
    {"default": "1Gi", "validRange": {"min": "1Gi"}},
)


class DeviceCluster:
    """One generated question; `question` is what the oracle reads."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.slices: list[dict[str, Any]] = []
        self.devices: list[tuple[str, str, dict[str, Any]]] = []
        for driver in DRIVERS[: self.random.randint(1, 2)]:
            for number in range(self.random.randint(1, 2)):
                self._pool(driver, f"{driver.partition('.')[0]}-{number}")

    def question(self) -> dict[str, Any]:
        claims = [self._claim(number) for number in range(self.random.choice((1, 1, 1, 2, 3)))]
        return {
            "node": {"metadata": {"name": NODE, "labels": {"zone": "a"}}},
            "slices": self.slices,
            "classes": self._classes(),
            "claims": claims,
            "allocated": self._allocated(),
        }

    # -- devices -------------------------------------------------------------------------------------------------
    def _pool(self, driver: str, pool: str) -> None:
        chance = self.random
        slices = chance.choice((1, 1, 2))
        partitions = driver == DRIVERS[0] and chance.random() < 0.25
        count = slices + partitions
        stated = {"name": pool, "generation": 2, "resourceSliceCount": count + (chance.random() < 0.06)}
        reach = chance.choice(("node", "node", "node", "all", "selector", "elsewhere", "device"))
        if partitions:
            sets = [{"name": "card", "counters": {"slices": {"value": str(chance.randint(2, 7))}}}]
            self._slice(driver, pool, "counters", stated, {"allNodes": True}, sharedCounters=sets)
        number = 0
        for position in range(slices):
            devices = []
            for _ in range(chance.randint(1, 4)):
                devices.append(self._device(driver, number, partitions=partitions, reach=reach))
                number += 1
            self._slice(driver, pool, str(position), stated, self._reach(reach), devices=devices)
            self.devices += [(driver, pool, device) for device in devices]
        if chance.random() < 0.1:
            old = {**stated, "generation": 1}
            self._slice(driver, pool, "old", old, {"nodeName": NODE}, devices=[{"name": "gone"}])

    def _slice(
        self, driver: str, pool: str, name: str, stated: dict[str, Any], reach: dict[str, Any], **more: Any
    ) -> None:
        spec = {"driver": driver, "pool": stated, **reach, **more}
        self.slices.append({"metadata": {"name": f"{pool}-{name}"}, "spec": spec})

    def _reach(self, kind: str) -> dict[str, Any]:
        if kind == "selector":
            zone = self.random.choice(("a", "a", "b"))
            expression = {"key": "zone", "operator": "In", "values": [zone]}
            return {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
        if kind == "device":
            return {"perDeviceNodeSelection": True}
        return {"all": {"allNodes": True}, "elsewhere": {"nodeName": "other"}}.get(kind, {"nodeName": NODE})

    def _device(self, driver: str, number: int, *, partitions: bool, reach: str) -> dict[str, Any]:
        chance = self.random
        device: dict[str, Any] = {"name": f"device-{number}"}
        if reach == "device":
            device |= chance.choice(({"nodeName": NODE}, {"allNodes": True}, {"nodeName": "other"}))
        if driver == DRIVERS[0]:
            attributes: dict[str, Any] = {
                "model": {"string": chance.choice(MODELS)},
                "index": {"int": number},
                "version": {"version": chance.choice(("1.9.0", "2.0.0", "2.1.3"))},
            }
            if chance.random() < 0.8:
                attributes["numa"] = {"int": chance.randint(0, 1)}
            device["attributes"] = attributes
            shares = not partitions and chance.random() < 0.3
            capacity: dict[str, Any] = {"value": chance.choice(("40Gi", "80Gi"))}
            policy = chance.choice(POLICIES)
            if shares:
                device["allowMultipleAllocations"] = True
                if policy is not None:
                    capacity["requestPolicy"] = policy
            device["capacity"] = {"memory": capacity}
        else:
            device["attributes"] = {
                "gpu.example.com/numa": {"int": chance.randint(0, 1)},
                "fast": {"bool": chance.random() < 0.5},
            }
        if partitions:
            used = {"slices": {"value": str(chance.randint(1, 4))}}
            device["consumesCounters"] = [{"counterSet": "card", "counters": used}]
        if chance.random() < 0.15:
            effect = chance.choice(("NoSchedule", "NoExecute", "None"))
            device["taints"] = [{"key": "sick", "value": "yes", "effect": effect}]
        return device

    # -- classes, claims, what is in use -------------------------------------------------------------------------
    def _classes(self) -> list[dict[str, Any]]:
        gpu = {"selectors": [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}]}
        nic = {"selectors": [{"cel": {"expression": 'device.driver == "nic.example.com"'}}]}
        return [{"metadata": {"name": name}, "spec": spec} for name, spec in (("gpu", gpu), ("nic", nic), ("any", {}))]

    def _claim(self, number: int) -> dict[str, Any]:
        chance = self.random
        requests = [self._request(f"r{position}") for position in range(chance.choice((1, 1, 2, 3)))]
        devices: dict[str, Any] = {"requests": requests}
        if chance.random() < 0.25:
            names = [] if chance.random() < 0.6 else [requests[0]["name"]]
            devices["constraints"] = [{"requests": names, "matchAttribute": "gpu.example.com/numa"}]
        elif chance.random() < 0.15 and all(r.get("exactly", {}).get("count", 9) == 1 for r in requests):
            devices["constraints"] = [{"distinctAttribute": "gpu.example.com/numa"}]
        return {
            "metadata": {"name": f"c{number}", "namespace": "default", "uid": f"u{number}"},
            "spec": {"devices": devices},
        }

    def _request(self, name: str) -> dict[str, Any]:
        chance = self.random
        if chance.random() < 0.25:
            alternatives = [{"name": f"s{n}", **self._ask(may_be_admin=False)} for n in range(chance.randint(1, 3))]
            return {"name": name, "firstAvailable": alternatives}
        return {"name": name, "exactly": self._ask(may_be_admin=True)}

    def _ask(self, *, may_be_admin: bool) -> dict[str, Any]:
        chance = self.random
        ask: dict[str, Any] = {"deviceClassName": chance.choice(("gpu", "gpu", "gpu", "nic", "any"))}
        if chance.random() < 0.01:
            ask["deviceClassName"] = "missing"
        if chance.random() < 0.12:
            ask["allocationMode"] = "All"
        else:
            ask |= {"allocationMode": "ExactCount", "count": chance.choice((1, 1, 1, 2, 3))}
        if chance.random() < 0.3:
            expressions = chance.sample(SELECTORS, chance.choice((1, 1, 2)))
            ask["selectors"] = [{"cel": {"expression": text}} for text in expressions]
        if may_be_admin and chance.random() < 0.06:
            ask["adminAccess"] = True
        if chance.random() < 0.15:
            ask["tolerations"] = [
                chance.choice(({"operator": "Exists"}, {"key": "sick", "value": "yes"}, {"key": "old"}))
            ]
        if chance.random() < 0.2:
            ask["capacity"] = {"requests": {"memory": chance.choice(("5Gi", "16Gi", "30Gi", "50Gi", "100Gi"))}}
        return ask

    def _allocated(self) -> list[dict[str, Any]]:
        results = []
        for number, (driver, pool, device) in enumerate(self.devices):
            if self.random.random() > 0.15:
                continue
            result: dict[str, Any] = {"request": "r", "driver": driver, "pool": pool, "device": device["name"]}
            if device.get("allowMultipleAllocations"):
                share = f"00000000-0000-4000-8000-{number:012}"
                result |= {"shareID": share, "consumedCapacity": {"memory": self.random.choice(("10Gi", "30Gi"))}}
            results.append(result)
        return [{"devices": {"results": results}}] if results else []
