"""Serve an ApiServer over HTTPS while a block runs: bind, serve, keep certificates valid, stop gracefully."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from volcano.embedded.apiserver.access.authorization import MASTERS
from volcano.embedded.apiserver.server import ApiServer
from volcano.embedded.apiserver.serving.asgi import AsgiApp, HttpLimits
from volcano.embedded.apiserver.serving.connect import Connector
from volcano.embedded.apiserver.serving.kubelet_streams import TUNNEL
from volcano.embedded.apiserver.upkeep.bootstrap import ADMIN
from volcano.embedded.apiserver.upkeep.own_service import publish
from volcano.embedded.apiserver.wire.extension_client import FRONT_PROXY_NAME
from volcano.machinery.certificate_renewal import CHECK_INTERVAL, FollowedPair
from volcano.machinery.certificates import Authority, Pair, kubeconfig, server_context, write_private
from volcano.machinery.clock import Clock
from volcano.machinery.https_server import ServerLimits, bind, serving_https

log = logging.getLogger(__name__)

DEFAULT_PORT: Final = 6443


class Serving(msgspec.Struct):
    """A running server: its address, its CA and the admin's certificate, which is exchanged when it is renewed."""

    url: str
    host: str
    port: int
    authority: Authority
    admin: Pair

    def kubeconfig(self, pair: Pair | None = None, *, user: str = "admin") -> bytes:
        """A kubeconfig for the administrator, or for the user that the pair was issued to."""
        return kubeconfig(self.url, self.authority.pair.certificate, pair or self.admin, user=user)


@contextlib.asynccontextmanager
async def serve(
    server: ApiServer,
    *,
    pki: Path,
    clock: Clock,
    host: str = "127.0.0.1",
    port: int | None = DEFAULT_PORT,
    must_have_port: bool = False,
    hosts: Sequence[str] = (),
    kubeconfig_path: Path | None = None,
    limits: HttpLimits | None = None,
) -> AsyncIterator[Serving]:
    """Bind, serve until left, then stop gracefully.

    A free port is used when none is wanted, and when the wanted one is taken unless the caller must have it.
    """
    listener = bind(host, port, or_any_free=not must_have_port)
    bound_host, bound_port = listener.getsockname()[:2]
    now = clock.now()
    authority = await clock.run(lambda: Authority(pki, now))
    names = {*hosts, *({bound_host} - {"0.0.0.0", "::"}), socket.gethostname()}
    context = await clock.run(lambda: server_context(authority, sorted(names), now))
    admin = await clock.run(lambda: _admin_pair(authority, now))
    reachable = "127.0.0.1" if bound_host in ("0.0.0.0", "::") else bound_host
    url = f"https://{f'[{reachable}]' if ':' in reachable else reachable}:{bound_port}"
    serving = Serving(url, reachable, bound_port, authority, admin)
    kubelets = await clock.run(lambda: _kubelet_context(authority, now))
    server.backend.outbound.kubelet_context = kubelets
    connector = Connector(server, kubelets)
    server.backend.extension_client.certificate = await clock.run(lambda: _front_proxy_file(authority, now))
    await publish(server.handle, reachable, bound_port, authority.pair.certificate)
    app = AsgiApp(server, connector, limits)
    bounds = ServerLimits(header_seconds=app.limits.header_seconds, reserved_organization=MASTERS)
    renewed = [
        FollowedPair(context, pki / "server.pem", renew=lambda now: authority.server_pair(sorted(names), now)),
        FollowedPair(kubelets, pki / "kubelet-client.pem", renew=lambda now: _kubelet_client_file(authority, now)),
    ]
    async with serving_https(app, listener, context, bounds, tunnel_prefix=TUNNEL):
        if kubeconfig_path is not None:
            kubeconfig_path.parent.mkdir(parents=True, exist_ok=True)
            write_private(kubeconfig_path, serving.kubeconfig())
        upkeep = [each.follow(clock) for each in renewed] + [_renew_admin(serving, kubeconfig_path, clock)]
        tasks = [asyncio.ensure_future(each) for each in upkeep]
        try:
            yield serving
        finally:
            for task in tasks:
                task.cancel()
            server.backend.hub.close()  # ends the watches, which the server would otherwise wait for


async def _renew_admin(serving: Serving, kubeconfig_path: Path | None, clock: Clock) -> None:
    """Until cancelled: exchange the administrator's certificate before it ends, in the kubeconfig, too."""
    while True:
        await clock.sleep(CHECK_INTERVAL)
        now = clock.now()
        try:
            admin = await clock.run(lambda: _admin_pair(serving.authority, now))  # noqa: B023
            await clock.run(lambda: _front_proxy_file(serving.authority, now))  # noqa: B023
            if admin == serving.admin:
                continue
            serving.admin = admin
            if kubeconfig_path is not None:
                write_private(kubeconfig_path, serving.kubeconfig())
            log.info("the administrator's certificate was renewed")
        except OSError as error:
            log.warning("the administrator's certificate could not be renewed: %s", error)


def _admin_pair(authority: Authority, now: datetime) -> Pair:
    return authority.client_pair(ADMIN.name, ("system:masters",), now, file_name="admin")


def _kubelet_client_file(authority: Authority, now: datetime) -> Path:
    return authority.client_file("kube-apiserver-kubelet-client", ("system:masters",), now, file_name="kubelet-client")


def _kubelet_context(authority: Authority, now: datetime) -> ssl.SSLContext:
    """TLS towards kubelets: our CA signed their certificates, and they authenticate us by a client certificate."""
    context = ssl.create_default_context(cafile=str(authority.certificate_path))
    context.check_hostname = False  # kubelets are addressed by IP; that our CA signed the certificate is the check
    context.load_cert_chain(_kubelet_client_file(authority, now))
    return context


def _front_proxy_file(authority: Authority, now: datetime) -> Path:
    """Our client certificate towards extension servers; it has no rights here."""
    return authority.client_file(FRONT_PROXY_NAME, (), now, file_name=FRONT_PROXY_NAME)
