"""The network between machines and the API server: delays by seed, and the faults of requests and watches.

What it does is what a network and a Kubernetes server may do. A watch can end, break or lag; it never skips, doubles or
reorders events, since the API promises that. Events of different kinds come over different watches, and lag apart.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

import msgspec

from volcano.api.errors import ApiError, Conflict, InternalError, ServiceUnavailable, Timeout, TooManyRequests
from volcano.machinery.transport import Request, Response, User
from volcano.testing.faults.chance import Chance
from volcano.testing.faults.machines import SimulatedMachine, wait_seconds
from volcano.testing.faults.plan import AFTER, Fault
from volcano.testing.faults.trace import Trace

MAX_DELAY_SECONDS: Final = 0.02
ANSWER_TIMEOUT_SECONDS: Final = 60.0
ERRORS: Final[dict[str, type[ApiError]]] = {
    "409": Conflict,
    "429": TooManyRequests,
    "500": InternalError,
    "503": ServiceUnavailable,
    "504": Timeout,
}

Serve = Callable[[Request], Awaitable[Response]]
Crash = Callable[[SimulatedMachine], None]


class FaultyNetwork:
    """Connects machines with the server that `serve` calls."""

    def __init__(self, serve: Serve, trace: Trace, crash: Crash) -> None:
        self.serve, self.trace, self.crash = serve, trace, crash
        self._armed: dict[str, list[Fault]] = {}
        self._left: dict[int, int] = {}
        self._watches: list[_WatchPipe] = []
        self.in_flight: set[asyncio.Task[None]] = set()  # requests whose senders no longer wait for them

    def arm(self, fault: Fault) -> None:
        """Let the next requests that match go wrong."""
        self._armed.setdefault(fault.machine, []).append(fault)
        self._left[fault.number] = fault.count

    def disarm_all(self) -> None:
        self._armed.clear()
        for watch in self._watches:
            watch.lag_until = 0.0
            watch.wake()

    def take(self, machine: SimulatedMachine, request: Request) -> Fault | None:
        faults = self._armed.get(machine.name, [])
        for fault in faults:
            if matches(fault.target, request):
                self._left[fault.number] -= 1
                if not self._left[fault.number]:
                    faults.remove(fault)
                return fault
        return None

    def break_watches(self, fault: Fault) -> None:
        """Of one machine and one kind: cut them, end them, or let their events come late."""
        now = asyncio.get_running_loop().time()
        for watch in list(self._watches):
            if watch.machine.name == fault.machine and fault.target in ("any", watch.resource):
                if fault.kind == "watch-lag":
                    watch.lag_until = now + fault.seconds
                else:
                    watch.finish(broken=fault.kind == "watch-cut")

    def lag(self, machine: SimulatedMachine, seconds: float) -> None:
        """Hold back all events for this machine."""
        for watch in self._watches:
            if watch.machine is machine:
                watch.lag_until = asyncio.get_running_loop().time() + seconds

    def break_all_watches(self) -> None:
        """The server is gone."""
        for watch in list(self._watches):
            watch.finish(broken=True)

    def open_watch(
        self, machine: SimulatedMachine, resource: str, source: AsyncIterator[bytes]
    ) -> AsyncIterator[bytes]:
        pipe = _WatchPipe(machine, resource, source, self._watches.remove)
        self._watches.append(pipe)
        return pipe.chunks()


class MachineTransport:
    """A machine's way to the API server, for one life of its process."""

    def __init__(self, network: FaultyNetwork, machine: SimulatedMachine, user: User, chance: Chance) -> None:
        self._network, self._machine, self._user, self._chance = network, machine, user, chance
        self.is_dead = False

    async def send(self, request: Request) -> Response:
        if self.is_dead:
            raise ConnectionError("the process has crashed")
        request = msgspec.structs.replace(request, user=self._user)
        fault = self._network.take(self._machine, request)
        self._network.trace.add(self._machine.name, f"{_shown(request)}{f' !{fault.kind}' if fault else ''}")
        if fault is None:
            return await self._exchange(request)
        return await self._exchange_badly(request, fault)

    async def close(self) -> None:
        return None

    async def _exchange(self, request: Request) -> Response:
        await self._travel()
        response = await self._network.serve(request)
        if response.stream is not None:
            resource = request.path.rpartition("/")[2]
            response.stream = self._network.open_watch(self._machine, resource, response.stream)
        await self._travel()
        if response.status >= 400:
            self._network.trace.add(self._machine.name, f"{_shown(request)} = {response.status}")
        return response

    async def _exchange_badly(self, request: Request, fault: Fault) -> Response:
        kind = fault.kind
        if kind in ERRORS:
            return _answer(kind)
        if kind in AFTER:
            await self._perform(request)
            if kind == "done-lost":
                raise ConnectionError("the answer was lost")
            return _answer(kind.removeprefix("done-"))
        match kind:
            case "done-blind":
                await self._perform(request)
                self._network.lag(self._machine, fault.seconds)
                return _answer("500")
            case "refused":
                raise ConnectionError("connection refused")
            case "timeout":
                await wait_seconds(min(fault.seconds, ANSWER_TIMEOUT_SECONDS))
                raise TimeoutError("no answer")
            case "slow":
                await wait_seconds(fault.seconds)
                return await self._exchange(request)
            case "late":
                self._perform_later(request, fault.seconds)
                raise ConnectionError("the connection broke")
            case "crash-after":
                await self._perform(request)
        self._network.crash(self._machine)
        await asyncio.get_running_loop().create_future()  # until the crash cancels this
        raise AssertionError("a crashed process does not go on")

    async def _perform(self, request: Request) -> None:
        response = await self._network.serve(request)
        if response.stream is not None:
            close = getattr(response.stream, "aclose", None)
            if close is not None:
                await close()

    def _perform_later(self, request: Request, seconds: float) -> None:
        """The request is on its way and arrives even if its sender no longer exists."""

        async def arrive() -> None:
            await wait_seconds(seconds)
            self._network.trace.add(self._machine.name, f"{_shown(request)} arrives late")
            try:
                await self._perform(request)
            except ConnectionError:
                return

        on_its_way = SimulatedMachine("network").start(arrive())
        self._network.in_flight.add(on_its_way)
        on_its_way.add_done_callback(self._network.in_flight.discard)

    async def _travel(self) -> None:
        if self._chance.random() < 0.5:
            await wait_seconds(self._chance.uniform(0, MAX_DELAY_SECONDS))


