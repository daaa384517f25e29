"""The scheduler's service against the embedded API server, on virtual time."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from volcano.api import core, scheduling, topology
from volcano.api.jobs.simulation import SimulatedPod
from volcano.api.meta import Key
from volcano.api.quantity import parse_quantity
from volcano.api.scheme import resource_type
from volcano.app.job_expansion import expand_job
from volcano.embedded.apiserver.server import ApiServer
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.machinery.client import Client
from volcano.machinery.clock import VirtualClock, run_virtually
from volcano.machinery.ids import SeededIds
from volcano.machinery.transport import InProcess, Request, Response, User
from volcano.scheduler.service.replay import replay_scenario
from volcano.scheduler.service.service import SchedulerService
from volcano.scheduler.service.settings import SchedulerSettings

PODS, NODES = resource_type(core.Pod), resource_type(core.Node)
GROUPS, QUEUES = resource_type(scheduling.PodGroup), resource_type(scheduling.Queue)
CONFIGMAPS = resource_type(core.ConfigMap)
PREEMPTING = """
actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""
PLACE = "volcano-system/conf:volcano-scheduler.conf"


class World:
    """An API server, the scheduler on it, and what a story needs to tell."""

    def __init__(self, server: ApiServer, clock: VirtualClock, settings: SchedulerSettings) -> None:
        self.server, self.clock = server, clock
        self.client = Client(InProcess(server.handle, User("admin", ("system:masters",))))
        self.failing: Callable[[Request], bool] = lambda _request: False
        self.requests: list[Request] = []
        self.service = SchedulerService(
            Client(InProcess(self._handle, User("scheduler", ("system:masters",)))),
            clock,
            settings,
            expand_job=expand_job,
        )

    async def _handle(self, request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            self.requests.append(request)
        if self.failing(request):
            return Response(500, {}, b'{"kind":"Status","code":500,"message":"no"}')
        return await self.server.handle(request)

    async def node(self, name: str, cpu: str = "4", **spec: Any) -> None:
        amounts = {"cpu": cpu, "memory": "8Gi", "pods": "20"}
        status = {"allocatable": amounts, "capacity": amounts}
        await self.client.create(NODES, {"metadata": {"name": name}, "spec": spec, "status": status})
        await self.client.patch(NODES, Key("", name), {"status": status}, subresource="status")

    async def open(self, *queues: str) -> None:
        for queue in queues:
            with contextlib.suppress(Exception):
                await self.client.create(QUEUES, {"metadata": {"name": queue}, "spec": {"weight": 1}})
            await self.client.patch(QUEUES, Key("", queue), {"status": {"state": "Open"}}, subresource="status")

    async def group(self, name: str, least: int, **spec: Any) -> None:
        body = {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"minMember": least, "queue": "default", **spec},
        }
        await self.client.create(GROUPS, body)

    async def pod(self, name: str, group: str = "", cpu: str = "1", **spec: Any) -> None:
        annotations = {"scheduling.k8s.io/group-name": group} if group else {}
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
        spec = {"schedulerName": "volcano", "containers": [container], **spec}
        await self.client.create(
            PODS, {"metadata": {"name": name, "namespace": "default", "annotations": annotations}, "spec": spec}
        )

    async def gang(self, name: str, size: int, **more: Any) -> None:
        await self.group(name, size, **more.pop("group", {}))
        for number in range(size):
            await self.pod(f"{name}-t-{number}", name, **more)

    async def run_pods(self) -> None:
        """Whoever has a node runs."""
        for pod in (await self.client.list(core.Pod)).items:
            if pod.spec.node_name and pod.status.phase == "Pending":
                await self.client.patch(PODS, pod.key, {"status": {"phase": "Running"}}, subresource="status")

    async def get_pod(self, name: str) -> core.Pod:
        return await self.client.get(core.Pod, Key("default", name))

    async def get_group(self, name: str) -> scheduling.PodGroup:
        return await self.client.get(scheduling.PodGroup, Key("default", name))

    async def bound(self) -> dict[str, str]:
        pods = (await self.client.list(core.Pod)).items
        return {pod.name: pod.spec.node_name for pod in pods if pod.spec.node_name}

    async def events(self, reason: str) -> list[core.Event]:
        return [event for event in (await self.client.list(core.Event)).items if event.reason == reason]

    async def until(self, holds: Callable[[], Awaitable[Any]], within: timedelta = timedelta(seconds=30)) -> None:
        end = self.clock.now() + within
        while not await holds():
            assert self.clock.now() < end, f"not within {within}: {self.service.state()}"
            await self.clock.sleep(timedelta(milliseconds=10))


