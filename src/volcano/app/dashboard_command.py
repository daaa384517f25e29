"""`volcano dashboard`: the dashboard for any Kubernetes API server; people sign in with their own bearer tokens."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, Final

import click
import msgspec

from volcano.api.history_records import HISTORY_PATH
from volcano.app.component import find_endpoint, run_component, tls_from_files
from volcano.app.dashboard_service import DEFAULT_PORT, LOOPBACK, LOOPBACK_NAMES, STOP_SECONDS
from volcano.dashboard.application import Dashboard, DashboardSettings
from volcano.dashboard.logins import TokenLogin
from volcano.dashboard.watched import Watched
from volcano.dashboard.web import WebApplication
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock, SystemClock
from volcano.machinery.http_endpoints import parse_address
from volcano.machinery.http_transport import HttpTransport
from volcano.machinery.https_server import PortUnavailable, ServerLimits, bind, serving_https
from volcano.machinery.ids import RandomIds
from volcano.machinery.kubeconfig import Endpoint
from volcano.machinery.transport import Request, Response, Transport, User

IDLE_SECONDS: Final = 60


class BearerTransport:
    """Requests with one person's token, over connections that all share."""

    def __init__(self, shared: Transport, token: str, history: Transport | None = None) -> None:
        self._shared, self._token, self._history = shared, token, history

    async def send(self, request: Request) -> Response:
        headers = {**request.headers, "authorization": f"Bearer {self._token}"}
        is_past = self._history is not None and request.path.startswith(HISTORY_PATH)
        transport = self._history if is_past and self._history is not None else self._shared
        return await transport.send(msgspec.structs.replace(request, headers=headers))

    async def close(self) -> None:
        return None


@click.command()
@click.option("--master", default="", help="Address of the API server; overrides the kubeconfig.")
@click.option("--kubeconfig", default="", help="Path of a kubeconfig, for what is followed and for TokenReviews.")
@click.option(
    "--listen-address", default=f"{LOOPBACK}:{DEFAULT_PORT}", show_default=True, help="Where pages are served."
)
@click.option("--tls-cert-file", default="", help="Certificate (PEM); pages are then served over HTTPS.")
@click.option("--tls-private-key-file", default="", help="Its key (PEM).")
@click.option(
    "--host",
    "hosts",
    multiple=True,
    help="A name under which the server may be addressed [default: any, or loopback names].",
)
@click.option("--history-server", default="", help="Address of `volcano history`, for usage and past moments.")
@click.option("--behind-tls", is_flag=True, help="A proxy in front ends TLS: cookies are marked Secure.")
@click.option("-v", "--v", "verbosity", type=int, default=0, help="Log verbosity.")
def dashboard_command(**flags: Any) -> None:
    """Serve the dashboard for a cluster. People sign in with their own tokens and see what these may.

    \b
    Examples:
      volcano dashboard --kubeconfig ~/.kube/config
      volcano dashboard --listen-address :8443 --tls-cert-file tls.crt --tls-private-key-file tls.key
    """
    if bool(flags["tls_cert_file"]) != bool(flags["tls_private_key_file"]):
        raise click.UsageError("--tls-cert-file and --tls-private-key-file belong together")
    host, _ = _address(flags["listen_address"])
    if host not in LOOPBACK_NAMES and not flags["tls_cert_file"] and not flags["behind_tls"]:
        raise click.UsageError(
            f"tokens would be sent without encryption to {host}: give --tls-cert-file and --tls-private-key-file, "
            "or --behind-tls where a proxy in front ends TLS"
        )
    run_component(lambda: _main(flags), verbosity=flags["verbosity"])


def _address(text: str) -> tuple[str, int]:
    try:
        return parse_address(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is not HOST:PORT", param_hint="--listen-address") from error


async def _main(flags: dict[str, Any]) -> None:
    clock = SystemClock()
    async with serving_dashboard(find_endpoint(flags["kubeconfig"], flags["master"]), clock, flags) as place:
        click.echo(f"dashboard: {place}")
        await asyncio.Event().wait()


@contextlib.asynccontextmanager
async def serving_dashboard(endpoint: Endpoint, clock: Clock, flags: dict[str, Any]) -> AsyncIterator[str]:
    """Serve while the block runs; yields the address."""
    host, port = _address(flags["listen_address"])
    try:
        listener = bind(host, port)
    except PortUnavailable as error:
        raise click.ClickException(f"{error.strerror}; choose another --listen-address") from error
    own = Client(HttpTransport(endpoint, clock), agent="volcano-dashboard")
    plain = HttpTransport(
        msgspec.structs.replace(
            endpoint, tokens=None, client_certificate=None, client_key=None, user="", password="", impersonate=""
        ),
        clock,
    )

    history = (
        HttpTransport(Endpoint(server=flags["history_server"].rstrip("/")), clock) if flags["history_server"] else None
    )

    def client_for(token: str, user: User) -> Client:
        return Client(BearerTransport(plain, token, history), agent="volcano-dashboard")

    names = frozenset(flags["hosts"]) or (LOOPBACK_NAMES if host in LOOPBACK_NAMES else frozenset())
    settings = DashboardSettings(
        port=listener.getsockname()[1], hosts=names, about=endpoint.server, is_behind_tls=flags["behind_tls"]
    )
    watched = Watched(own, clock)
    dashboard = Dashboard(watched, TokenLogin(own, clock, client_for), clock, RandomIds(), settings)
    limits = ServerLimits(stop_seconds=STOP_SECONDS, stranger_idle_seconds=IDLE_SECONDS)
    tls = tls_from_files(clock, flags["tls_cert_file"], flags["tls_private_key_file"])
    try:
        async with tls as context, serving_https(WebApplication(dashboard.answer), listener, context, limits):
            yield f"{'https' if context else 'http'}://{host}:{settings.port}/"
    finally:
        await dashboard.close()
        await own.close()
        await plain.close()
        if history is not None:
            await history.close()
