"""The first stage of the embedded system: its API server, which serves before other components are imported.

What a client needs to submit its first job exists when `served_api` yields: definitions, queues and service accounts,
and admission. The second stage, which acts on those objects, is app.components.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import click
import msgspec

from volcano.api.core import ServiceAccount
from volcano.api.errors import AlreadyExists
from volcano.api.meta import Key
from volcano.api.scheduling import Queue
from volcano.api.scheme import resource_type
from volcano.app.admission_plug import VolcanoAdmission
from volcano.app.data_directory_lock import locked
from volcano.app.port_holder import holder_of
from volcano.app.settings import DEFAULT_PORT, STORE
from volcano.app.system_settings import MASTERS, SystemSettings
from volcano.controllers.service.gates import POD_GATES_FEATURE
from volcano.embedded.apiserver.server import ApiServer
from volcano.embedded.apiserver.serving.serve import Serving, serve
from volcano.embedded.apiserver.store.contract import ObjectKey
from volcano.embedded.apiserver.store.log_file import UnusableFile
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.embedded.apiserver.store.sqlite_store import SqliteStore
from volcano.embedded.apiserver.upkeep.bootstrap import NAMESPACES
from volcano.machinery.certificates import UnusableKey, service_account_key
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock
from volcano.machinery.https_server import PortUnavailable
from volcano.machinery.transport import InProcess, User
from volcano.scheduler.service.initial_queues import create_queues

LOOPBACK: Final = "127.0.0.1"
FIRST_QUEUES: Final = ("root", "default")
BOOTSTRAP: Final = "volcano-bootstrap"


class ServedApi(msgspec.Struct):
    """The API server of a data directory, while it serves."""

    server: ApiServer
    admission: VolcanoAdmission
    clock: Clock
    settings: SystemSettings
    is_ready: bool = False
    """Whether clients find what they need; /readyz says so."""
    is_complete: bool = False
    """Whether all components are ready, too; /readyz/components says so."""


@contextlib.asynccontextmanager
async def served_api(
    folder: Path,
    clock: Clock,
    *,
    port: int = DEFAULT_PORT,
    must_have_port: bool = False,
    bind_address: str = LOOPBACK,
    ephemeral: bool = False,
    settings: SystemSettings | None = None,
) -> AsyncIterator[ServedApi]:
    """The API server, ready, for as long as the block runs; then it and its store are closed."""
    with locked(folder):
        store = MemoryStore() if ephemeral else open_store(folder / STORE)
        settings = settings or SystemSettings()
        admission = VolcanoAdmission(
            store, scheduler_names=settings.scheduler_names, gates_pods=settings.gates[POD_GATES_FEATURE]
        )
        signing_key = signing_key_of(folder)
        server = ApiServer(store, clock=clock, admission=admission, signing_key=signing_key)
        api = ServedApi(server, admission, clock, settings)
        server.health.add("system", lambda: "" if api.is_ready else "starting")
        server.health.add_apart("components", lambda: "" if api.is_complete else "starting")
        try:
            await server.start()
            async with serve_here(
                server, folder, clock, port=port, must_have_port=must_have_port, host=bind_address
            ) as serving:
                api.settings = msgspec.structs.replace(
                    settings, root_certificate=serving.authority.pair.certificate.decode()
                )
                await ensure_first_objects(server, clock)
                api.is_ready = True
                yield api
        finally:
            await server.close()


async def ensure_first_objects(server: ApiServer, clock: Clock) -> None:
    """What components would make soon after their start, and what the first job or pod cannot be without."""
    client = Client(InProcess(server.handle, User(f"system:{BOOTSTRAP}", MASTERS)), agent=BOOTSTRAP)
    store, accounts, queues = server.backend.store, resource_type(ServiceAccount), resource_type(Queue)
    for namespace in NAMESPACES:
        if store.find(ObjectKey(accounts.qualified, namespace, "default")) is None:
            with contextlib.suppress(AlreadyExists):
                await client.create(accounts, {"metadata": {"name": "default", "namespace": namespace}})
    if any(store.find(ObjectKey(queues.qualified, "", name)) is None for name in FIRST_QUEUES):
        await create_queues(client, clock, FIRST_QUEUES[-1])
        for name in FIRST_QUEUES:  # as the queue controller says it of a new queue; others take jobs only when open
            await client.patch(queues, Key("", name), {"status": {"state": "Open"}}, subresource="status")


@contextlib.asynccontextmanager
async def serve_here(
    server: ApiServer, folder: Path, clock: Clock, *, port: int, must_have_port: bool, host: str = LOOPBACK
) -> AsyncIterator[Serving]:
    """Serve with the keys of a data directory; a port that cannot be had is refused with who has it."""
    try:
        async with serve(
            server,
            pki=folder / "pki",
            clock=clock,
            host=host,
            port=port,
            must_have_port=must_have_port,
            kubeconfig_path=folder / "kubeconfig",
        ) as serving:
            if port and serving.port != port:
                click.echo(f"port {port} is taken; the API server listens on port {serving.port}", err=True)
            yield serving
    except UnusableKey as error:
        raise click.ClickException(str(error)) from error
    except PortUnavailable as error:
        holder = await clock.run(lambda: holder_of(port))
        whose = f"; {holder} listens there" if holder else ""
        raise click.ClickException(f"{error.strerror}{whose}; choose another --port") from error


def signing_key_of(folder: Path) -> bytes:
    """The key for tokens in a data directory; one that cannot be used is left as it is, and named."""
    try:
        return service_account_key(folder / "pki")
    except UnusableKey as error:
        raise click.ClickException(str(error)) from error


def open_store(path: Path) -> SqliteStore:
    """The store on disk; one that cannot be used is left as it is, and named."""
    try:
        return SqliteStore(path)
    except UnusableFile as error:
        raise click.ClickException(str(error)) from error
