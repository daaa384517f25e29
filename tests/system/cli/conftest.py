"""An embedded API server on HTTPS in a thread of its own, and commands called as a user would call them."""

import asyncio
import threading
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec
import pytest

from volcano.api.scheme import find_resource_type
from volcano.cli.programs import run_program
from volcano.embedded.apiserver.server import ADMIN, ApiServer
from volcano.embedded.apiserver.serving.serve import serve
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.machinery.client import Client
from volcano.machinery.clock import SystemClock
from volcano.machinery.transport import InProcess


class Embedded:
    """A server that other threads can use."""

    def __init__(self, folder):
        self.kubeconfig = folder / "kubeconfig"
        self._folder, self._loop = folder, asyncio.new_event_loop()
        self._ready, self._stop = threading.Event(), None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        assert self._ready.wait(30), "the server did not start"
        return self

    def __exit__(self, *_):
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(30)

    def _run(self):
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self):
        self._stop = asyncio.Event()
        clock = SystemClock()
        self.server = ApiServer(MemoryStore(), clock=clock)
        await self.server.start()
        self.client = Client(InProcess(self.server.handle, ADMIN))
        async with serve(self.server, pki=self._folder / "pki", clock=clock, port=0, kubeconfig_path=self.kubeconfig):
            self._ready.set()
            await self._stop.wait()
        await self.server.close()

    def do(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    def create(self, group, kind, body):
        return msgspec.json.decode(self.do(self.client.create(find_resource_type(group, kind), body)))

    def set_status(self, group, kind, key, status):
        resource = find_resource_type(group, kind)
        sub = "status" if resource.has_status else ""
        return self.do(self.client.patch(resource, key, {"status": status}, subresource=sub))

    def get(self, group, kind, key):
        return self.do(self.client.get_json(find_resource_type(group, kind), key))

    def items(self, group, kind, namespace=""):
        return self.do(self.client.list_json(find_resource_type(group, kind), namespace))["items"]

    def clear(self):
        for group, kind in (
            ("batch.volcano.sh", "Job"), ("bus.volcano.sh", "Command"), ("scheduling.volcano.sh", "PodGroup"),
            ("scheduling.volcano.sh", "Queue"), ("flow.volcano.sh", "JobFlow"), ("flow.volcano.sh", "JobTemplate"),
            ("", "Pod"), ("", "Node"), ("", "Event"), ("reservation.volcano.sh", "Reservation"),
        ):  # fmt: skip
            resource = find_resource_type(group, kind)
            for item in self.items(group, kind):
                from volcano.api.meta import Key

                key = Key(item["metadata"].get("namespace", ""), item["metadata"]["name"])
                self.do(self.client.delete(resource, key, {"gracePeriodSeconds": 0}))


@dataclass
class Answer:
    code: int
    out: str
    err: str


@pytest.fixture(scope="session")
def embedded_server(tmp_path_factory):
    with Embedded(tmp_path_factory.mktemp("embedded")) as server:
        yield server


@pytest.fixture
def server(embedded_server):
    embedded_server.clear()
    return embedded_server


@pytest.fixture
def call(server, capsys):
    """Run a program; --kubeconfig is appended, as Volcano's own tests do."""

    def _call(line, *more, connected=True):
        program, *words = [*line.split(), *more]
        if connected:
            words += ["--kubeconfig", str(server.kubeconfig)]
        code = run_program(program, words)
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return _call


def today():
    return datetime.now(UTC).astimezone().strftime("%Y-%m-%d")
