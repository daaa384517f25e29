"""The informer: list, watch and resume, so that a Mirror loses and doubles nothing."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.unit.machinery.scripted_transport import Answer, ScriptedTransport, Stream, a_list, a_map
from volcano.api.core import ConfigMap
from volcano.api.decode import Unreadable, decode_object
from volcano.api.errors import Forbidden, Gone, InternalError, ServiceUnavailable, TooManyRequests
from volcano.machinery.client import MAX_WATCH_LINE_BYTES, Client
from volcano.machinery.clock import VirtualClock, run_virtually
from volcano.machinery.informer import FIRST_BACKOFF, MAX_BACKOFF, Informer
from volcano.machinery.world import Change, Mirror

MAPS = "/api/v1/configmaps"


class Bench:
    """An informer on virtual time, what it told of changes, and what it complained about."""

    def __init__(self, **options: Any) -> None:
        self.transport, self.clock = ScriptedTransport(), VirtualClock()
        self.mirror, self.told, self.problems = Mirror(), [], []
        self._options = {"on_error": self._problem, **options}
        self.told: list[str] = []
        self.problems: list[Exception] = []
        self.mirror.listen(ConfigMap, self._changed)

    def _changed(self, change: Change[ConfigMap]) -> None:
        sign = "+" if change.old is None else "-" if change.new is None else "~"
        self.told.append(f"{sign}{change.object.name}@{change.object.metadata.resource_version}")

    def _problem(self, _message: str, error: Exception) -> None:
        self.problems.append(error)

    def lists(self, *answers: Answer) -> None:
        self.transport.answers("GET", MAPS, *answers)

    def watches(self, *answers: Answer | Stream) -> None:
        self.transport.answers("WATCH", MAPS, *answers)

    def revisions(self) -> list[str]:
        """Where the watches so far began."""
        return [request.param("resourceVersion") for request in self.transport.sent("WATCH")]

    def run(self, story: Callable[[], Awaitable[None]]) -> None:
        async def main() -> None:
            self.informer = Informer(Client(self.transport), self.mirror, self.clock, ConfigMap, **self._options)
            running = asyncio.ensure_future(self.informer.run())
            try:
                async with asyncio.timeout(3600):
                    await story()
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)

        run_virtually(main())

    async def quiet(self) -> None:
        """Until everything that can happen now has happened."""
        for _ in range(50):
            await asyncio.sleep(0)


# -- list and watch ------------------------------------------------------------------------------------------------------
def test_the_list_comes_page_by_page_and_the_watch_begins_at_its_revision():
    bench, stream = Bench(namespace="ns", labels="a=b", fields="c=d"), Stream()
    path = "/api/v1/namespaces/ns/configmaps"
    bench.transport.answers(
        "GET", path, a_list(a_map("a"), version=10, next_page="two"), a_list(a_map("b"), version=11)
    )
    bench.transport.answers("WATCH", path, stream)

    async def story() -> None:
        await bench.informer.synced()
        await bench.quiet()

    bench.run(story)

    first, second = bench.transport.sent("GET")
    assert (first.param("continue"), second.param("continue")) == ("", "two")
    assert first.param("limit") == "500" and first.param("labelSelector") == "a=b"
    assert bench.told == ["+a@1", "+b@1"]
    assert bench.revisions() == ["10"], "the first page's: later pages are of the same revision"
    (watch,) = bench.transport.sent("WATCH")
    assert (watch.param("labelSelector"), watch.param("fieldSelector")) == ("a=b", "c=d")
    assert watch.param("allowWatchBookmarks") == "true" and watch.param("timeoutSeconds") == "290"


def test_a_watch_that_ends_is_resumed_at_the_last_revision_seen_without_a_list():
    bench, first, second = Bench(), Stream(), Stream()
    bench.lists(a_list(version=10))
    bench.watches(first, second)

    async def story() -> None:
        first.send("ADDED", a_map("a", 12))
        first.end()
        second.send("MODIFIED", a_map("a", 13))
        await bench.informer.synced()
        await bench.quiet()

    bench.run(story)

    assert bench.told == ["+a@12", "~a@13"]
    assert bench.revisions() == ["10", "12"]
    assert len(bench.transport.sent("GET")) == 1 and bench.problems == []


def test_a_bookmark_moves_the_revision_and_changes_nothing_else():
    bench, first, second = Bench(), Stream(), Stream()
    bench.lists(a_list(a_map("a"), version=10))
    bench.watches(first, second)

    async def story() -> None:
        first.send("BOOKMARK", {"kind": "ConfigMap", "metadata": {"resourceVersion": "500"}})
        first.end()
        await bench.informer.synced()
        await bench.quiet()

    bench.run(story)

    assert bench.told == ["+a@1"]
    assert bench.revisions() == ["10", "500"]


# -- 410 Gone --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("in_stream", [True, False], ids=["as an event", "as the answer"])
def test_a_revision_that_is_gone_is_followed_by_a_list_of_which_only_differences_are_told(in_stream: bool):
    bench, first, second = Bench(), Stream(), Stream()
    gone = Gone("too old resource version")
    bench.lists(a_list(a_map("a"), a_map("b"), version=10), a_list(a_map("b"), a_map("c", 12), version=20))
    bench.watches(*([first] if in_stream else [gone]), second)

    async def story() -> None:
        await bench.informer.synced()
        if in_stream:
            first.send("ERROR", gone.status())
        await bench.clock.sleep(FIRST_BACKOFF * 3)

    bench.run(story)

    assert bench.told == ["+a@1", "+b@1", "+c@12", "-a@1"]
    assert bench.revisions() == ["10", "20"]


def test_what_was_written_while_the_list_was_made_stays():
    """The list does not have the object yet, and the watch that begins at the list's revision tells of it."""
    bench, watch = Bench(), Stream()
    bench.lists(a_list(version=10))
    bench.watches(watch)
    bench.mirror.put(decode_object(ConfigMap, a_map("mine", 11)))  # the answer to a create

    async def story() -> None:
        await bench.informer.synced()
        watch.send("ADDED", a_map("mine", 11))
        await bench.quiet()

    bench.run(story)

    assert [each.name for each in bench.mirror.all(ConfigMap)] == ["mine"]
    assert bench.told == ["+mine@11"]


