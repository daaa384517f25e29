"""The informer set: components of one process that read a kind share its watch."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

from tests.unit.machinery.scripted_transport import ScriptedTransport, Stream, a_list, a_map, elapse
from volcano.api.core import ConfigMap
from volcano.api.errors import Forbidden
from volcano.api.meta import Key
from volcano.machinery.client import Client
from volcano.machinery.clock import VirtualClock, run_virtually
from volcano.machinery.informer_set import InformerSet

MAPS = "/api/v1/configmaps"


class Bench:
    def __init__(self) -> None:
        self.transport, self.stream = ScriptedTransport(), Stream()
        self.transport.answers("GET", MAPS, a_list(a_map("a")))
        self.transport.answers("WATCH", MAPS, self.stream)
        self.set = InformerSet(Client(self.transport), VirtualClock())

    def run(self, story: Callable[[asyncio.TaskGroup], Awaitable[None]]) -> None:
        async def main() -> None:
            await in_a_group(story)

        run_virtually(main())


async def in_a_group(story: Callable[[asyncio.TaskGroup], Awaitable[None]]) -> None:
    """The story; what it started in the group ends with it."""
    began = asyncio.all_tasks()
    async with asyncio.TaskGroup() as group:
        await story(group)
        for task in asyncio.all_tasks() - began:
            task.cancel()


def test_two_components_that_read_a_kind_cost_the_server_one_list_and_one_watch():
    bench = Bench()

    async def story(group: asyncio.TaskGroup) -> None:
        one, other = bench.set.follow(group, ConfigMap), bench.set.follow(group, ConfigMap)
        await one.synced()
        await other.synced()
        bench.stream.send("ADDED", a_map("b", 11))
        await elapse(1)

    bench.run(story)

    assert len(bench.transport.sent("GET", MAPS)) == 1
    assert len(bench.transport.sent("WATCH", MAPS)) == 1
    assert bench.set.mirror.get(ConfigMap, Key("ns", "b")) is not None


def test_everybody_who_asked_is_told_that_a_kind_may_not_be_read(caplog: pytest.LogCaptureFixture):
    bench, told = Bench(), []
    bench.transport.answers("GET", MAPS, Forbidden("no"))

    async def story(group: asyncio.TaskGroup) -> None:
        bench.set.follow(group, ConfigMap)
        for name in ("one", "other"):
            bench.set.follow(group, ConfigMap, lambda _message, error, name=name: told.append((name, type(error))))
        await elapse(0.01)

    with caplog.at_level(logging.WARNING):
        bench.run(story)

    assert told == [("one", Forbidden), ("other", Forbidden)]
    assert not caplog.records


def test_an_error_that_nobody_listens_for_is_logged(caplog: pytest.LogCaptureFixture):
    bench = Bench()
    bench.transport.answers("GET", MAPS, Forbidden("no"))

    async def story(group: asyncio.TaskGroup) -> None:
        bench.set.follow(group, ConfigMap)
        await elapse(0.01)

    with caplog.at_level(logging.WARNING):
        bench.run(story)

    assert "configmaps" in caplog.text


def test_a_kind_whose_informer_has_ended_is_followed_anew():
    bench = Bench()

    async def story(group: asyncio.TaskGroup) -> None:
        await bench.set.follow(group, ConfigMap).synced()

    async def twice() -> None:
        await in_a_group(story)
        await in_a_group(story)

    run_virtually(twice())

    assert len(bench.transport.sent("GET", MAPS)) == 2
