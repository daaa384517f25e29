"""The dashboard beside the embedded system: its address, the link that signs in once, and who signs in with it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import msgspec

from volcano.app.port_holder import holder_of
from volcano.machinery.certificate_renewal import FollowedPair
from volcano.machinery.certificates import Authority, server_context, write_private
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock
from volcano.machinery.https_server import (
    PortUnavailable,
    Receive,
    Scope,
    Send,
    ServerLimits,
    bind,
    serving_https,
)
from volcano.machinery.ids import RandomIds
from volcano.machinery.transport import User

if TYPE_CHECKING:
    from volcano.app.system import System
    from volcano.dashboard.application import Dashboard
    from volcano.dashboard.web import WebApplication

log = logging.getLogger(__name__)

DEFAULT_PORT: Final = 8480
LOOPBACK: Final = "127.0.0.1"
LOOPBACK_NAMES: Final = frozenset({"127.0.0.1", "localhost", "::1"})
LINK_FILE: Final = "dashboard-link"
CERTIFICATE: Final = "dashboard"
"""The name of its files beside the API server's, which has other hosts."""
OFF: Final = "off"
STOP_SECONDS: Final = 1
"""Open pages are connected for ever; their browsers connect again."""

PREPARED_AFTER: Final = timedelta(seconds=3)
"""The start of the system, so that it does not take longer."""


class DashboardAddress(msgspec.Struct, frozen=True):
    host: str = LOOPBACK
    port: int = DEFAULT_PORT
    must_have_port: bool = False

    @property
    def is_local(self) -> bool:
        return self.host in LOOPBACK_NAMES


def parse_dashboard(text: str) -> DashboardAddress | None:
    """`off`, `8480`, `127.0.0.1:8480` or empty for the default; None: no dashboard."""
    if text == OFF:
        return None
    if not text:
        return DashboardAddress()
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise click.BadParameter(f"{text!r} is neither off nor PORT nor HOST:PORT", param_hint="--dashboard")
    return DashboardAddress(host.strip("[]") or LOOPBACK, int(port), must_have_port=port != "0")


class LazyApplication:
    """The ASGI application, made soon after the start or with the first request: `volcano up` is up without it."""

    def __init__(
        self, system: asyncio.Future[System], make: Callable[[System], tuple[WebApplication, Dashboard]]
    ) -> None:
        self._system, self._make = system, make
        self._made: tuple[WebApplication, Dashboard] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (await self._application())[0](scope, receive, send)

    async def _application(self) -> tuple[WebApplication, Dashboard]:
        """Once the system's components are there, whose objects the pages share."""
        system = await asyncio.shield(self._system)
        if self._made is None:
            self._made = self._make(system)
        return self._made

    async def prepare(self, clock: Clock) -> None:
        """So that the first page need not wait for imports, first lists and first views."""
        await asyncio.shield(self._system)
        await clock.sleep(PREPARED_AFTER)
        await clock.run(import_dashboard)
        await (await self._application())[1].prepare()

    async def close(self) -> None:
        if self._made is not None:
            await self._made[1].close()


def import_dashboard() -> None:
    """In a thread: the imports take a tenth of a second."""
    import volcano.dashboard.application  # noqa: F401


@contextlib.asynccontextmanager
async def dashboard_beside(
    system: asyncio.Future[System],
    folder: Path,
    clock: Clock,
    address: DashboardAddress,
    announce: Callable[[str], None],
) -> AsyncIterator[str]:
    """Serve while the block runs; yields the first link. `announce` is called with each further one.

    Requests that come before the system is there wait for it.
    """
    try:
        listener = bind(address.host, address.port, or_any_free=not address.must_have_port)
    except PortUnavailable as error:
        holder = await clock.run(lambda: holder_of(address.port))
        whose = f"; {holder} listens there" if holder else ""
        raise click.ClickException(f"{error.strerror}{whose}; choose another --dashboard, or off") from error
    port = listener.getsockname()[1]
    context, followed = None, None
    if not address.is_local:
        now = clock.now()
        authority = await clock.run(lambda: Authority(folder / "pki", now))
        context = await clock.run(lambda: server_context(authority, [address.host], now, file_name=CERTIFICATE))
        followed = FollowedPair(
            context,
            folder / "pki" / f"{CERTIFICATE}.pem",
            renew=lambda now: authority.server_pair([address.host], now, file_name=CERTIFICATE),
        )
    shown = f"[{address.host}]" if ":" in address.host else address.host
    place = f"{'https' if context else 'http'}://{shown}:{port}/"
    ids = RandomIds()

    def link(token: str) -> str:
        made = f"{place}login?token={token}"
        write_private(folder / LINK_FILE, f"{made}\n".encode())
        return made

    first = ids.token().hex()
    app = LazyApplication(
        system, lambda found: _application(found, clock, address, port, first, lambda token: announce(link(token)))
    )
    limits = ServerLimits(stop_seconds=STOP_SECONDS, stranger_idle_seconds=60)
    async with serving_https(app, listener, context, limits):
        preparing = asyncio.ensure_future(app.prepare(clock))
        try:
            async with followed.followed(clock) if followed is not None else contextlib.nullcontext():
                yield link(first)
        finally:
            preparing.cancel()
            await asyncio.gather(preparing, return_exceptions=True)
            await app.close()
            (folder / LINK_FILE).unlink(missing_ok=True)


def _application(
    system: System, clock: Clock, address: DashboardAddress, port: int, first: str, announce: Callable[[str], None]
) -> tuple[WebApplication, Dashboard]:
    from volcano.dashboard.application import Dashboard, DashboardSettings
    from volcano.dashboard.callers import Caller
    from volcano.dashboard.logins import TokenLogin
    from volcano.dashboard.sessions import OneTimeToken
    from volcano.dashboard.watched import Watched
    from volcano.dashboard.web import WebApplication
    from volcano.embedded.apiserver.upkeep.bootstrap import ADMIN
    from volcano.scheduler.cache import FOLLOWED

    def client_for(token: str, user: User) -> Client:
        return system.client_of(user, "dashboard")

    own = system.client("dashboard")
    settings = DashboardSettings(
        port=port,
        hosts=LOOPBACK_NAMES if address.is_local else frozenset(),
        about="embedded",
        owner=lambda: Caller(ADMIN.name, ADMIN.groups, system.client_of(ADMIN, "dashboard"), clock),
    )
    watched = Watched(own, clock, dict.fromkeys(FOLLOWED, system.scheduler.mirror))
    link = OneTimeToken(RandomIds(), announce, first=first)
    dashboard = Dashboard(watched, TokenLogin(own, clock, client_for), clock, RandomIds(), settings, link=link)
    return WebApplication(dashboard.answer), dashboard
