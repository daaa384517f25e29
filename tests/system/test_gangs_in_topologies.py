"""Gangs in hypernodes, room made for whole gangs, and shared cards: the service on the embedded API server."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.system.test_scheduler_service import NODES, PODS, World, story
from volcano.api import core, scheduling, topology
from volcano.api.meta import Key
from volcano.api.scheduling import WHY_ANNOTATION
from volcano.api.scheme import resource_type
from volcano.scheduler.service.settings import SchedulerSettings

HYPERNODES = resource_type(topology.HyperNode)
CLASSES = resource_type(core.PriorityClass)
CONF = """
actions: "enqueue, allocate, gangpreempt, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins:
  - name: predicates
  - name: nodeorder
  - name: network-topology-aware
  - {name: deviceshare, arguments: {deviceshare.VGPUEnable: true}}
"""
HARD = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}


def configured(folder: Path) -> SchedulerSettings:
    path = folder / "volcano-scheduler.conf"
    path.write_text(CONF)
    return SchedulerSettings(scheduler_conf=str(path))


async def rack(world: World, name: str, *nodes: str, cpu: str = "2") -> None:
    for node in nodes:
        await world.node(node, cpu)
    members = [{"type": "Node", "selector": {"exactMatch": {"name": node}}} for node in nodes]
    await world.client.create(HYPERNODES, {"metadata": {"name": name}, "spec": {"tier": 1, "members": members}})


async def bound_of(world: World, gang: str) -> list[str]:
    return sorted(node for pod, node in (await world.bound()).items() if pod.startswith(f"{gang}-"))


def test_a_gang_is_placed_in_one_rack_and_one_that_fits_into_none_waits_for_a_larger_one(tmp_path: Path) -> None:
    @story(configured(tmp_path))
    async def _(world: World) -> None:
        await rack(world, "r1", "a1", "a2")
        await rack(world, "r2", "b1", "b2")
        await world.gang("small", 3, group=HARD)
        await world.until(lambda: _has(world, "small", 3))
        await world.gang("large", 5, group=HARD)
        await world.until(lambda: _says(world, "large", "tier 1: 2 hypernodes"))

        await rack(world, "r3", "c1", "c2", "c3")
        await world.until(lambda: _has(world, "large", 5))

        assert len({node[0] for node in await bound_of(world, "small")}) == 1
        assert {node[0] for node in await bound_of(world, "large")} == {"c"}


async def _has(world: World, gang: str, count: int) -> bool:
    return len(await bound_of(world, gang)) == count


async def _says(world: World, group: str, words: str) -> bool:
    found = await world.client.get(scheduling.PodGroup, Key("default", group))
    return words in found.annotations.get(WHY_ANNOTATION, "")


def test_as_many_leave_as_a_gang_needs_and_nobody_more_while_they_are_leaving(tmp_path: Path) -> None:
    @story(configured(tmp_path))
    async def _(world: World) -> None:
        await rack(world, "r1", "a1", "a2")
        await rack(world, "r2", "b1", "b2")
        await world.client.create(CLASSES, {"metadata": {"name": "high"}, "value": 100})
        await world.group("low", 2)
        for number in range(8):
            await world.pod(f"low-t-{number}", "low")
        await world.until(lambda: _has(world, "low", 8))
        await world.run_pods()

        await world.gang("high", 3, group={**HARD, "priorityClassName": "high"})
        await world.until(lambda: _leaving(world, 3))
        await world.clock.sleep(timedelta(seconds=20))
        leaving = await _leavers(world)
        for pod in leaving:
            await world.client.delete(PODS, pod.key, {"gracePeriodSeconds": 0})
        await world.until(lambda: _has(world, "high", 3))

        assert len(leaving) == 3
        assert len(await world.events("Evict")) >= 3
        assert len({node[0] for node in await bound_of(world, "high")}) == 1
        assert len(await bound_of(world, "low")) == 5


async def _leavers(world: World) -> list[core.Pod]:
    return [pod for pod in (await world.client.list(core.Pod)).items if pod.is_deleting]


async def _leaving(world: World, count: int) -> bool:
    return len(await _leavers(world)) == count


def test_a_pod_that_shares_a_card_is_told_which_and_the_next_one_takes_that_into_account(tmp_path: Path) -> None:
    @story(configured(tmp_path))
    async def _(world: World) -> None:
        await world.node("gpu", "8")
        amounts = {"volcano.sh/vgpu-number": "10", "volcano.sh/vgpu-memory": "8000", "volcano.sh/vgpu-cores": "100"}
        register = {"volcano.sh/node-vgpu-register": "card-1,10,8000,NVIDIA-A10,true,hami-core:"}
        await world.client.patch(NODES, Key("", "gpu"), {"metadata": {"annotations": register}})
        status = {"status": {"allocatable": amounts, "capacity": amounts}}
        await world.client.patch(NODES, Key("", "gpu"), status, subresource="status")
        for name in ("p", "q"):
            await world.group(name, 1)
            await world.pod(f"{name}-t-0", name, containers=[_container(5000)])
        await world.until(lambda: _one_is_bound(world))
        await world.clock.sleep(timedelta(seconds=5))

        bound = await world.bound()

        assert len(bound) == 1
        pod = await world.get_pod(next(iter(bound)))
        assert pod.annotations["volcano.sh/vgpu-ids-new"] == "card-1,NVIDIA-A10,5000,0:"


async def _one_is_bound(world: World) -> bool:
    return bool(await world.bound())


def _container(memory: int) -> dict[str, Any]:
    limits = {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": str(memory)}
    return {"name": "c", "image": "i", "resources": {"limits": limits, "requests": {"cpu": "1", **limits}}}
