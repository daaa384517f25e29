"""Random sequences of what happens to pods with claims: submit, end, delete, lose a node, and every fault on the way.

A real API server in memory, scheduler and claim controllers as processes that are killed between any two writes, on
virtual time. After each sequence the faults end, the system settles, and all pods are deleted.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Callable, Iterable
from typing import Any, Final

from tests.system.device_books import DeviceBooks, Json, is_finished
from volcano.api.core import DeviceClass, Node, Pod, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from volcano.api.errors import NotFound
from volcano.api.meta import Key, Resource
from volcano.api.scheduling import PodGroup, Queue
from volcano.api.scheme import resource_type
from volcano.app.settings import SCHEDULER_CONFIGMAP
from volcano.app.system import MASTERS
from volcano.embedded.apiserver.server import ApiServer
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.embedded.cluster.owners import OwnerGarbageController
from volcano.embedded.cluster.pod_garbage import PodGarbageController
from volcano.embedded.cluster.resource_claims import ResourceClaimController
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock
from volcano.machinery.ids import SeededIds
from volcano.machinery.runner import Runner
from volcano.machinery.transport import InProcess, User
from volcano.testing.faults import processes
from volcano.testing.faults.chance import chance_of
from volcano.testing.faults.machines import MachineLoop, SimulatedMachine, wait_seconds
from volcano.testing.faults.network import FaultyNetwork
from volcano.testing.faults.plan import AFTER, BEFORE, Fault
from volcano.testing.faults.processes import Process
from volcano.testing.faults.trace import Trace
from volcano.testing.faults.users import Users

NODES: Final = ("n0", "n1", "n2")
REPAIR_SECONDS: Final = 60.0
"""Within this time after the last fault everything is right again."""
LOOK_SECONDS: Final = 2.0
LONGEST_FAULT_SECONDS: Final = 2.0
FAULTS: Final = (*BEFORE, "409", *AFTER, "slow", "crash-before", "crash-after")
TARGETS: Final = ("write", "write", "resourceclaims", "resourceclaims", "bindings", "status", "pods")
CONFIGURATION: Final = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - {name: priority}
  - {name: gang}
  - {name: predicates}
  - {name: nodeorder}
"""
WHOLE, PARTS, SHARED = "whole.example.com", "parts.example.com", "shared.example.com"


def claim_controllers(client: Client, clock: Clock) -> Runner:
    controllers = [OwnerGarbageController(), PodGarbageController(), ResourceClaimController()]
    return Runner(client, clock, controllers, component="kube-controller-manager", workers=3)


