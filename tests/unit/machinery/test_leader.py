"""Leader election: one leader at a time, whatever fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from tests.unit.machinery.scripted_transport import elapse
from volcano.api.errors import AlreadyExists, ApiError, Conflict, NotFound
from volcano.api.meta import Key
from volcano.machinery.client import Client
from volcano.machinery.clock import VirtualClock, run_virtually
from volcano.machinery.leader import Election, ElectionSettings, LostLeadership
from volcano.machinery.transport import Request, Response

LEASE = Key("kube-system", "vc")
SETTINGS = ElectionSettings()
RENEW, DEADLINE, DURATION = (
    period.total_seconds() for period in (SETTINGS.retry_period, SETTINGS.renew_deadline, SETTINGS.lease_duration)
)


class LeaseServer:
    """One Lease with optimistic concurrency, and ways to be out of reach for one client or for all."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self._version = 0
        self.away: set[str] = set()  # clients that cannot reach it
        self.hangs: set[str] = set()  # clients that get no answer at all
        self.history: list[str] = []  # who wrote the lease as its holder

    def client(self, name: str) -> Client:
        server = self

        class Transport:
            async def send(self, request: Request) -> Response:
                return await server.answer(name, request)

            async def close(self) -> None:
                return None

        return Client(Transport())

    async def answer(self, name: str, request: Request) -> Response:
        await elapse(0.01)
        if name in self.hangs:
            await elapse(3600)
        if name in self.away:
            raise ConnectionError("no route")
        try:
            return Response(body=msgspec.json.encode(self._answer(request)))
        except ApiError as error:
            return Response(error.status_code, {}, msgspec.json.encode(error.status()))

    def _answer(self, request: Request) -> dict[str, Any]:
        body = msgspec.json.decode(request.body) if request.body else {}
        match request.method, self.lease:
            case "GET", None:
                raise NotFound.of("leases", LEASE.name)
            case "GET", lease:
                return lease  # type: ignore[return-value]
            case "POST", None:
                return self.write(body)
            case "POST", _:
                raise AlreadyExists.of("leases", LEASE.name)
            case "PUT", lease if lease and body["metadata"]["resourceVersion"] == lease["metadata"]["resourceVersion"]:
                return self.write(body)
        raise Conflict.of("leases", LEASE.name, "the object has been modified")

    def write(self, body: dict[str, Any]) -> dict[str, Any]:
        self._version += 1
        metadata = {"name": LEASE.name, "namespace": LEASE.namespace, "resourceVersion": str(self._version)}
        self.lease = {"metadata": metadata, "spec": body["spec"]}
        self.history.append(body["spec"]["holderIdentity"])
        return self.lease

    @property
    def spec(self) -> dict[str, Any]:
        assert self.lease is not None
        spec: dict[str, Any] = self.lease["spec"]
        return spec


class Candidate:
    """One process: when it worked, and how its election ended."""

    def __init__(self, server: LeaseServer, name: str) -> None:
        self.name = name
        self.election = Election(server.client(name), VirtualClock(), LEASE, name)
        self.worked: list[tuple[float, float]] = []
        self.may_end = asyncio.Event()
        self.error: BaseException | None = None

    def start(self) -> asyncio.Task[None]:
        self._running = asyncio.ensure_future(self._run())
        return self._running

    async def _run(self) -> None:
        try:
            await self.election.lead(self._work)
        except (LostLeadership, ZeroDivisionError) as error:
            self.error = error

    async def _work(self) -> None:
        begun = now()
        try:
            await self.may_end.wait()
        finally:
            self.worked.append((begun, now()))


def now() -> float:
    return asyncio.get_running_loop().time()


