"""Informers, plans and controllers against the embedded server, in process and on virtual time."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import msgspec
import pytest

from volcano.api.core import ConfigMap, Lease, Pod, Secret
from volcano.api.errors import Conflict, ServiceUnavailable
from volcano.api.meta import Key
from volcano.api.scheme import resource_type
from volcano.embedded.apiserver.server import ADMIN, ApiServer
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.machinery.apply import Applier
from volcano.machinery.client import Client
from volcano.machinery.clock import VirtualClock, run_virtually
from volcano.machinery.controller import Controller, Wake, self_key
from volcano.machinery.events import EventRecorder
from volcano.machinery.informer import Informer
from volcano.machinery.leader import Election, LostLeadership
from volcano.machinery.plan import Create, Delete, EnsureSecret, Later, Patch, Record, Ref, Together, ref
from volcano.machinery.runner import Runner
from volcano.machinery.transport import InProcess, Request, Response
from volcano.machinery.world import Mirror

MAPS = resource_type(ConfigMap)
SECRETS = resource_type(Secret)
CHANGES_KEPT = 100


class Flaky:
    """A transport that can be told to fail, and that cuts streams."""

    def __init__(self, inner):
        self.inner, self.failing, self.requests, self._streams = inner, False, [], []

    async def send(self, request: Request) -> Response:
        self.requests.append((request.method, request.path, dict(request.query)))
        if self.failing:
            raise ConnectionError("no route")
        response = await self.inner.send(request)
        if response.stream is not None:
            cut = asyncio.Event()
            self._streams.append(cut)
            return msgspec.structs.replace(response, stream=_until(response.stream, cut))
        return response

    def cut(self):
        for event in self._streams:
            event.set()
        self._streams.clear()

    async def close(self):
        pass


async def _until(stream, cut) -> AsyncIterator[bytes]:
    cutting = asyncio.ensure_future(cut.wait())
    try:
        while True:
            nxt = asyncio.ensure_future(anext(stream, None))
            done, _ = await asyncio.wait({nxt, cutting}, return_when=asyncio.FIRST_COMPLETED)
            if nxt not in done:
                nxt.cancel()
                await asyncio.gather(nxt, return_exceptions=True)
                raise ConnectionError("cut")
            if nxt.result() is None:
                return
            yield nxt.result()
    finally:
        cutting.cancel()
        await stream.aclose()


class Bench:
    """A server, a client that can fail, a clock."""

    async def __aenter__(self):
        self.clock = VirtualClock()
        self.server = ApiServer(MemoryStore(max_changes=CHANGES_KEPT), clock=self.clock)
        await self.server.start()
        self.transport = Flaky(InProcess(self.server.handle, ADMIN))
        self.client = Client(self.transport)
        self.steady = Client(InProcess(self.server.handle, ADMIN))
        self._tasks = []
        return self

    async def __aexit__(self, *_):
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.server.close()

    def start(self, work):
        self._tasks.append(asyncio.ensure_future(work))
        return self._tasks[-1]

    async def until(self, condition, within=timedelta(minutes=5)):
        for _ in range(int(within.total_seconds() * 100)):
            if condition():
                return
            await self.clock.sleep(timedelta(milliseconds=10))
        raise AssertionError("this did not happen in time")

    async def put(self, name, **data):
        body = {"metadata": {"name": name, "namespace": "default"}, "data": data}
        return await self.steady.create(MAPS, body)


def following(bench):
    mirror = Mirror(bench.clock.now)
    told = []
    mirror.listen(
        ConfigMap, lambda c: told.append(("+" if c.old is None else "-" if c.new is None else "~") + c.object.name)
    )
    informer = Informer(bench.client, mirror, bench.clock, ConfigMap, namespace="default", on_error=lambda *_: None)
    bench.start(informer.run())
    return mirror, informer, told


def test_an_informer_tells_what_is_there_and_what_changes():
    async def main():
        async with Bench() as bench:
            await bench.put("a")
            _, informer, told = following(bench)
            await informer.synced()
            await bench.put("b")
            await bench.steady.patch(MAPS, Key("default", "b"), {"data": {"x": "1"}})
            await bench.steady.delete(MAPS, Key("default", "a"))
            await bench.until(lambda: len(told) == 4)

            assert told == ["+a", "+b", "~b", "-a"]

    run_virtually(main())


def test_a_cut_stream_and_an_unreachable_server_lose_and_double_nothing():
    async def main():
        async with Bench() as bench:
            _, informer, told = following(bench)
            await informer.synced()
            await bench.put("a")
            await bench.until(lambda: told == ["+a"])
            bench.transport.failing = True
            bench.transport.cut()
            await bench.put("b")
            await bench.steady.delete(MAPS, Key("default", "a"))
            await bench.clock.sleep(timedelta(minutes=1))
            bench.transport.failing = False
            await bench.until(lambda: len(told) == 3)

            assert told == ["+a", "+b", "-a"]

    run_virtually(main())


def test_after_410_gone_a_new_list_tells_only_differences():
    async def main():
        async with Bench() as bench:
            mirror, informer, told = following(bench)
            await informer.synced()
            await bench.put("a")
            await bench.put("b")
            await bench.until(lambda: len(told) == 2)
            bench.transport.failing = True
            bench.transport.cut()
            await bench.steady.delete(MAPS, Key("default", "a"))
            await bench.put("c")
            for number in range(2 * CHANGES_KEPT):
                await bench.steady.create(SECRETS, {"metadata": {"name": f"s{number}", "namespace": "default"}})
            bench.transport.failing = False
            await bench.until(lambda: len(told) == 4)

            assert sorted(told[2:]) == ["+c", "-a"]
            assert [each.name for each in mirror.all(ConfigMap)] == ["b", "c"]

    run_virtually(main())


def test_a_plan_is_carried_out_in_order_and_ends_at_the_first_failure():
    async def main():
        async with Bench() as bench:
            applier = Applier(bench.client, bench.clock)
            make = [Create(MAPS, {"metadata": {"name": n, "namespace": "default"}}) for n in "abc"]
            bad = Create(MAPS, {"metadata": {"name": "NOT VALID", "namespace": "default"}})

            outcome = await applier.apply((make[0], Together((make[1], make[1])), bad, make[2], Later(timedelta(1))))

            assert [type(f.step) for f in outcome.failures] == [Create]
            assert "metadata.name" in str(outcome.failures[0])
            names = [item.name for item in (await bench.client.list(ConfigMap, "default")).items]
            assert names == ["a", "b"]

    run_virtually(main())


def test_a_plan_of_many_writes_does_not_keep_others_waiting():
    async def main():
        async with Bench() as bench:
            send = bench.transport.send

            async def slow(request):
                await asyncio.sleep(0)  # as a store on disk does
                return await send(request)

            bench.transport.send = slow
            applier = Applier(bench.client, bench.clock)
            many = tuple(Create(MAPS, {"metadata": {"name": f"m{n}", "namespace": "default"}}) for n in range(2_000))
            crowd = asyncio.create_task(applier.apply((Together(many),)))
            while not bench.transport.requests:
                await asyncio.sleep(0)

            await applier.apply((Create(MAPS, {"metadata": {"name": "other", "namespace": "default"}}),))

            assert not crowd.done() and len((await bench.client.list(ConfigMap, "default")).items) < 1_000
            assert (await crowd).writes == 2_000

    run_virtually(main())


def test_a_write_that_meets_a_passing_trouble_is_tried_again():
    async def main():
        async with Bench() as bench:
            refusals = [ServiceUnavailable("busy"), ConnectionError("gone")]
            send = bench.transport.send

            async def troubled(request):
                if refusals:
                    raise refusals.pop()
                return await send(request)

            bench.transport.send = troubled
            outcome = await Applier(bench.client, bench.clock).apply(
                (Create(MAPS, {"metadata": {"name": "a", "namespace": "default"}}),)
            )

            assert outcome.ok and outcome.writes == 3

    run_virtually(main())


def test_a_patch_decided_on_an_old_state_is_refused():
    async def main():
        async with Bench() as bench:
            await bench.put("a", x="1")
            seen = await bench.client.get(ConfigMap, Key("default", "a"))
            await bench.steady.patch(MAPS, seen.key, {"data": {"x": "2"}})

            outcome = await Applier(bench.client, bench.clock).apply(
                (Patch(ref(seen, fresh=True), {"data": {"x": "3"}}),)
            )

            assert isinstance(outcome.failures[0].error, Conflict)

    run_virtually(main())


def test_writing_to_what_is_gone_or_replaced_is_fine_when_asked_so():
    async def main():
        async with Bench() as bench:
            await bench.put("a")
            seen = await bench.client.get(ConfigMap, Key("default", "a"))
            await bench.steady.delete(MAPS, seen.key)
            applier = Applier(bench.client, bench.clock)
            assert (await applier.apply((Patch(ref(seen), {"data": {}}), Delete(ref(seen))))).ok
            await bench.put("a", fresh="yes")

            assert (await applier.apply((Patch(ref(seen), {"data": {"y": "1"}}), Delete(ref(seen))))).ok

            assert (await bench.client.get(ConfigMap, seen.key)).data == {"fresh": "yes"}

    run_virtually(main())


def test_a_secret_is_made_once():
    async def main():
        async with Bench() as bench:
            made = []
            step = EnsureSecret(Key("default", "keys"), lambda: made.append(1) or {"key": b"x"})
            applier = Applier(bench.client, bench.clock)
            await applier.apply((step,))
            await applier.apply((step,))

            assert made == [1]
            assert (await bench.client.get(Secret, step.key)).data == {"key": "eA=="}

    run_virtually(main())


def test_the_same_thing_said_again_only_raises_a_count():
    async def main():
        async with Bench() as bench:
            recorder = EventRecorder(bench.client, bench.clock, "tester")
            bench.start(recorder.run())
            about = Ref(resource_type(Pod), Key("default", "p"), "uid-1")
            for _ in range(50):
                recorder.record(Record(about, "Waiting", "no room"))
                await bench.clock.sleep(timedelta(seconds=1))
            await bench.clock.sleep(timedelta(seconds=1))

            events = (await bench.client.list_json(resource_type_of_events(), "default"))["items"]
            assert [e["reason"] for e in events] == ["Waiting"]
            assert 40 <= events[0]["count"] <= 50
            writes = [r for r in bench.transport.requests if "/events" in r[1] and r[0] != "GET"]
            assert len(writes) <= 6

    run_virtually(main())


def resource_type_of_events():
    from volcano.api.core import Event

    return resource_type(Event)


class Stamper(Controller):
    """Puts a stamp on every ConfigMap and looks again when told."""

    name = "stamper"

    def __init__(self):
        self.seen = []

    @property
    def wakes_on(self):
        return {ConfigMap: self_key, Lease: lambda change: [Wake(Key("default", change.object.name), "lease")]}

    def decide(self, key, world, causes):
        self.seen.append((key.name, causes))
        found = world.get(ConfigMap, key)
        if found is None or key.namespace != "default" or (found.data or {}).get("stamp"):
            return ()
        return (Patch(ref(found, fresh=True), {"data": {"stamp": "yes"}}), Later(timedelta(hours=1), "again"))


def test_a_controller_is_woken_decides_and_sees_its_own_writes():
    async def main():
        async with Bench() as bench:
            await bench.put("early")
            controller = Stamper()
            runner = Runner(bench.client, bench.clock, [controller])
            bench.start(runner.run())
            await runner.synced()
            await bench.put("late")
            await bench.clock.sleep(timedelta(hours=2))

            stamped = (await bench.client.list(ConfigMap, "default")).items
            assert [m.name for m in stamped if (m.data or {}).get("stamp")] == ["early", "late"]
            assert ("late", ("again",)) in controller.seen
            assert runner.writes == 2

    run_virtually(main())


def test_only_one_leads_and_another_takes_over_when_it_falls_silent():
    async def main():
        async with Bench() as bench:
            log = []
            lease = Key("volcano-system", "leader")

            async def work(name):
                log.append((name, bench.clock.monotonic()))
                await asyncio.Event().wait()

            first = Election(bench.client, bench.clock, lease, "first")
            second = Election(bench.steady, bench.clock, lease, "second")
            leading = bench.start(first.lead(lambda: work("first")))
            await bench.clock.sleep(timedelta(seconds=1))
            bench.start(second.lead(lambda: work("second")))
            await bench.clock.sleep(timedelta(minutes=5))
            assert [name for name, _ in log] == ["first"]

            bench.transport.failing = True
            cut_at = bench.clock.monotonic()
            await bench.until(lambda: len(log) == 2)

            assert log[1][0] == "second"
            assert log[1][1] - cut_at < 20
            with pytest.raises(LostLeadership):
                await leading

    run_virtually(main())
