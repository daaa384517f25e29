"""`volcano dashboard`: the dashboard for any Kubernetes API server; people sign in with their own bearer tokens."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from volcano.api.history_records import HISTORY_PATH
from volcano.app.component import find_endpoint, run_component, tls_from_files
from volcano.app.dashboard_service import DEFAULT_PORT, LOOPBACK, LOOPBACK_NAMES, STOP_SECONDS
from volcano.dashboard.application import Dashboard, DashboardSettings
from volcano.dashboard.logins import TokenLogin
from volcano.dashboard.oidc import DEFAULT_SCOPES, OidcLogin, OidcSettings, is_safe
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


class ProviderTransports:
    """One transport for each origin of an identity provider: its endpoints may be on several hosts."""

    def __init__(self, clock: Clock, ca: bytes | None) -> None:
        self._clock, self._ca = clock, ca
        self._opened: dict[str, HttpTransport] = {}

    def __call__(self, origin: str) -> Transport:
        if origin not in self._opened:
            self._opened[origin] = HttpTransport(Endpoint(server=origin, ca=self._ca), self._clock)
        return self._opened[origin]

    async def close(self) -> None:
        for transport in self._opened.values():
            await transport.close()


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
@click.option("--oidc-issuer-url", default="", help="Issuer of OpenID Connect; people may then sign in there.")
@click.option("--oidc-client-id", default="", help="What the issuer knows this dashboard as.")
@click.option("--oidc-client-secret-file", default="", help="File with the client's secret, where it has one.")
@click.option("--oidc-ca-file", default="", help="Certificates (PEM) to trust the issuer by [default: the system's].")
@click.option(
    "--oidc-scope", "oidc_scopes", multiple=True, help="A scope to ask for beside openid [default: profile, email]."
)
@click.option(
    "--oidc-redirect-url",
    default="",
    help="The address of /login/oidc/callback, as browsers reach it [default: from each request].",
)
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
    flags["oidc"] = _oidc(flags)
    run_component(lambda: _main(flags), verbosity=flags["verbosity"])


def _oidc(flags: dict[str, Any]) -> OidcSettings | None:
    issuer, client = flags["oidc_issuer_url"], flags["oidc_client_id"]
    if bool(issuer) != bool(client):
        raise click.UsageError("--oidc-issuer-url and --oidc-client-id belong together")
    if not issuer:
        return None
    if not is_safe(issuer):
        raise click.BadParameter(f"{issuer!r} is not an https address", param_hint="--oidc-issuer-url")
    secret = _read(flags["oidc_client_secret_file"], "--oidc-client-secret-file").decode().strip()
    scopes = tuple(flags["oidc_scopes"]) or DEFAULT_SCOPES
    return OidcSettings(issuer, client, secret, scopes, flags["oidc_redirect_url"])


def _read(path: str, flag: str) -> bytes:
    try:
        return Path(path).read_bytes() if path else b""
    except OSError as error:
        raise click.BadParameter(f"{path}: {error.strerror}", param_hint=flag) from error


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
    providers = ProviderTransports(clock, _read(flags.get("oidc_ca_file", ""), "--oidc-ca-file") or None)
    asked: OidcSettings | None = flags.get("oidc")
    oidc = OidcLogin(asked, clock, RandomIds(), providers) if asked is not None else None
    tokens = TokenLogin(own, clock, client_for)
    dashboard = Dashboard(watched, tokens, clock, RandomIds(), settings, oidc=oidc)
    limits = ServerLimits(stop_seconds=STOP_SECONDS, stranger_idle_seconds=IDLE_SECONDS)
    tls = tls_from_files(clock, flags["tls_cert_file"], flags["tls_private_key_file"])
    preparing = asyncio.ensure_future(dashboard.prepare())
    try:
        async with tls as context, serving_https(WebApplication(dashboard.answer), listener, context, limits):
            yield f"{'https' if context else 'http'}://{host}:{settings.port}/"
    finally:
        preparing.cancel()
        await asyncio.gather(preparing, return_exceptions=True)
        await dashboard.close()
        await own.close()
        await plain.close()
        await providers.close()
        if history is not None:
            await history.close()
