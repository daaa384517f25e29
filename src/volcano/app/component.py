"""What every separately started component does the same way: find the API server, log, elect, serve health, stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
import signal
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, TypeVar

import click
import msgspec

from volcano.api.durations import parse_duration
from volcano.api.meta import Key
from volcano.app.settings import data_directory
from volcano.controllers.service.gates import UnknownGate, effective_gates
from volcano.machinery.certificate_renewal import FollowedPair
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock, SystemClock
from volcano.machinery.garbage_collection import collect_fully_every, survivors_frozen
from volcano.machinery.ids import RandomIds
from volcano.machinery.kubeconfig import ConfigError, Endpoint, load_endpoint
from volcano.machinery.leader import Election, ElectionSettings, LostLeadership

F = TypeVar("F", bound=Callable[..., Any])

OPEN_FILES: Final = 65_536
THREAD_SWITCH_INTERVAL: Final = timedelta(milliseconds=1)
"""Of one thread while another waits: a request takes several, and must not wait long beside a scheduling cycle."""


class ElectionOptions(msgspec.Struct, frozen=True):
    """The `--leader-elect*` flags."""

    elect: bool
    lease: Key
    settings: ElectionSettings


def find_endpoint(kubeconfig: str, master: str = "") -> Endpoint:
    """By the usual rules; the embedded system's kubeconfig where no other is configured."""
    try:
        return load_endpoint(kubeconfig or None, server=master)
    except ConfigError:
        own = data_directory() / "kubeconfig"
        if kubeconfig or not own.is_file():
            raise
        return load_endpoint(own, server=master)


@contextlib.asynccontextmanager
async def connected(kubeconfig: str, master: str, *, clock: Clock, agent: str) -> AsyncIterator[Client]:
    from volcano.machinery.http_transport import HttpTransport  # `volcano up` uses this module without it

    client = Client(HttpTransport(find_endpoint(kubeconfig, master), clock), agent=agent)
    try:
        yield client
    finally:
        await client.close()


async def lead_or_just_work(
    client: Client, clock: Clock, options: ElectionOptions, work: Callable[[], Awaitable[None]]
) -> None:
    if not options.elect:
        await work()
        return
    identity = f"{socket.gethostname()}_{RandomIds().uid()}"
    await Election(client, clock, options.lease, identity, options.settings).lead(work)


def run_component(main: Callable[[], Awaitable[None]], *, verbosity: int = 0) -> None:
    """Run to the end or to a signal; SIGTERM and Ctrl-C stop cleanly, a lost lease or bad configuration exits 1."""
    log_to_stderr(verbosity)
    try:
        run_until_signalled(main)
    except (ConfigError, LostLeadership) as error:
        raise click.ClickException(str(error)) from error


def run_until_signalled(main: Callable[[], Awaitable[None]]) -> None:
    sys.setswitchinterval(THREAD_SWITCH_INTERVAL.total_seconds())
    allow_open_files()
    with survivors_frozen(), asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_until_signalled(main))


