"""A webhook manager that serves on loopback, the API server behind it, and builders for what is sent to it."""

import asyncio
import contextlib
import socket
import ssl
from datetime import timedelta
from pathlib import Path

import aiohttp
import msgspec
import trustme

from volcano.admission.chain import ALL_PATHS, BY_PATH
from volcano.admission.webhook.manager import WebhookOptions, WebhookService
from volcano.admission.webhook.registration import (
    Location,
    configuration_name,
    configuration_type,
)
from volcano.admission.webhook.serving_certificates import CertificateFiles
from volcano.api.batch import Job
from volcano.api.meta import Key
from volcano.api.scheduling import Queue
from volcano.api.scheme import resource_type
from volcano.embedded.apiserver.server import ApiServer
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.machinery.client import Client
from volcano.machinery.clock import SystemClock, VirtualClock, run_virtually
from volcano.machinery.transport import InProcess, User

JOBS, QUEUES = resource_type(Job), resource_type(Queue)
TEMPLATE = {"spec": {"containers": [{"name": "c", "image": "busybox"}]}}
DEADLINE = 20
SOON = timedelta(milliseconds=20)


def a_review(path, new=None, old=None, *, operation="CREATE", **more):
    row = BY_PATH[path].resource
    resource = {"group": row.group, "version": row.version, "resource": row.plural}
    request = {
        "uid": "u-1",
        "resource": resource,
        "kind": {"kind": row.kind},
        "operation": operation,
        "object": new,
        "oldObject": old,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {**request, **more}}


def issued(folder: Path, authority: trustme.CA) -> CertificateFiles:
    folder.mkdir(exist_ok=True)
    pair = authority.issue_cert("localhost", "127.0.0.1")
    files = CertificateFiles(folder / "tls.crt", folder / "tls.key", folder / "ca.crt")
    for path, content in (
        (files.certificate, b"".join(blob.bytes() for blob in pair.cert_chain_pems)),
        (files.key, pair.private_key_pem.bytes()),
        (files.authority, authority.cert_pem.bytes()),
    ):
        aside = path.with_suffix(".new")
        aside.write_bytes(content)
        aside.replace(path)
    return files


def trusting(files: CertificateFiles) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=files.authority.read_text())


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Site:
    """A webhook manager that serves, the API server behind it, and a way to ask."""

    def __init__(self, service, client, files):
        self.service, self.client, self.files = service, client, files

    async def post(self, path, body, **headers):
        data = body if isinstance(body, bytes) else msgspec.json.encode(body)
        given = {"content-type": "application/json", **headers}
        return await self.send("POST", f"https://127.0.0.1:{self.service.port}{path}", data=data, headers=given)

    async def send(self, method, url, **request):
        connector = aiohttp.TCPConnector(ssl=trusting(self.files))
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.request(method, url, **request) as reply,
        ):
            return reply.status, await reply.read()

    async def ask(self, path, *objects, **more):
        status, body = await self.post(path, a_review(path, *objects, **more))
        assert status == 200
        return msgspec.json.decode(body)["response"]


@contextlib.asynccontextmanager
async def site(tmp_path, *, paths=ALL_PATHS, **options):
    clock, store = SystemClock(), MemoryStore()
    server = ApiServer(store, clock=clock)
    await server.start()
    client = Client(InProcess(server.handle, User("webhook", ("system:masters",))))
    files = issued(tmp_path / "tls", trustme.CA())
    port = free_port()
    location = Location(namespace="volcano-system", url=f"https://127.0.0.1:{port}")
    service = WebhookService(
        client,
        clock,
        WebhookOptions(location=location, paths=paths, files=files, host="127.0.0.1", port=port, **options),
    )
    running = asyncio.ensure_future(service.run())
    try:
        ready = asyncio.ensure_future(service.ready.wait())
        await asyncio.wait({ready, running}, timeout=DEADLINE, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
        assert service.ready.is_set()
        yield Site(service, client, files)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await server.close()


async def open_queue(client, name="default", **spec):
    row = resource_type(Queue)
    await client.create(row, {"metadata": {"name": name}, "spec": {"weight": 1, **spec}})
    await client.patch(row, Key("", name), {"status": {"state": "Open"}}, subresource="status")


def a_job(**spec):
    return {
        "metadata": {"name": "j", "namespace": "default"},
        "spec": {"queue": "default", "tasks": [{"name": "t", "replicas": 1, "template": TEMPLATE}], **spec},
    }


async def registered(client, path):
    found = await client.get_json(configuration_type(BY_PATH[path]), Key("", configuration_name(path)))
    return found["webhooks"][0]


def virtually(play):
    async def run():
        clock = VirtualClock()
        server = ApiServer(MemoryStore(), clock=clock)
        await server.start()
        try:
            await play(Client(InProcess(server.handle, User("webhook", ("system:masters",)))), clock)
        finally:
            await server.close()

    run_virtually(run())
