"""The runner: what wakes a controller, what happens to its plans, and when it decides again."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Hashable, Mapping
from datetime import timedelta
from typing import Any, ClassVar

import pytest

from tests.unit.machinery.scripted_transport import ScriptedTransport, Stream, a_list, a_map, elapse
from volcano.api.core import ConfigMap
from volcano.api.errors import Conflict, Forbidden, Invalid, TooManyRequests
from volcano.api.indexes import Indexes
from volcano.api.meta import Key, Resource
from volcano.api.scheme import resource_type
from volcano.machinery.client import Client
from volcano.machinery.clock import VirtualClock, run_virtually
from volcano.machinery.controller import Controller, PlanFailed, Wake, Waker, by, owner_key, self_key
from volcano.machinery.plan import NOTHING, Create, Later, Look, Patch, Plan, ref
from volcano.machinery.runner import Runner
from volcano.machinery.world import Change, World

MAPS = resource_type(ConfigMap)
ALL, NAMESPACED = "/api/v1/configmaps", "/api/v1/namespaces/ns/configmaps"
A = Key("ns", "a")
Decide = Callable[["Keeper", Key, World, tuple[Hashable, ...]], Plan]


class Keeper(Controller):
    """Does what a test says, and remembers when it was asked."""

    name: ClassVar = "keeper"
    indexes: ClassVar[Indexes] = {ConfigMap: {"first-letter": lambda found: [found.name[0]]}}

    def __init__(self, decide: Decide) -> None:
        self._decide = decide
        self.asked: list[tuple[float, str, tuple[Hashable, ...]]] = []
        self.failures: list[PlanFailed] = []

    @property
    def wakes_on(self) -> Mapping[type[Resource], Waker]:
        return {ConfigMap: self_key}

    def decide(self, key: Key, world: World, causes: tuple[Hashable, ...]) -> Plan:
        self.asked.append((asyncio.get_running_loop().time(), key.name, causes))
        return self._decide(self, key, world, causes)

    def on_failure(self, key: Key, world: World, failure: PlanFailed) -> Plan:
        self.failures.append(failure)
        return NOTHING

    def names(self) -> list[str]:
        return [name for _, name, _ in self.asked]


def nothing(_keeper: Keeper, _key: Key, _world: World, _causes: tuple[Hashable, ...]) -> Plan:
    return NOTHING


class Bench:
    def __init__(self, decide: Decide, *present: dict[str, Any], **options: Any) -> None:
        self.transport, self.stream, self.keeper = ScriptedTransport(), Stream(), Keeper(decide)
        self.transport.answers("GET", ALL, a_list(*present))
        self.transport.answers("WATCH", ALL, self.stream)
        self._options = options

    def run(self, story: Callable[[], Awaitable[None]]) -> None:
        async def main() -> None:
            self.runner = Runner(Client(self.transport), VirtualClock(), [self.keeper], **self._options)
            running = asyncio.ensure_future(self.runner.run())
            try:
                async with asyncio.timeout(24 * 3600):
                    await self.runner.synced()
                    await story()
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)

        run_virtually(main())


async def a_moment() -> None:
    await elapse(0.001)


# -- waking ------------------------------------------------------------------------------------------------------------------
def test_what_is_there_and_what_changes_is_decided_on():
    bench = Bench(nothing, a_map("a"), a_map("b"))

    async def story() -> None:
        await a_moment()
        bench.stream.send("MODIFIED", a_map("b", 11))
        bench.stream.send("DELETED", a_map("a", 12))
        await a_moment()

    bench.run(story)

    assert bench.keeper.names() == ["a", "b", "b", "a"]


def test_events_that_come_twice_or_late_do_not_wake_again():
    bench = Bench(nothing, a_map("a", 5))

    async def story() -> None:
        await a_moment()
        for version in (5, 11, 11, 7):
            bench.stream.send("MODIFIED", a_map("a", version))
            await a_moment()

    bench.run(story)

    assert bench.keeper.names() == ["a", "a"]


def test_a_controllers_indexes_are_declared_before_it_decides():
    found: list[str] = []

    def looking(_keeper: Keeper, _key: Key, world: World, _causes: tuple[Hashable, ...]) -> Plan:
        found.extend(each.name for each in world.where(ConfigMap, "first-letter", "a"))
        return NOTHING

    bench = Bench(looking, a_map("ab"), a_map("x"), workers={"keeper": 1})
    bench.run(a_moment)

    assert found == ["ab", "ab"]


# -- writing -------------------------------------------------------------------------------------------------------------------
def test_the_next_decision_sees_the_write_before_the_watch_brings_it():
    def deciding(_keeper: Keeper, key: Key, world: World, _causes: tuple[Hashable, ...]) -> Plan:
        known = world.get(ConfigMap, key)
        assert known is not None
        return (Patch(ref(known), {"data": {"done": "1"}}),) if not known.data else NOTHING

    bench = Bench(deciding, a_map("a"))
    bench.transport.answers("PATCH", f"{NAMESPACED}/a", a_map("a", 11, done="1"))

    async def story() -> None:
        await a_moment()
        bench.stream.send("MODIFIED", a_map("a", 11, done="1"))
        await a_moment()

    bench.run(story)

    assert len(bench.transport.sent("PATCH")) == 1 and bench.runner.writes == 1
    assert bench.keeper.names() == ["a", "a"], "once for the list and once for its own write"


def creating(_keeper: Keeper, key: Key, _world: World, _causes: tuple[Hashable, ...]) -> Plan:
    child = Create(MAPS, {"metadata": {"name": f"{key.name}-child", "namespace": "ns"}}, exists_ok=False)
    return (child,) if key == A else NOTHING


@pytest.mark.parametrize(
    ("error", "refused"),
    [
        (Invalid("no"), True),
        (Forbidden("no"), True),
        (Conflict("stale"), False),
        (TooManyRequests("wait"), False),
        (ConnectionError("no route"), False),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_plan_that_fails_is_decided_again_with_growing_back_off(error: Exception, refused: bool):
    bench = Bench(creating, a_map("a"))
    bench.transport.answers("POST", NAMESPACED, error)

    async def story() -> None:
        await elapse(60)

    bench.run(story)

    times = [time for time, _, _ in bench.keeper.asked]
    pauses = [after - before for before, after in itertools.pairwise(times)]
    assert len(pauses) >= 5 and all(shorter < longer for shorter, longer in itertools.pairwise(pauses))
    assert [failure.tries for failure in bench.keeper.failures][:3] == [1, 2, 3]
    first = bench.keeper.failures[0]
    assert (first.step, first.kind, first.object) == ("Create", "ConfigMap", "ns/a-child")
    assert first.refused is refused


def test_a_plan_that_succeeds_ends_the_back_off():
    bench = Bench(creating, a_map("a"))
    refused = [Conflict("stale")] * 3
    bench.transport.answers("POST", NAMESPACED, *refused, a_map("b", 11), *refused, a_map("b", 12))

    async def story() -> None:
        await elapse(1)
        bench.stream.send("MODIFIED", a_map("a", 20))
        await elapse(1)

    bench.run(story)

    assert [failure.tries for failure in bench.keeper.failures] == [1, 2, 3, 1, 2, 3]


def test_a_bug_in_one_decision_is_retried_and_does_not_stop_the_others(caplog: pytest.LogCaptureFixture):
    def deciding(keeper: Keeper, key: Key, _world: World, _causes: tuple[Hashable, ...]) -> Plan:
        if key.name == "a" and keeper.names().count("a") < 3:
            raise ZeroDivisionError
        return NOTHING

    bench = Bench(deciding, a_map("a"), a_map("b"), workers=1)

    async def story() -> None:
        await elapse(1)

    with caplog.at_level(logging.ERROR):
        bench.run(story)

    assert bench.keeper.names() == ["a", "b", "a", "a"]
    assert "keeper: deciding on ns/a" in caplog.text


def test_failures_are_warned_of_only_when_they_persist(caplog: pytest.LogCaptureFixture):
    bench = Bench(creating, a_map("a"))
    bench.transport.answers("POST", NAMESPACED, Forbidden("no"))

    async def story() -> None:
        await elapse(0.5)
        assert caplog.records == []
        await elapse(10)

    with caplog.at_level(logging.WARNING):
        bench.run(story)

    assert "keeper: ns/a: Create ConfigMap ns/a-child: no" in caplog.text


# -- deciding again ------------------------------------------------------------------------------------------------------------
def test_later_comes_with_its_cause_and_may_be_about_another_object():
    def deciding(keeper: Keeper, key: Key, _world: World, causes: tuple[Hashable, ...]) -> Plan:
        if len(keeper.asked) > 1:
            return NOTHING
        return (Later(timedelta(seconds=5), "mine"), Later(timedelta(seconds=9), "others", key=Key("ns", "x")))

    bench = Bench(deciding, a_map("a"))

    async def story() -> None:
        await elapse(60)

    bench.run(story)

    assert [(name, causes) for _, name, causes in bench.keeper.asked] == [
        ("a", ()),
        ("a", ("mine",)),
        ("x", ("others",)),
    ]
    assert [time for time, _, _ in bench.keeper.asked[1:]] == pytest.approx([5, 9], abs=0.01)


def test_what_may_wait_is_decided_when_nothing_else_waits():
    def deciding(keeper: Keeper, key: Key, _world: World, _causes: tuple[Hashable, ...]) -> Plan:
        idle = Later(timedelta(seconds=60), "idle", when_idle=True)
        return (idle,) if key.name == "a" and keeper.names().count("a") == 1 else NOTHING

    bench = Bench(deciding, a_map("a"), a_map("b"), a_map("c"), workers=1)
    bench.run(a_moment)

    assert bench.keeper.names() == ["a", "b", "c", "a"]


def test_what_a_look_found_is_the_cause_of_the_next_decision():
    def deciding(_keeper: Keeper, _key: Key, world: World, causes: tuple[Hashable, ...]) -> Plan:
        known = world.get(ConfigMap, A)
        assert known is not None
        return (Look(ref(known)),) if not causes else NOTHING

    bench = Bench(deciding, a_map("a"))
    bench.transport.answers("GET", f"{NAMESPACED}/a", a_map("a"))
    bench.run(a_moment)

    (found,) = bench.keeper.asked[1][2]
    assert found.present  # type: ignore[attr-defined]


# -- wakers -----------------------------------------------------------------------------------------------------------------------
def _read(body: dict[str, Any]) -> ConfigMap:
    from volcano.api.decode import decode_object

    return decode_object(ConfigMap, body)


def test_objects_wake_their_controlling_owner():
    owned = a_map("a")
    owned["metadata"]["ownerReferences"] = [
        {"kind": "Other", "name": "x"},
        {"kind": "Owner", "name": "o", "controller": True},
    ]
    change = Change(None, _read(owned))

    assert list(owner_key("Owner")(change)) == [Wake(Key("ns", "o"))]
    assert list(owner_key("Other")(change)) == [] and list(owner_key("Owner")(Change(None, _read(a_map("b"))))) == []


def test_a_change_wakes_what_the_old_and_the_new_state_concern():
    waker = by(lambda found: Key("", found.data["for"]) if "for" in found.data else None)
    old, new = _read(a_map("a", **{"for": "x"})), _read(a_map("a", 2, **{"for": "y"}))

    assert [wake.key.name for wake in waker(Change(old, new))] == ["x", "y"]
    assert [wake.key.name for wake in waker(Change(old, old))] == ["x"]
    assert list(waker(Change(None, _read(a_map("a"))))) == []