def virtually(story: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        before = asyncio.all_tasks()
        await story()
        for task in asyncio.all_tasks() - before:
            task.cancel()

    run_virtually(main())


# -- taking the lease ------------------------------------------------------------------------------------------------------
def test_the_first_candidate_creates_the_lease_and_renews_it():
    async def story() -> None:
        server = LeaseServer()
        one = Candidate(server, "one")
        one.start()
        await elapse(1)
        first = dict(server.spec)
        await elapse(60)

        assert one.election.is_leader
        assert first["acquireTime"] == server.spec["acquireTime"] == "2026-01-01T00:00:00.000000Z"
        assert server.spec["renewTime"] > first["renewTime"]
        assert server.spec["leaseDurationSeconds"] == 15 and server.spec["leaseTransitions"] == 0
        assert 25 <= len(server.history) <= 32, "every 2 seconds"

    virtually(story)


def test_of_two_that_start_together_one_leads():
    async def story() -> None:
        server = LeaseServer()
        both = [Candidate(server, "one"), Candidate(server, "two")]
        for each in both:
            each.start()
        await elapse(120)

        assert [each.election.is_leader for each in both] == [True, False]
        assert set(server.history) == {"one"}

    virtually(story)


def test_of_two_that_find_it_expired_one_leads():
    async def story() -> None:
        server = LeaseServer()
        server.write({"spec": {"holderIdentity": "", "leaseTransitions": 4}})
        both = [Candidate(server, "one"), Candidate(server, "two")]
        for each in both:
            each.start()
        await elapse(5)

        assert [each.election.is_leader for each in both] == [True, False]
        assert server.spec["leaseTransitions"] == 5

    virtually(story)


@pytest.mark.parametrize("duration", [5, 15, 60])
def test_a_silent_holder_is_followed_after_its_own_duration_by_the_candidates_clock(duration: int):
    async def story() -> None:
        server = LeaseServer()
        spec = {"holderIdentity": "dead", "leaseDurationSeconds": duration, "renewTime": "1999-01-01T00:00:00.000000Z"}
        server.write({"spec": spec})
        one = Candidate(server, "one")
        one.start()

        await elapse(duration - 1)
        assert not one.election.is_leader, "the old renewTime may be of a clock that is wrong"
        await elapse(1 + RENEW + 1)
        assert one.election.is_leader and server.spec["leaseTransitions"] == 1

    virtually(story)


def test_a_candidate_that_cannot_reach_the_server_goes_on_trying():
    async def story() -> None:
        server = LeaseServer()
        server.away.add("one")
        one = Candidate(server, "one")
        one.start()
        await elapse(100)
        assert not one.election.is_leader and one.error is None
        server.away.clear()
        await elapse(RENEW + 1)
        assert one.election.is_leader

    virtually(story)


# -- losing it -----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("how", ["away", "hangs"])
@pytest.mark.parametrize("moment", [20.0, 21.0, 21.99])
def test_a_leader_cut_off_stops_before_another_takes_over(how: str, moment: float):
    async def story() -> None:
        server = LeaseServer()
        old, new = Candidate(server, "old"), Candidate(server, "new")
        old.start()
        await elapse(1)
        new.start()
        await elapse(moment)
        getattr(server, how).add("old")
        await elapse(60)

        assert isinstance(old.error, LostLeadership) and not old.election.is_leader
        assert new.election.is_leader
        (_, stopped), renewed = old.worked[0], moment + 1
        assert stopped <= renewed + DEADLINE + 0.1 < renewed - RENEW + DURATION + 0.1
        assert server.spec["leaseTransitions"] == 1

    virtually(story)


def test_a_renewal_that_hangs_after_others_failed_does_not_outlast_the_lease():
    async def story() -> None:
        server = LeaseServer()
        old = Candidate(server, "old")
        old.start()
        await elapse(1)
        server.away.add("old")
        await elapse(DEADLINE - RENEW)
        server.hangs.add("old")
        await elapse(60)

        assert isinstance(old.error, LostLeadership)
        assert old.worked[0][1] <= DEADLINE + 0.1 < DURATION

    virtually(story)


def test_an_old_leader_that_is_still_alive_leaves_the_new_ones_lease_alone():
    async def story() -> None:
        server = LeaseServer()
        old = Candidate(server, "old")
        old.start()
        await elapse(5)
        server.write({"spec": {"holderIdentity": "new", "leaseDurationSeconds": 3600}})
        await elapse(DEADLINE + RENEW + 1)

        assert isinstance(old.error, LostLeadership)
        assert server.spec["holderIdentity"] == "new" and server.history[-1] == "new"

    virtually(story)


def test_a_short_disturbance_does_not_end_the_leadership():
    async def story() -> None:
        server = LeaseServer()
        one = Candidate(server, "one")
        one.start()
        await elapse(1)
        for _ in range(10):
            server.away.add("one")
            await elapse(DEADLINE - 2 * RENEW)
            server.away.clear()
            await elapse(2 * RENEW)

        assert one.election.is_leader and one.worked == []

    virtually(story)


# -- ending --------------------------------------------------------------------------------------------------------------------
def test_work_that_ends_frees_the_lease_for_the_next_at_once():
    async def story() -> None:
        server = LeaseServer()
        one, two = Candidate(server, "one"), Candidate(server, "two")
        one.start()
        await elapse(1)
        two.start()
        await elapse(5)
        one.may_end.set()
        await elapse(RENEW + 0.5)

        assert not one.election.is_leader and two.election.is_leader

    virtually(story)


def test_an_error_of_the_work_is_passed_on_and_the_lease_is_freed():
    async def story() -> None:
        server = LeaseServer()
        election = Election(server.client("one"), VirtualClock(), LEASE, "one")

        async def work() -> None:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await election.lead(work)
        assert server.spec["holderIdentity"] == "" and not election.is_leader

    virtually(story)


@pytest.mark.parametrize("how", ["away", "hangs"])
def test_a_lease_that_cannot_be_freed_delays_the_stop_only_briefly(how: str):
    async def story() -> None:
        server = LeaseServer()
        one = Candidate(server, "one")
        leading = one.start()
        await elapse(1)
        getattr(server, how).add("one")
        begun = now()
        one.may_end.set()
        await leading

        assert now() - begun <= RENEW + 0.1
        assert server.spec["holderIdentity"] == "one", "it expires by itself"

    virtually(story)