def test_a_page_that_expired_in_the_middle_of_a_list_begins_the_list_again():
    bench = Bench()
    bench.lists(a_list(a_map("a"), next_page="two"), Gone("expired"), a_list(a_map("a"), a_map("b")))
    bench.watches(Stream())

    async def story() -> None:
        await bench.informer.synced()

    bench.run(story)

    assert [request.param("continue") for request in bench.transport.sent("GET")] == ["", "two", ""]
    assert bench.told == ["+a@1", "+b@1"]


# -- failures ----------------------------------------------------------------------------------------------------------------
def test_a_stream_that_breaks_is_resumed_without_a_list():
    bench, first, second = Bench(), Stream(), Stream()
    bench.lists(a_list(version=10))
    bench.watches(first, second)

    async def story() -> None:
        first.send("ADDED", a_map("a", 11))
        first.fail(ConnectionError("reset"))
        second.send("ADDED", a_map("b", 12))
        await bench.informer.synced()
        await bench.clock.sleep(FIRST_BACKOFF * 2)

    bench.run(story)

    assert bench.told == ["+a@11", "+b@12"]
    assert bench.revisions() == ["10", "11"]
    assert [type(problem) for problem in bench.problems] == [ConnectionError]


def test_a_server_that_is_away_is_asked_less_and_less_often_and_at_once_when_it_is_back():
    bench, stream, again = Bench(), Stream(), Stream()
    bench.lists(*[ConnectionError("no route")] * 12, a_list(version=10))
    bench.watches(stream, ConnectionError("no route"), again)

    async def story() -> None:
        await bench.informer.synced()
        stream.send("ADDED", a_map("a", 11))
        stream.end()
        await bench.clock.sleep(FIRST_BACKOFF * 2)

    bench.run(story)

    pauses = [after - before for before, after in zip(bench.transport.times, bench.transport.times[1:])]
    expected = [min(FIRST_BACKOFF * 2**tries, MAX_BACKOFF).total_seconds() for tries in range(12)]
    assert pauses[:12] == pytest.approx(expected)
    assert pauses[-1] == pytest.approx(FIRST_BACKOFF.total_seconds()), "a watch that worked ends the back-off"


def test_watches_that_end_at_once_without_an_event_are_opened_less_and_less_often():
    bench, streams = Bench(), [Stream() for _ in range(5)]
    bench.lists(a_list(version=10))
    bench.watches(*streams)

    async def story() -> None:
        for stream in streams[:-1]:
            stream.end()
        await bench.informer.synced()
        await bench.clock.sleep(MAX_BACKOFF)

    bench.run(story)

    watches = bench.transport.times[1:]
    pauses = [after - before for before, after in itertools.pairwise(watches)]
    assert pauses == pytest.approx([(FIRST_BACKOFF * 2**tries).total_seconds() for tries in range(4)])
    assert bench.revisions() == ["10"] * 5 and bench.problems == []