class _WatchPipe:
    """One watch between server and client: chunks wait here while it lags."""

    def __init__(
        self,
        machine: SimulatedMachine,
        resource: str,
        source: AsyncIterator[bytes],
        closed: Callable[[_WatchPipe], None],
    ) -> None:
        self.machine, self.resource, self._source, self._closed = machine, resource, source, closed
        self.lag_until = 0.0
        self._waiting: deque[bytes] = deque()
        self._over: BaseException | None = None
        self._is_over = False
        self._turn: asyncio.Future[None] | None = None
        self._pump = SimulatedMachine("server-stream").start(self._fill())

    async def _fill(self) -> None:
        try:
            async for chunk in self._source:
                self._waiting.append(chunk)
                self.wake()
            self._is_over = True
        except ConnectionError as error:
            self._over, self._is_over = error, True
        finally:
            close = getattr(self._source, "aclose", None)
            if close is not None:
                await close()
        self.wake()

    def finish(self, *, broken: bool) -> None:
        self._waiting.clear()
        self._is_over = True
        self._over = ConnectionError("the watch broke") if broken else None
        self._pump.cancel()
        self.wake()

    def wake(self) -> None:
        if self._turn is not None and not self._turn.done():
            self._turn.set_result(None)

    async def chunks(self) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        try:
            while True:
                if (lag := self.lag_until - loop.time()) > 0 and not self._is_over:
                    timer = loop.call_later(lag, self.wake)
                    await self._rest()
                    timer.cancel()
                elif self._waiting:
                    yield self._waiting.popleft()
                elif not self._is_over:
                    await self._rest()
                elif self._over is not None:
                    raise self._over
                else:
                    return
        finally:
            self._pump.cancel()
            self._closed(self)

    async def _rest(self) -> None:
        self._turn = asyncio.get_running_loop().create_future()
        await self._turn


def matches(target: str, request: Request) -> bool:
    """Whether a fault of this target meets this request."""
    is_write, path = request.method != "GET", request.path
    if target == "any":
        return True
    if path.endswith("/leases") or "/leases/" in path:
        return target == "leases"
    if not is_write or "/events" in path:
        return False
    match target:
        case "write":
            return True
        case "update":
            return request.method in ("PUT", "PATCH")
        case "bindings":
            return path.endswith("/binding")
        case "status":
            return path.endswith("/status")
    return f"/{target}/" in path or path.endswith(f"/{target}")


def _answer(code: str) -> Response:
    error = ERRORS[code]("a simulated fault")
    return Response(int(code), {"content-type": "application/json"}, msgspec.json.encode(error.status()))


def _shown(request: Request) -> str:
    watches = " watch" if request.param("watch") else ""
    return f"{request.method} {request.path}{watches}"
