"""Serve an ApiServer over HTTPS: bind, serve, and stop gracefully, as an async context manager."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Sequence
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
from volcano.machinery.certificates import Authority, Pair, kubeconfig, server_context, write_private
from volcano.machinery.clock import Clock
from volcano.machinery.https_server import ServerLimits, bind, serving_https

DEFAULT_PORT: Final = 6443


class Serving(msgspec.Struct, frozen=True):
    """A running server: its address, its CA and the admin's certificate."""

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
    admin = await clock.run(lambda: authority.client_pair(ADMIN.name, ("system:masters",), now, file_name="admin"))
    reachable = "127.0.0.1" if bound_host in ("0.0.0.0", "::") else bound_host
    url = f"https://{f'[{reachable}]' if ':' in reachable else reachable}:{bound_port}"
    serving = Serving(url, reachable, bound_port, authority, admin)
    kubelets = _kubelet_context(authority, pki, clock)
    server.backend.outbound.kubelet_context = kubelets
    connector = Connector(server, kubelets)
    server.backend.extension_client.certificate = _front_proxy_certificate(authority, pki, clock)
    await publish(server.handle, reachable, bound_port, authority.pair.certificate)
    app = AsgiApp(server, connector, limits)
    bounds = ServerLimits(header_seconds=app.limits.header_seconds, reserved_organization=MASTERS)
    async with serving_https(app, listener, context, bounds, tunnel_prefix=TUNNEL):
        try:
            if kubeconfig_path is not None:
                kubeconfig_path.parent.mkdir(parents=True, exist_ok=True)
                write_private(kubeconfig_path, serving.kubeconfig())
            yield serving
        finally:
            server.backend.hub.close()  # ends the watches, which the server would otherwise wait for


def _kubelet_context(authority: Authority, pki: Path, clock: Clock) -> ssl.SSLContext:
    """TLS towards kubelets: our CA signed their certificates, and they authenticate us by a client certificate."""
    pair = authority.client_pair(
        "kube-apiserver-kubelet-client", ("system:masters",), clock.now(), file_name="kubelet-client"
    )
    path = pki / "kubelet-client.pem"
    write_private(path, pair.certificate + pair.key)
    context = ssl.create_default_context(cafile=str(authority.certificate_path))
    context.check_hostname = False  # kubelets are addressed by IP; that our CA signed the certificate is the check
    context.load_cert_chain(path)
    return context


def _front_proxy_certificate(authority: Authority, pki: Path, clock: Clock) -> Path:
    """Our client certificate towards extension servers; it has no rights here."""
    pair = authority.client_pair(FRONT_PROXY_NAME, (), clock.now(), file_name=FRONT_PROXY_NAME)
    path = pki / f"{FRONT_PROXY_NAME}.pem"
    write_private(path, pair.certificate + pair.key)
    return path
