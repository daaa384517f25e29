"""Node locks: taken before a bind, respected while another holds them, and never waited for without end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import msgspec

from volcano.api.core import Node
from volcano.api.decode import decode_object
from volcano.api.errors import Conflict
from volcano.api.meta import Key
from volcano.api.node_locks import LOCK_EXPIRY, is_locked
from volcano.api.times import timestamp
from volcano.machinery.apply import Applier
from volcano.machinery.client import Client
from volcano.machinery.clock import VirtualClock, run_virtually
from volcano.machinery.transport import Request, Response
from volcano.machinery.world import Mirror
from volcano.scheduler.service.node_lock_taking import MAX_WRITE_CONFLICTS, NodeLockTaking

LOCK = "hamivgpu"


class NodeServer:
    """One node; what is written shows in the mirror, as it does through the sender."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock, self.mirror = clock, Mirror(clock.now)
        self.annotations: dict[str, str] = {}
        self.version, self.writes, self.conflicts = 1, 0, 0
        self.show()

    def show(self) -> None:
        self.mirror.put(decode_object(Node, self.body()))

    def body(self) -> dict[str, Any]:
        meta = {"name": "n1", "uid": "u", "resourceVersion": str(self.version), "annotations": dict(self.annotations)}
        return {"apiVersion": "v1", "kind": "Node", "metadata": meta}

    def set(self, value: str | None) -> None:
        self.annotations.pop(LOCK, None)
        if value is not None:
            self.annotations[LOCK] = value
        self.version += 1
        self.show()

    async def send(self, request: Request) -> Response:
        self.writes += 1
        meta = msgspec.json.decode(request.body)["metadata"]
        if self.conflicts or meta["resourceVersion"] != str(self.version):
            self.conflicts -= 1
            return Response(409, body=msgspec.json.encode(Conflict("it has changed").status()))
        self.set(meta["annotations"][LOCK])
        return Response(200, body=msgspec.json.encode(self.body()))

    async def close(self) -> None:
        return None


def taking(story: Callable[[NodeServer, NodeLockTaking], Awaitable[None]]) -> None:
    async def main() -> None:
        clock = VirtualClock()
        server = NodeServer(clock)
        await story(server, NodeLockTaking(Applier(Client(server), clock), clock, server.mirror))

    run_virtually(main())


def test_a_lock_is_written_with_its_time_and_removed_when_the_bind_fails():
    async def story(server: NodeServer, locks: NodeLockTaking) -> None:
        value, reason = await locks.take("n1", LOCK)
        assert (server.annotations, reason) == ({LOCK: value}, "")
        assert is_locked(value, server.clock.now())
        await locks.release("n1", LOCK, value)
        assert server.annotations == {}

    taking(story)


def test_a_lock_of_another_is_waited_for_and_one_that_is_too_old_is_replaced():
    async def story(server: NodeServer, locks: NodeLockTaking) -> None:
        server.set(timestamp(server.clock.now()))
        begun = server.clock.now()
        value, reason = await locks.take("n1", LOCK)
        assert (reason, server.annotations[LOCK]) == ("", value)
        assert LOCK_EXPIRY <= server.clock.now() - begun <= LOCK_EXPIRY + timedelta(seconds=2)

    taking(story)


def test_text_that_is_no_time_is_no_lock():
    async def story(server: NodeServer, locks: NodeLockTaking) -> None:
        server.set("node-1,pod-2")
        assert (await locks.take("n1", LOCK))[1] == ""

    taking(story)


def test_a_node_that_is_locked_again_and_again_or_gone_ends_the_wait():
    async def story(server: NodeServer, locks: NodeLockTaking) -> None:
        begun = server.clock.now()
        server.set(timestamp(begun + LOCK_EXPIRY - timedelta(seconds=1)))  # by a clock that is ahead
        server.conflicts = 100
        value, reason = await locks.take("n1", LOCK)
        assert value == ""
        assert "cannot be written" in reason
        assert server.writes == MAX_WRITE_CONFLICTS
        server.mirror.remove(Node, Key("", "n1"))
        assert await locks.take("n1", LOCK) == ("", "node n1 is gone")

    taking(story)


def test_a_lock_that_somebody_else_has_taken_meanwhile_is_not_removed():
    async def story(server: NodeServer, locks: NodeLockTaking) -> None:
        value, _ = await locks.take("n1", LOCK)
        other = timestamp(server.clock.now() + timedelta(seconds=7))
        server.set(other)
        await locks.release("n1", LOCK, value)
        assert server.annotations == {LOCK: other}

    taking(story)
