"""Events are written in the background, counted when repeated, and leave a busy server alone."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta

from volcano.api.core import Pod
from volcano.api.meta import Key
from volcano.api.scheme import resource_type
from volcano.machinery.client import Client
from volcano.machinery.clock import VirtualClock, run_virtually
from volcano.machinery.events import EVENT_BURST, EventRecorder
from volcano.machinery.plan import Record, Ref
from volcano.machinery.transport import Request, Response

SECOND = timedelta(seconds=1)


class Network:
    """A server that takes its time, and remembers what was asked and when."""

    def __init__(self, clock: VirtualClock, delay: timedelta) -> None:
        self._clock, self._delay = clock, delay
        self.asked: list[tuple[float, str, dict]] = []

    async def send(self, request: Request) -> Response:
        self.asked.append((self._clock.monotonic(), request.method, json.loads(request.body)))
        await self._clock.sleep(self._delay)
        return Response(201, {}, request.body)

    async def close(self) -> None:
        return None


def about(name: str, message: str = "hello") -> Record:
    return Record(Ref(resource_type(Pod), Key("ns", name), "uid"), "Said", message)


def said(records: list[Record], *, delay: timedelta, after: timedelta) -> list[tuple[float, str, dict]]:
    """What was asked of the server by then."""

    async def main() -> list[tuple[float, str, dict]]:
        clock = VirtualClock()
        network = Network(clock, delay)
        recorder = EventRecorder(Client(network), clock, "tests")
        running = asyncio.ensure_future(recorder.run())
        for record in records:
            recorder.record(record)
        await clock.sleep(after)
        running.cancel()
        return network.asked

    return run_virtually(main())


def test_an_event_says_what_happened_to_what():
    ((_, method, body),) = said([about("p")], delay=timedelta(0), after=SECOND)

    assert (method, body["reason"], body["message"]) == ("POST", "Said", "hello")
    assert body["involvedObject"]["name"] == "p"
    assert body["source"] == {"component": "tests"}


def test_a_burst_is_written_at_once_and_more_at_a_pace():
    asked = said([about(f"p-{n}") for n in range(EVENT_BURST + 100)], delay=timedelta(0), after=SECOND)

    assert EVENT_BURST < len(asked) < EVENT_BURST + 100


def test_a_server_that_takes_long_is_left_alone_most_of_the_time():
    asked = said([about(f"p-{n}") for n in range(100)], delay=timedelta(milliseconds=100), after=10 * SECOND)

    assert len(asked) == 20  # a tenth of a second each, and four tenths of rest


def test_the_same_thing_said_again_is_not_written_again():
    assert len(said([about("p")] * 5, delay=timedelta(0), after=SECOND)) == 1