@contextlib.asynccontextmanager
async def running(settings: SchedulerSettings | None = None, before: Any = None) -> AsyncIterator[World]:
    clock = VirtualClock()
    server = ApiServer(MemoryStore(), clock=clock, ids=SeededIds(0))
    await server.start()
    world = World(server, clock, settings or SchedulerSettings())
    if before is not None:
        await before(world)
    running = asyncio.ensure_future(world.service.run())
    ready = asyncio.ensure_future(world.service.ready())
    try:
        await asyncio.wait({running, ready}, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
        await world.open("default", "root")
        yield world
        if running.done():
            running.result()
    finally:
        running.cancel()
        ready.cancel()
        await asyncio.gather(running, ready, return_exceptions=True)
        await server.close()


def story(
    settings: SchedulerSettings | None = None, before: Any = None
) -> Callable[[Callable[[World], Awaitable[None]]], None]:
    """Runs a story at once, on virtual time."""

    def tell(told: Callable[[World], Awaitable[None]]) -> None:
        async def main() -> None:
            async with running(settings, before) as world:
                await told(world)

        run_virtually(main())

    return tell


def test_a_gang_is_bound_and_its_group_says_so():
    @story()
    async def _(world: World) -> None:
        await world.node("n1")
        await world.gang("g", 3, group={"minResources": {"cpu": "3"}})

        await world.until(lambda: _counts(world, 3))
        await world.until(lambda: _phase(world, "g", "Running"))

        group = await world.get_group("g")
        assert [condition.type for condition in group.status.conditions] == ["Scheduled"]
        queue = await world.client.get(scheduling.Queue, Key("", "default"))
        assert queue.status.allocated == {"cpu": "3", "memory": "0", "pods": "3"}
        assert len(await world.events("Scheduled")) >= 3


async def _counts(world: World, number: int) -> bool:
    return len(await world.bound()) == number


async def _phase(world: World, group: str, phase: str) -> bool:
    return (await world.get_group(group)).status.phase == phase


def test_the_queues_everything_hangs_on_are_made():
    @story()
    async def _(world: World) -> None:
        names = {queue.name for queue in (await world.client.list(scheduling.Queue)).items}

        assert {"default", "root"} <= names


def test_a_gang_that_does_not_fit_waits_and_says_why():
    @story()
    async def _(world: World) -> None:
        await world.node("n1", cpu="2")
        await world.gang("g", 3)

        await world.until(lambda: _has_why(world, "g"))
        await world.clock.sleep(timedelta(seconds=1))

        assert await world.bound() == {}
        group = await world.get_group("g")
        why = json.loads(group.annotations["scheduling.volcano.sh/why"])
        assert why["stage"] in ("gang", "fit", "quota")
        pod = await world.get_pod("g-t-0")
        (condition,) = [c for c in pod.status.conditions if c.type == "PodScheduled"]
        assert (condition.status, bool(condition.message)) == ("False", True)
        assert await world.events("FailedScheduling")


async def _has_why(world: World, group: str) -> bool:
    return "scheduling.volcano.sh/why" in (await world.get_group(group)).annotations


def test_room_that_appears_is_used_within_milliseconds():
    @story()
    async def _(world: World) -> None:
        await world.node("n1", cpu="1")
        await world.gang("g", 2)
        await world.until(lambda: _has_why(world, "g"))
        await world.clock.sleep(timedelta(seconds=5))

        await world.node("n2", cpu="4")
        began = world.clock.now()
        await world.until(lambda: _counts(world, 2))

        assert world.clock.now() - began < timedelta(milliseconds=100)
        await world.until(lambda: _no_why(world, "g"))


async def _no_why(world: World, group: str) -> bool:
    return not await _has_why(world, group)


def test_a_waiting_gang_is_not_written_again_while_nothing_changes():
    @story()
    async def _(world: World) -> None:
        await world.node("n1", cpu="1")
        await world.gang("g", 2)
        await world.clock.sleep(timedelta(seconds=30))
        world.requests.clear()

        await world.clock.sleep(timedelta(seconds=60))

        written = [request.path for request in world.requests if "events" not in request.path]
        assert written == []


def test_nothing_is_decided_while_there_is_nothing_to_decide():
    @story()
    async def _(world: World) -> None:
        await world.node("n1")
        await world.gang("g", 2)
        await world.until(lambda: _counts(world, 2))
        await world.run_pods()
        await world.clock.sleep(timedelta(seconds=5))
        before = world.service.turns

        await world.clock.sleep(timedelta(minutes=5))

        assert world.service.turns == before


def test_a_bind_that_fails_is_tried_again_and_stops_no_other():
    @story()
    async def _(world: World) -> None:
        world.failing = lambda request: request.path.endswith("/p-t-0/binding")
        await world.node("n1")
        await world.group("p", 1)
        await world.pod("p-t-0", "p")
        await world.pod("p-t-1", "p")

        await world.until(lambda: _counts(world, 1))
        await world.clock.sleep(timedelta(seconds=3))
        pod = await world.get_pod("p-t-0")
        world.failing = lambda _request: False
        await world.until(lambda: _counts(world, 2))

        assert any(c.reason == "SchedulerError" for c in pod.status.conditions)


def test_room_of_a_failed_bind_is_given_to_others():
    @story()
    async def _(world: World) -> None:
        world.failing = lambda request: request.path.endswith("/a/binding")
        await world.node("n1", cpu="1")
        await world.gang("g", 0)
        await world.pod("a", "g")
        await world.clock.sleep(timedelta(seconds=2))

        await world.client.delete(PODS, Key("default", "a"))
        await world.pod("b", "g")

        await world.until(lambda: _counts(world, 1))
        assert await world.bound() == {"b": "n1"}


def test_a_more_important_gang_evicts_and_then_takes_the_room(tmp_path: Path):
    conf = tmp_path / "volcano-scheduler.conf"
    conf.write_text(PREEMPTING)

    @story(SchedulerSettings(scheduler_conf=str(conf)))
    async def _(world: World) -> None:
        classes = resource_type(core.PriorityClass)
        for name, value in (("high", 1000), ("low", 1)):
            await world.client.create(classes, {"metadata": {"name": name}, "value": value})
        await world.node("n1", cpu="2")
        await world.group("low", 1, priorityClassName="low")
        for number in range(2):
            await world.pod(f"low-t-{number}", "low")
        await world.until(lambda: _counts(world, 2))
        await world.run_pods()
        await world.clock.sleep(timedelta(seconds=1))

        await world.gang("high", 1, group={"priorityClassName": "high"})
        await world.until(lambda: _is_leaving(world))
        await _finish_deletions(world)
        await world.until(lambda: _is_bound(world, "high-t-0"))

        assert [event.involved_object.kind for event in await world.events("Evict")]
        assert len([name for name in await world.bound() if name.startswith("low")]) == 1


async def _is_leaving(world: World) -> bool:
    pods = (await world.client.list(core.Pod)).items
    return any(pod.is_deleting for pod in pods) or len(pods) < 3


async def _finish_deletions(world: World) -> None:
    for pod in (await world.client.list(core.Pod)).items:
        if pod.is_deleting:
            await world.client.delete(PODS, pod.key, {"gracePeriodSeconds": 0})


async def _is_bound(world: World, name: str) -> bool:
    return name in await world.bound()


def test_plain_pods_are_placed_only_when_they_are_adopted():
    @story(SchedulerSettings(adopt_plain_pods=True))
    async def _(world: World) -> None:
        await world.node("n1", cpu="2")
        await world.pod("plain", schedulerName="default-scheduler")
        await world.pod("large", cpu="64", schedulerName="default-scheduler")

        await world.until(lambda: _counts(world, 1))
        await world.clock.sleep(timedelta(seconds=1))

        assert await world.bound() == {"plain": "n1"}
        assert (await world.client.list(scheduling.PodGroup)).items == []
        assert any(c.type == "PodScheduled" for c in (await world.get_pod("large")).status.conditions)

    @story()
    async def _(world: World) -> None:
        await world.node("n1", cpu="2")
        await world.pod("plain", schedulerName="default-scheduler")
        await world.clock.sleep(timedelta(seconds=3))

        assert await world.bound() == {}


def test_plain_pods_are_charged_to_no_queue_and_bounded_by_none():
    @story(SchedulerSettings(adopt_plain_pods=True))
    async def _(world: World) -> None:
        queue = await world.client.get(scheduling.Queue, Key("", "default"))
        await world.client.patch(resource_type(scheduling.Queue), queue.key, {"spec": {"capability": {"cpu": "1"}}})
        await world.node("n1", cpu="8")
        for number in range(3):
            await world.pod(f"plain-{number}", cpu="1", schedulerName="default-scheduler")
        await world.until(lambda: _counts(world, 3))
        await world.group("g", 1)
        await world.pod("task", "g", cpu="1")
        await world.until(lambda: _counts(world, 4))
        await world.clock.sleep(timedelta(seconds=2))

        held = (await world.client.get(scheduling.Queue, queue.key)).status.allocated or {}
        assert held.get("cpu") == "1"


def test_pods_of_every_scheduler_name_are_ours():
    @story(SchedulerSettings(scheduler_names=("volcano", "second")))
    async def _(world: World) -> None:
        await world.node("n1")
        await world.group("g", 0)
        for name in ("volcano", "second", "third"):
            await world.pod(name, "g", schedulerName=name)
        await world.clock.sleep(timedelta(seconds=3))

        assert set(await world.bound()) == {"volcano", "second"}


def test_a_changed_configmap_is_in_force_within_a_second_and_a_broken_one_never():
    async def before(world: World) -> None:
        with contextlib.suppress(Exception):
            await world.client.create(resource_type(core.Namespace), {"metadata": {"name": "volcano-system"}})
        await world.client.create(
            CONFIGMAPS,
            {
                "metadata": {"name": "conf", "namespace": "volcano-system"},
                "data": {"volcano-scheduler.conf": "actions: allocate\ntiers: []"},
            },
        )

    @story(SchedulerSettings(scheduler_configmap=PLACE), before)
    async def _(world: World) -> None:
        first = world.service.configuration.current.actions

        async def write(text: str) -> None:
            body = {"data": {"volcano-scheduler.conf": text}}
            await world.client.patch(CONFIGMAPS, Key("volcano-system", "conf"), body)
            await world.clock.sleep(timedelta(seconds=1))

        await write("actions: enqueue, allocate\ntiers: []")
        second = world.service.configuration.current.actions
        await write("actions: fly\ntiers: []")

        assert (first, second) == (("allocate",), ("enqueue", "allocate"))
        assert world.service.configuration.current.actions == second
        assert "failed to find Action fly" in world.service.configuration.problem


def test_a_changed_file_is_in_force_within_a_second(tmp_path: Path):
    conf = tmp_path / "volcano-scheduler.conf"
    conf.write_text("actions: allocate\ntiers: []")

    @story(SchedulerSettings(scheduler_conf=str(conf)))
    async def _(world: World) -> None:
        conf.write_text("actions: enqueue, allocate, backfill\ntiers: []")
        await world.clock.sleep(timedelta(seconds=1))

        assert world.service.configuration.current.actions == ("enqueue", "allocate", "backfill")


def test_simulate_tells_and_does_nothing():
    @story()
    async def _(world: World) -> None:
        await world.node("n1", cpu="2")
        await world.clock.sleep(timedelta(seconds=1))
        container = {"name": "c", "resources": {"requests": {"cpu": "2"}}}
        task = {"name": "t", "replicas": 2, "template": {"spec": {"containers": [container]}}}
        job = {"kind": "Job", "metadata": {"name": "j"}, "spec": {"minAvailable": 2, "tasks": [task]}}

        whole = await world.service.simulate(job)
        one = await world.service.simulate({"pods": [{"metadata": {"name": "p"}, "spec": {"containers": [container]}}]})

        assert (whole.placed, whole.asked) == (0, 2)
        assert next(iter(whole.jobs.values())).why
        assert one.pods == {"default/p": SimulatedPod(node="n1")}
        assert await world.bound() == {}
        with pytest.raises(ValueError, match="neither a Job"):
            await world.service.simulate({})


def test_every_recorded_cycle_replays_to_the_same_decisions(tmp_path: Path):
    @story(SchedulerSettings(record_dir=str(tmp_path), adopt_plain_pods=True))
    async def _(world: World) -> None:
        decided: dict[int, dict[str, str]] = {}
        turn = world.service.sender.send

        def watching(commitment: Any) -> None:
            decided[world.service.turns] = {bind.pod.name: bind.node for bind in commitment.binds}
            turn(commitment)

        world.service.sender.send = watching  # type: ignore[method-assign]
        for number in range(3):
            await world.node(f"n{number}", cpu="3")
        for number in range(4):
            await world.gang(f"g{number}", 2)
            await world.pod(f"plain-{number}", schedulerName="default-scheduler")
            await world.clock.sleep(timedelta(milliseconds=50))
            await world.run_pods()
        await world.clock.sleep(timedelta(seconds=2))

        assert sum(map(len, decided.values())) == 9
        for number, binds in decided.items():
            scenario = json.loads((tmp_path / f"cycle-{number:08}.json").read_text())
            again = replay_scenario(scenario)["binds"]
            assert {task.partition("/")[2]: node for task, node in again.items()} == binds, f"cycle {number}"


def test_a_cycle_that_fails_does_not_end_scheduling():
    @story()
    async def _(world: World) -> None:
        await world.node("n1")
        decide = world.service.decider.decide
        calls = []

        def failing(*arguments: Any) -> Any:
            calls.append(arguments)
            if len(calls) < 3:
                raise RuntimeError("a bug")
            return decide(*arguments)

        world.service.decider.decide = failing  # type: ignore[method-assign]
        await world.gang("g", 2)

        await world.until(lambda: _counts(world, 2))


def test_an_object_nobody_can_read_is_set_aside_and_the_rest_goes_on():
    @story()
    async def _(world: World) -> None:
        await world.node("n1")
        for name, parent in (("x", "y"), ("y", "x")):
            await world.client.create(QUEUES, {"metadata": {"name": name}, "spec": {"weight": 1, "parent": parent}})
        await world.gang("g", 2)

        await world.until(lambda: _counts(world, 2))

        assert {"Queue/x", "Queue/y"} <= set(world.service.state()["setAside"])


def test_a_hard_shard_keeps_others_nodes_free_and_says_what_it_uses():
    @story(SchedulerSettings(sharding_mode="hard", shard_name="mine"))
    async def _(world: World) -> None:
        shards = resource_type(topology.NodeShard)
        for name in ("n1", "n2"):
            await world.node(name)
        await world.client.create(shards, {"metadata": {"name": "mine"}, "spec": {"nodesDesired": ["n2"]}})
        await world.clock.sleep(timedelta(seconds=1))
        await world.gang("g", 2)

        await world.until(lambda: _counts(world, 2))
        await world.clock.sleep(timedelta(seconds=1))

        assert set((await world.bound()).values()) == {"n2"}
        shard = await world.client.get(topology.NodeShard, Key("", "mine"))
        assert (shard.status.nodes_in_use, shard.status.nodes_to_add) == (["n2"], [])


def test_a_claim_that_waits_gets_its_volume_before_its_pod_is_bound():
    @story()
    async def _(world: World) -> None:
        classes, claims = resource_type(core.StorageClass), resource_type(core.PersistentVolumeClaim)
        volumes = resource_type(core.PersistentVolume)
        await world.client.create(
            classes,
            {
                "metadata": {"name": "local"},
                "provisioner": "kubernetes.io/no-provisioner",
                "volumeBindingMode": "WaitForFirstConsumer",
            },
        )
        amount = {"requests": {"storage": "1Gi"}}
        spec = {"storageClassName": "local", "accessModes": ["ReadWriteOnce"]}
        await world.client.create(
            claims, {"metadata": {"name": "c", "namespace": "default"}, "spec": {**spec, "resources": amount}}
        )
        local = {**spec, "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}
        await world.client.create(volumes, {"metadata": {"name": "v"}, "spec": local})
        await world.client.patch(volumes, Key("", "v"), {"status": {"phase": "Available"}}, subresource="status")
        await world.node("n1")
        await world.group("g", 1)
        await world.pod("p", "g", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "c"}}])

        await world.until(lambda: _is_claimed(world))
        waiting = await world.bound()
        bound = {
            "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
            "spec": {"volumeName": "v"},
        }
        await world.client.patch(claims, Key("default", "c"), bound)
        await world.client.patch(claims, Key("default", "c"), {"status": {"phase": "Bound"}}, subresource="status")
        await world.until(lambda: _counts(world, 1))

        assert waiting == {}