def allow_open_files() -> None:
    """Use what the hard limit allows: shells set the soft one to 1024, which a few hundred clients would fill."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:  # not on every platform
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


async def _until_signalled(main: Callable[[], Awaitable[None]]) -> None:
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(main())
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    collecting = asyncio.ensure_future(collect_fully_every(SystemClock()))
    try:
        with contextlib.suppress(asyncio.CancelledError):
            await task
    finally:
        collecting.cancel()


def log_to_stderr(verbosity: int = 0) -> None:
    level = logging.DEBUG if verbosity > 3 else logging.INFO if verbosity >= 0 else logging.WARNING
    logging.basicConfig(stream=sys.stderr, level=level, format="%(asctime)s %(levelname).1s %(name)s: %(message)s")
    logging.getLogger("asyncio").setLevel(logging.WARNING)


@contextlib.asynccontextmanager
async def tls_from_files(clock: Clock, certificate: str, key: str) -> AsyncIterator[ssl.SSLContext | None]:
    """TLS 1.2 or newer with the files that flags name, loaded again when they change; None where none is named."""
    if not (certificate and key):
        yield None
        return
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
    except OSError as error:  # ssl.SSLError is an OSError
        raise click.ClickException(f"{certificate}, {key}: {error}") from error
    async with FollowedPair(context, Path(certificate), Path(key)).followed(clock) as followed:
        yield followed


def tls_of_health(clock: Clock, flags: Mapping[str, Any]) -> contextlib.AbstractAsyncContextManager[Any]:
    """For a health endpoint: when all three files are given."""
    if not flags["ca_cert_file"]:
        return contextlib.nullcontext()
    return tls_from_files(clock, flags["tls_cert_file"], flags["tls_private_key_file"])


@contextlib.asynccontextmanager
async def serving_health(clock: Clock, flags: Mapping[str, Any]) -> AsyncIterator[None]:
    """GET /healthz, where the flags of `common_options` ask for it."""
    from volcano.machinery.http_endpoints import health_route, serving  # `volcano up` uses this module without it

    if not flags["enable_healthz"]:
        yield
        return
    routes = {("GET", "/healthz"): health_route()}
    async with tls_of_health(clock, flags) as context, serving(flags["healthz_address"], routes, context):
        yield


def common_options(lease: str) -> Callable[[F], F]:
    """The flags that the scheduler and the controller manager share."""
    options = [
        click.option("--master", default="", help="Address of the API server; overrides the kubeconfig."),
        click.option("--kubeconfig", default="", help="Path of a kubeconfig."),
        click.option("--ca-cert-file", default="", help="CA of the health endpoint."),
        click.option("--tls-cert-file", default="", help="Certificate of the health endpoint."),
        click.option("--tls-private-key-file", default="", help="Key of the health endpoint."),
        click.option(
            "--enable-healthz", type=bool, default=False, is_flag=False, flag_value=True, help="Answer GET /healthz."
        ),
        click.option("--healthz-address", default=":11251", show_default=True, help="Where /healthz is served."),
        click.option(
            "--enable-metrics",
            type=bool,
            default=False,
            is_flag=False,
            flag_value=True,
            help="Answer GET /metrics at --listen-address.",
        ),
        click.option(
            "--leader-elect",
            type=bool,
            default=True,
            is_flag=False,
            flag_value=True,
            show_default=True,
            help="Work only while holding the Lease; losing it ends the process.",
        ),
        click.option("--leader-elect-lease-duration", default="15s", show_default=True, help="How long others wait."),
        click.option(
            "--leader-elect-renew-deadline", default="10s", show_default=True, help="When the leader gives up."
        ),
        click.option("--leader-elect-retry-period", default="2s", show_default=True, help="Time between two tries."),
        click.option(
            "--leader-elect-resource-lock", default="leases", show_default=True, help="Only leases are known."
        ),
        click.option("--leader-elect-resource-name", default=lease, show_default=True, help="Name of the Lease."),
        click.option(
            "--leader-elect-resource-namespace",
            default="volcano-system",
            show_default=True,
            help="Namespace of the Lease.",
        ),
        click.option("--lock-object-namespace", default="", help="Deprecated: overrides the Lease's namespace."),
        click.option("--feature-gates", default="", help="Name=true|false, separated by commas."),
        click.option("--log-flush-frequency", default="5s", hidden=True),
        click.option("--logtostderr", type=bool, default=True, is_flag=False, flag_value=True, hidden=True),
        click.option("-v", "--v", "verbosity", type=int, default=0, help="Log verbosity."),
    ]

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def election_options(flags: dict[str, Any]) -> ElectionOptions:
    """From the flags of `common_options`."""
    namespace = flags["lock_object_namespace"] or flags["leader_elect_resource_namespace"]
    settings = ElectionSettings(
        lease_duration=parse_duration(flags["leader_elect_lease_duration"]),
        renew_deadline=parse_duration(flags["leader_elect_renew_deadline"]),
        retry_period=parse_duration(flags["leader_elect_retry_period"]),
    )
    return ElectionOptions(flags["leader_elect"], Key(namespace, flags["leader_elect_resource_name"]), settings)


def parse_feature_gates(text: str) -> dict[str, bool]:
    gates = {}
    for item in filter(None, text.split(",")):
        name, equals, value = item.strip().partition("=")
        if not equals or value.lower() not in ("true", "false"):
            raise click.BadParameter(f"{item!r} is not Name=true or Name=false", param_hint="--feature-gates")
        gates[name] = value.lower() == "true"
    return gates


def parse_gates(text: str) -> dict[str, bool]:
    """Every feature gate, as the flag or its default sets it."""
    try:
        return effective_gates(parse_feature_gates(text))
    except UnknownGate as error:
        raise click.BadParameter(str(error), param_hint="--feature-gates") from error
