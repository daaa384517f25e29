"""Events expire an hour after they were last seen; leases of nodes expire an hour after the node has gone."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from volcano.api.times import timestamp
from volcano.embedded.apiserver.server import ApiServer
from volcano.embedded.apiserver.store.contract import Stored, StoreFailed, Write
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.embedded.apiserver.upkeep.bootstrap import ADMIN
from volcano.machinery.clock import VirtualClock, run_virtually
from volcano.machinery.transport import Request

EVENTS = "/api/v1/namespaces/default/events"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


async def create(server: ApiServer, path: str, body: dict) -> None:
    answer = await server.handle(Request("POST", path, body=msgspec.json.encode(body), user=ADMIN))
    assert answer.status == 201, answer.body


async def names(server: ApiServer, path: str) -> list[str]:
    answer = await server.handle(Request("GET", path, user=ADMIN))
    return [each["metadata"]["name"] for each in msgspec.json.decode(answer.body)["items"]]


def event(name: str, **more: object) -> dict:
    about = {"kind": "Pod", "namespace": "default", "name": "p"}
    return {"metadata": {"name": name, "namespace": "default"}, "involvedObject": about, **more}


def test_events_expire_an_hour_after_they_were_last_seen():
    async def main() -> list[list[str]]:
        clock = VirtualClock()
        server = ApiServer(MemoryStore(), clock=clock)
        await server.start()
        await create(server, EVENTS, event("once"))
        await create(server, EVENTS, event("wrong-clock", lastTimestamp="9999-01-01T00:00:00Z"))
        await clock.sleep(timedelta(minutes=50))
        await create(server, EVENTS, event("late", lastTimestamp=timestamp(clock.now())))
        seen = [await names(server, EVENTS)]
        await clock.sleep(timedelta(minutes=15))
        seen.append(await names(server, EVENTS))
        await clock.sleep(timedelta(minutes=60))
        seen.append(await names(server, EVENTS))
        await create(server, EVENTS, event("again"))
        await clock.sleep(timedelta(minutes=65))
        seen.append(await names(server, EVENTS))
        await server.close()
        return seen

    assert run_virtually(main()) == [["late", "once", "wrong-clock"], ["late"], [], []]


class FullDisk(MemoryStore):
    """A store that can be full."""

    is_full = False

    async def write(self, write: Write) -> Stored:
        if self.is_full:
            raise StoreFailed("the disk is full")
        return await super().write(write)


def test_events_that_cannot_be_deleted_on_a_full_disk_are_reported_once_a_minute_and_deleted_later(caplog):
    async def main() -> list[str]:
        clock, store = VirtualClock(), FullDisk()
        server = ApiServer(store, clock=clock)
        await server.start()
        for number in range(10):
            await create(server, EVENTS, event(f"old-{number}"))
        store.is_full = True
        await clock.sleep(timedelta(minutes=61, seconds=30))  # two sweeps
        store.is_full = False
        await clock.sleep(timedelta(minutes=2))
        left = await names(server, EVENTS)
        await server.close()
        return left

    assert run_virtually(main()) == []
    reports = [record for record in caplog.records if "cannot be deleted now" in record.message]
    assert len(reports) == 2
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_leases_of_nodes_that_are_gone_expire():
    async def main() -> list[str]:
        clock = VirtualClock()
        server = ApiServer(MemoryStore(), clock=clock)
        await server.start()
        await create(server, "/api/v1/nodes", {"metadata": {"name": "here"}})
        for name in ("here", "gone"):
            await create(server, LEASES, {"metadata": {"name": name}, "spec": {"holderIdentity": name}})
        await clock.sleep(timedelta(minutes=90))
        left = await names(server, LEASES)
        await server.close()
        return left

    assert run_virtually(main()) == ["here"]