async def _is_claimed(world: World) -> bool:
    volume = await world.client.get(core.PersistentVolume, Key("", "v"))
    return volume.spec.claim_ref is not None and volume.spec.claim_ref.name == "c"


def test_a_waiting_queue_gate_is_taken_away_when_the_queue_admits(tmp_path: Path):
    conf = tmp_path / "volcano-scheduler.conf"
    conf.write_text(
        """
actions: "enqueue, allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: capacity}]
"""
    )
    gate = "scheduling.volcano.sh/queue-allocation-gate"

    @story(SchedulerSettings(scheduler_conf=str(conf), admits_by_gate=True))
    async def _(world: World) -> None:
        await world.node("n1")
        await world.group("g", 1)
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
        metadata = {
            "name": "p",
            "namespace": "default",
            "annotations": {"scheduling.k8s.io/group-name": "g", gate: "true"},
        }
        spec = {"schedulerName": "volcano", "containers": [container], "schedulingGates": [{"name": gate}]}
        await world.client.create(PODS, {"metadata": metadata, "spec": spec})

        await world.until(lambda: _counts(world, 1))

        assert (await world.get_pod("p")).spec.scheduling_gates == []


@pytest.mark.parametrize("seed", range(4))
def test_whatever_writes_fail_everything_is_placed_in_the_end_and_no_node_is_overcommitted(seed: int):
    @story()
    async def _(world: World) -> None:
        chance = random.Random(seed)
        world.failing = lambda request: request.method in ("POST", "PATCH") and chance.random() < 0.3
        for number in range(3):
            await world.node(f"n{number}", cpu="4")
        for number in range(5):
            await world.gang(f"g{number}", 2, cpu=chance.choice(["500m", "1", "1500m"]))
            await world.clock.sleep(timedelta(milliseconds=chance.randrange(400)))
            await _no_node_is_overcommitted(world)
        await world.clock.sleep(timedelta(seconds=5))
        await world.client.delete(PODS, Key("default", "g0-t-0"), {"gracePeriodSeconds": 0})
        world.failing = lambda _request: False

        await world.until(lambda: _counts(world, 9), within=timedelta(minutes=2))
        await _no_node_is_overcommitted(world)
        await world.until(lambda: _all_running(world, [f"g{number}" for number in range(1, 5)]))
        held = world.service.decider.snapshot.table.idle
        assert (held >= 0).all()


async def _no_node_is_overcommitted(world: World) -> None:
    used: Counter[str] = Counter()
    for pod in (await world.client.list(core.Pod)).items:
        if pod.spec.node_name:
            asked = pod.spec.containers[0].resources.requests or {}
            used[pod.spec.node_name] += parse_quantity(asked["cpu"]).milli
    assert all(amount <= 4000 for amount in used.values()), used


async def _all_running(world: World, groups: list[str]) -> bool:
    return all([await _phase(world, group, "Running") for group in groups])
