"""Serve an ApiServer over HTTPS: bind, serve, and stop gracefully, as an async context manager."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
import uvicorn

from volcano.embedded.apiserver.server import ApiServer
from volcano.embedded.apiserver.serving.asgi import AsgiApp, HttpLimits, VolcanoProtocol
from volcano.embedded.apiserver.serving.connect import Connector
from volcano.embedded.apiserver.upkeep.bootstrap import ADMIN
from volcano.embedded.apiserver.upkeep.own_service import publish
from volcano.machinery.certificates import Authority, Pair, kubeconfig, server_context, write_private
from volcano.machinery.clock import Clock

DEFAULT_PORT: Final = 6443
KEEP_ALIVE_SECONDS: Final = 90
STOP_SECONDS: Final = 5
MOST_CONNECTIONS: Final = 4096


class Serving(msgspec.Struct, frozen=True):
    """A server that answers: where, and how to be trusted by it."""

    url: str
    host: str
    port: int
    authority: Authority
    admin: Pair

    def kubeconfig(self, pair: Pair | None = None, *, user: str = "admin") -> bytes:
        """A kubeconfig for the admin, or for whoever the pair was issued to."""
        return kubeconfig(self.url, self.authority.pair.certificate, pair or self.admin, user=user)


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers: whoever runs us decides what a signal means."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextlib.asynccontextmanager
async def serve(
    server: ApiServer,
    *,
    pki: Path,
    clock: Clock,
    host: str = "127.0.0.1",
    port: int | None = DEFAULT_PORT,
    hosts: Sequence[str] = (),
    kubeconfig_path: Path | None = None,
    limits: HttpLimits | None = None,
) -> AsyncIterator[Serving]:
    """Bind (a free port when the wanted one is taken or none is wanted), serve until left, then stop gracefully."""
    listener = bind(host, port)
    bound_host, bound_port = listener.getsockname()[:2]
    now = clock.now()
    authority = await clock.run(lambda: Authority(pki, now))
    names = {*hosts, *({bound_host} - {"0.0.0.0", "::"}), socket.gethostname()}
    context = await clock.run(lambda: server_context(authority, sorted(names), now))
    admin = await clock.run(lambda: authority.client_pair(ADMIN.name, ("system:masters",), now, file_name="admin"))
    reachable = "127.0.0.1" if bound_host in ("0.0.0.0", "::") else bound_host
    url = f"https://{f'[{reachable}]' if ':' in reachable else reachable}:{bound_port}"
    serving = Serving(url, reachable, bound_port, authority, admin)
    kubelets = _kubelet_context(authority, pki, clock)
    server.backend.outbound.kubelet_context = kubelets
    connector = Connector(server, kubelets)
    await publish(server.handle, reachable, bound_port)
    async with _running(AsgiApp(server, connector, limits), listener, context, server):
        if kubeconfig_path is not None:
            kubeconfig_path.parent.mkdir(parents=True, exist_ok=True)
            write_private(kubeconfig_path, serving.kubeconfig())
        yield serving


def bind(host: str, port: int | None) -> socket.socket:
    """A listening socket; port 0 (a free one) when the wanted one is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for candidate in (port, 0) if port else (0,):
        # asyncio sends small answers at once (TCP_NODELAY) only on sockets that say they are TCP
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, candidate))
            listener.listen(1024)
        except OSError:
            listener.close()
            if candidate == 0:
                raise
            continue
        listener.setblocking(False)
        return listener
    raise AssertionError("port 0 binds or raises")


def _kubelet_context(authority: Authority, pki: Path, clock: Clock) -> ssl.SSLContext:
    """How kubelets are trusted (our CA signed them) and how they know us."""
    pair = authority.client_pair(
        "kube-apiserver-kubelet-client", ("system:masters",), clock.now(), file_name="kubelet-client"
    )
    path = pki / "kubelet-client.pem"
    write_private(path, pair.certificate + pair.key)
    context = ssl.create_default_context(cafile=str(authority.certificate_path))
    context.check_hostname = False  # kubelets are found by address, and their certificate is from our CA
    context.load_cert_chain(path)
    return context


@contextlib.asynccontextmanager
async def _running(
    app: AsgiApp, listener: socket.socket, context: ssl.SSLContext | None, server: ApiServer
) -> AsyncIterator[None]:
    config = uvicorn.Config(
        app,
        http=VolcanoProtocol,
        ws="websockets-sansio",
        ws_max_size=4 * 2**20,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=STOP_SECONDS,
        limit_concurrency=MOST_CONNECTIONS,
        proxy_headers=False,
    )
    config.load()
    config.ssl = context
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    runner = _Server(config)
    task = asyncio.ensure_future(runner.serve(sockets=[listener]))
    try:
        while not runner.started:
            if task.done():
                await task
            await asyncio.wait([task], timeout=0.005)
        yield
    finally:
        server.backend.hub.close()
        runner.should_exit = True
        await task
        listener.close()
