# ruff: noqa: ASYNC110, ASYNC230

from __future__ import annotations

import asyncio
import os

from tests.system.agent.kit import PODS, a_pod
from volcano.api.kubelet import AgentPod
from volcano.api.meta import Key
from volcano.machinery.world import Change

COUNT = 200


def descriptors(process: int) -> int:
    return len(os.listdir(f"/proc/{process}/fd"))


async def test_many_short_pods_leave_nothing_behind(machine):
    await machine.create(a_pod("first", "true"))
    await machine.finished("first")
    supervisor = machine.runtime._supervisor.pid
    before = descriptors(supervisor), descriptors(os.getpid())
    left, all_done = {f"pod-{number}" for number in range(COUNT)}, asyncio.Event()

    def changed(change: Change[AgentPod]) -> None:
        if change.object.is_finished:
            left.discard(change.object.name)
        if not left:
            all_done.set()

    machine.agent.mirror.listen(AgentPod, changed)
    for number in range(COUNT):
        await machine.create(a_pod(f"pod-{number}", "true"))
    async with asyncio.timeout(90):
        await all_done.wait()

    found = await machine.client.list_json(PODS)
    assert {pod["status"]["phase"] for pod in found["items"]} == {"Succeeded"}
    for pod in found["items"]:
        await machine.client.delete(PODS, Key("default", pod["metadata"]["name"]))
    async with asyncio.timeout(60):
        while machine.agent.pods or machine.runtime._tasks:
            await asyncio.sleep(0.05)
    assert descriptors(supervisor) <= before[0] and descriptors(os.getpid()) <= before[1] + 2
    children = f"/proc/{supervisor}/task/{supervisor}/children"
    with open(children) as file:
        assert file.read() == ""
    settings = machine.runtime._settings
    assert list(settings.pods.iterdir()) == [] and list(settings.logs.iterdir()) == []
    runs = machine.runtime._runs
    assert not runs.records and not runs._ended and not runs._stopping