class DeviceSequences:
    """Sequences on one API server, one after the other."""

    def __init__(self, seed: int) -> None:
        self._seed, self._chance = seed, chance_of("devices", seed)
        self.trace, self.books = Trace(), DeviceBooks()
        self._gangs = 0
        self._faults = 0
        self._lost: set[str] = set()
        self.number = 0

    def run(self, sequences: int) -> list[str]:
        """What did not hold."""
        gc.collect()
        gc.freeze()
        with asyncio.Runner(loop_factory=MachineLoop) as runner:
            return runner.run(self._live(sequences))

    async def _live(self, sequences: int) -> list[str]:
        machine, store = SimulatedMachine("apiserver"), MemoryStore()
        server = ApiServer(store, clock=machine.clock, ids=SeededIds(self._seed), admission=None)
        await machine.start(server.start())
        store.subscribe(self.books.committed)
        self._client = Client(InProcess(server.handle, User("system:user", MASTERS)), agent="user")
        self._network = FaultyNetwork(server.handle, self.trace, self._crash)
        await Users(self._client).configure(SCHEDULER_CONFIGMAP, CONFIGURATION)
        await self._furnish()
        self._processes = {
            name: Process(name, make, self._network, self._seed)
            for name, make in (("scheduler", processes.scheduler), ("claims", claim_controllers))
        }
        for process in self._processes.values():
            process.start()
        await wait_seconds(3.0)
        violations: list[str] = []
        for self.number in range(sequences):
            await self._sequence()
            violations = [f"seed {self._seed}, sequence {self.number}: {what}" for what in self.books.violations]
            violations += [f"{p.name} ended by {e!r}" for p in self._processes.values() for e in p.failures]
            if violations:
                break
            self.trace.lines.clear()
        for process in self._processes.values():
            await process.end()
        for late in self._network.in_flight:
            late.cancel()
        await server.close()
        return violations

    def _crash(self, machine: SimulatedMachine) -> None:
        process = self._processes[machine.name]
        asyncio.get_running_loop().call_soon(lambda: process.crash(restart_after=self._chance.choice((0.0, 0.5, 3.0))))

    # -- the cluster -------------------------------------------------------------------------------------------------
    async def _furnish(self) -> None:
        await self._create(Queue, "default", {"weight": 1})
        await self._client.patch(
            resource_type(Queue), Key("", "default"), {"status": {"state": "Open"}}, subresource="status"
        )
        for driver in (WHOLE, PARTS, SHARED):
            selectors = [{"cel": {"expression": f'device.driver == "{driver}"'}}]
            await self._create(DeviceClass, driver, {"selectors": selectors})
        for kind, asked in ASKED.items():
            await self._create(ResourceClaimTemplate, kind, {"spec": asked})
        units = {"units": {"value": "10", "requestPolicy": {"default": "1", "validRange": {"min": "1"}}}}
        link = {"name": "link", "allowMultipleAllocations": True, "capacity": units}
        await self._create(ResourceSlice, "net", _slice(SHARED, "net", allNodes=True, devices=[link]))
        for name in NODES:
            await self._add_node(name)

    async def _add_node(self, name: str) -> None:
        has = {"cpu": "32", "memory": "64Gi", "pods": "50"}
        await self._create(Node, name, {})
        status = {"allocatable": has, "capacity": has, "conditions": [{"type": "Ready", "status": "True"}]}
        await self._client.patch(resource_type(Node), Key("", name), {"status": status}, subresource="status")
        cards = [{"name": f"card{number}"} for number in range(2)]
        await self._create(ResourceSlice, f"{name}-whole", _slice(WHOLE, name, nodeName=name, devices=cards))
        counters = [{"name": "chip", "counters": {"slots": {"value": "4"}}}]
        parts = [_part(f"{size}-{number}", size) for size in (1, 2, 4) for number in range(4 // size)]
        pool = f"{name}-chip"
        await self._create(
            ResourceSlice, f"{name}-chip", _slice(PARTS, pool, 2, nodeName=name, sharedCounters=counters)
        )
        await self._create(ResourceSlice, f"{name}-parts", _slice(PARTS, pool, 2, nodeName=name, devices=parts))

    async def _create(self, kind: type[Resource], name: str, spec: Json, **metadata: Any) -> None:
        row = resource_type(kind)
        place = {"namespace": "default"} if row.namespaced else {}
        await self._client.create(row, {"metadata": {"name": name, **place, **metadata}, "spec": spec})

    # -- a sequence --------------------------------------------------------------------------------------------------
    async def _sequence(self) -> None:
        chance = self._chance
        acts = (self._submit, self._submit, self._submit, self._end_pod, self._delete_pod, self._delete_gang,
                self._fault, self._fault, self._fault, self._kill, self._lose_node)  # fmt: skip
        for _ in range(chance.randint(4, 14)):
            await chance.choice(acts)()
            await wait_seconds(chance.choice((0.0, 0.01, 0.05, 0.3, 1.0, 3.0)))
        self._network.disarm_all()
        for process in self._processes.values():
            process.start_soon()
        for name in sorted(self._lost):
            self._lost.discard(name)
            await self._add_node(name)
        await wait_seconds(LONGEST_FAULT_SECONDS)
        self.books.violations += await self._left_of(self.books.at_rest)
        for pod in list(self.books.pods):
            await self._delete(Pod, pod)
        left = await self._left_of(self.books.results)
        self.books.violations += [f"after all pods are gone: {each} is allocated" for each in left]
        for kind in (PodGroup, ResourceClaim):
            for found in (await self._client.list(kind, "default")).items:
                await self._delete(kind, found.name)
        left = await self._left_of(lambda: self.books.claims)
        self.books.violations += [f"claim {name} cannot be deleted" for name in left]

    async def _left_of(self, wrong: Callable[[], Iterable[Any]]) -> list[Any]:
        """What is still wrong when there was time to repair it; nothing as soon as nothing is at two looks in a row."""
        was_right, end = False, asyncio.get_running_loop().time() + REPAIR_SECONDS
        while True:
            await wait_seconds(LOOK_SECONDS)
            left = list(wrong())
            if (was_right and not left) or asyncio.get_running_loop().time() > end:
                return left
            was_right = not left

    async def _submit(self) -> None:
        """A gang with a claim each from a template, or with one that all share."""
        chance = self._chance
        self._gangs += 1
        name, size, kind = f"gang{self._gangs}", chance.randint(1, 4), chance.choice(tuple(ASKED))
        source = {"resourceClaimTemplateName": kind}
        if chance.random() < 0.25:
            source = {"resourceClaimName": name}
            await self._create(ResourceClaim, name, ASKED[kind])
        entries = [{"name": "device", **source}]
        if chance.random() < 0.2:
            entries.append({"name": "more", "resourceClaimTemplateName": chance.choice(tuple(ASKED))})
        await self._create(PodGroup, name, {"minMember": size, "queue": "default"})
        container = {"name": "main", "image": "any", "resources": {"requests": {"cpu": "1"}}}
        for number in range(size):
            spec = {"schedulerName": "volcano", "containers": [container], "resourceClaims": entries}
            meta = {"annotations": {"scheduling.k8s.io/group-name": name}, "labels": {"size": str(size)}}
            await self._create(Pod, f"{name}-{number}", spec, **meta)

    async def _end_pod(self) -> None:
        bound = [name for name, pod in self.books.pods.items() if pod["spec"].get("nodeName") and not is_finished(pod)]
        if bound:
            body = {"status": {"phase": self._chance.choice(("Succeeded", "Failed"))}}
            key = Key("default", self._chance.choice(bound))
            await self._client.patch(resource_type(Pod), key, body, subresource="status")

    async def _delete_pod(self) -> None:
        if self.books.pods:
            await self._delete(Pod, self._chance.choice(list(self.books.pods)))

    async def _delete_gang(self) -> None:
        if self.books.pods:
            gang = self._chance.choice(list(self.books.pods)).rpartition("-")[0]
            for name in [each for each in self.books.pods if each.startswith(f"{gang}-")]:
                await self._delete(Pod, name)
            await self._delete(PodGroup, gang)

    async def _lose_node(self) -> None:
        """The node, its slices and its pods are gone; it comes back, at the latest when the sequence ends."""
        name = self._chance.choice(NODES)
        if name in self._lost:
            self._lost.discard(name)
            await self._add_node(name)
            return
        self._lost.add(name)
        await self._delete(Node, name)
        for part in ("whole", "chip", "parts"):
            await self._delete(ResourceSlice, f"{name}-{part}")
        for pod in [each for each, body in self.books.pods.items() if body["spec"].get("nodeName") == name]:
            await self._delete(Pod, pod)

    async def _fault(self) -> None:
        chance = self._chance
        self._faults += 1
        machine = chance.choice(("scheduler", "scheduler", "scheduler", "claims"))
        kind, target = chance.choice(FAULTS), chance.choice(TARGETS)
        count, seconds = chance.choice((1, 1, 2, 5)), chance.choice((0.05, 1.0, LONGEST_FAULT_SECONDS))
        fault = Fault(self._faults, 0.0, machine, kind, "update" if kind == "409" else target, count, seconds)
        self.trace.add("FAULT", str(fault))
        self._network.arm(fault)

    async def _kill(self) -> None:
        name = self._chance.choice(("scheduler", "scheduler", "claims"))
        self._processes[name].crash(restart_after=self._chance.choice((0.0, 0.2, 2.0)))

    async def _delete(self, kind: type[Resource], name: str) -> None:
        row = resource_type(kind)
        with contextlib.suppress(NotFound):
            await self._client.delete(row, Key("default" if row.namespaced else "", name), {"gracePeriodSeconds": 0})


def _slice(driver: str, pool: str, slices: int = 1, **more: Any) -> Json:
    return {"driver": driver, "pool": {"name": pool, "generation": 1, "resourceSliceCount": slices}, **more}


def _part(name: str, slots: int) -> Json:
    return {
        "name": f"part{name}",
        "consumesCounters": [{"counterSet": "chip", "counters": {"slots": {"value": str(slots)}}}],
    }


def _asked(driver: str, count: int = 1, **more: Any) -> Json:
    exactly = {"deviceClassName": driver, "allocationMode": "ExactCount", "count": count, **more}
    return {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}


ASKED: Final[dict[str, Json]] = {
    "one": _asked(WHOLE),
    "two": _asked(WHOLE, 2),
    "part": _asked(PARTS),
    "parts": _asked(PARTS, 2),
    "share": _asked(SHARED, capacity={"requests": {"units": "3"}}),
}