@pytest.mark.parametrize(
    ("error", "lists"),
    [
        pytest.param(InternalError("oops"), 1, id="500 resumes"),
        pytest.param(ServiceUnavailable("starting"), 1, id="503 resumes"),
        pytest.param(TooManyRequests("wait"), 1, id="429 resumes"),
        pytest.param(Forbidden("no"), 2, id="403 lists again"),
    ],
)
def test_an_answer_that_refuses_the_watch_leads_to_a_new_list_and_a_busy_server_does_not(error: Exception, lists: int):
    bench = Bench()
    bench.lists(a_list(version=10))
    bench.watches(error, Stream())

    async def story() -> None:
        await bench.informer.synced()
        await bench.clock.sleep(FIRST_BACKOFF * 2)

    bench.run(story)

    assert len(bench.transport.sent("GET")) == lists
    assert [type(problem) for problem in bench.problems] == [type(error)]


@pytest.mark.parametrize(
    "line",
    [pytest.param(b"{not json", id="garbage"), pytest.param(b"x" * (MAX_WATCH_LINE_BYTES + 1), id="endless")],
)
def test_a_line_that_is_no_event_breaks_the_watch_and_not_the_informer(line: bytes):
    bench, first, second = Bench(), Stream(), Stream()
    bench.lists(a_list(version=10))
    bench.watches(first, second)

    async def story() -> None:
        first.send_line(line)
        second.send("ADDED", a_map("a", 11))
        await bench.informer.synced()
        await bench.clock.sleep(FIRST_BACKOFF * 2)

    bench.run(story)

    assert bench.told == ["+a@11"] and len(bench.problems) == 1


def test_objects_that_cannot_be_read_are_set_aside_and_the_others_are_told():
    bench, stream = Bench(), Stream()
    unreadable = {**a_map("bad"), "data": 5}
    bench.lists(a_list(unreadable, a_map("a"), version=10))
    bench.watches(stream)

    async def story() -> None:
        await bench.informer.synced()
        stream.send("ADDED", unreadable)
        stream.send("ADDED", a_map("b", 12))
        await bench.quiet()

    bench.run(story)

    assert bench.told == ["+a@1", "+b@12"]
    assert [type(problem) for problem in bench.problems] == [Unreadable, Unreadable]


def test_problems_are_logged_unless_they_are_taken(caplog: pytest.LogCaptureFixture):
    bench = Bench(on_error=None)
    bench.lists(ConnectionError("no route"), a_list())
    bench.watches(Stream())

    async def story() -> None:
        await bench.informer.synced()

    with caplog.at_level(logging.WARNING):
        bench.run(story)

    assert "following configmaps: ConnectionError: no route" in caplog.text


# -- events that come twice or in another order ------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("events", "told"),
    [
        pytest.param([("ADDED", a_map("a", 11)), ("ADDED", a_map("a", 11))], ["+a@11"], id="doubled"),
        pytest.param([("MODIFIED", a_map("a", 12)), ("ADDED", a_map("a", 11))], ["+a@12"], id="an older state later"),
        pytest.param(
            [("ADDED", a_map("a", 11)), ("DELETED", a_map("a", 13)), ("MODIFIED", a_map("a", 12))],
            ["+a@11", "-a@13"],
            id="a change after the deletion",
        ),
        pytest.param(
            [("ADDED", a_map("a", 11)), ("DELETED", a_map("a", 12)), ("DELETED", a_map("a", 12))],
            ["+a@11", "-a@12"],
            id="a doubled deletion",
        ),
        pytest.param([("DELETED", a_map("a", 12))], [], id="a deletion of what was never seen"),
        pytest.param(
            [("ADDED", a_map("a", 11, "u1")), ("ADDED", a_map("a", 13, "u2")), ("DELETED", a_map("a", 12, "u1"))],
            ["+a@11", "-a@11", "+a@13"],
            id="a deletion of the one that had the name before",
        ),
    ],
)
def test_each_change_is_told_once_and_never_backwards(events: list[tuple[str, dict[str, Any]]], told: list[str]):
    bench, stream = Bench(), Stream()
    bench.lists(a_list(version=10))
    bench.watches(stream)

    async def story() -> None:
        for kind, body in events:
            stream.send(kind, body)
        await bench.informer.synced()
        await bench.quiet()

    bench.run(story)

    assert bench.told == told


def test_a_list_in_one_namespace_removes_nothing_of_another():
    bench = Bench(namespace="ns")
    elsewhere = a_map("x")
    elsewhere["metadata"]["namespace"] = "elsewhere"
    bench.transport.answers("GET", "/api/v1/namespaces/ns/configmaps", a_list())
    bench.transport.answers("WATCH", "/api/v1/namespaces/ns/configmaps", Stream())
    for body in (a_map("a"), elsewhere):
        bench.mirror.put(decode_object(ConfigMap, body))

    async def story() -> None:
        await bench.informer.synced()

    bench.run(story)

    assert bench.told == ["+a@1", "+x@1", "-a@1"]
