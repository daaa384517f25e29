"""`volcano webhook-manager`: admission for any Kubernetes, served as AdmissionReview v1 over HTTPS."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import click
import msgspec

from volcano import __version__
from volcano.admission.chain import BY_PATH, DEFAULT_PATHS, AdmissionChain
from volcano.admission.pods import ConfigurationError, parse_resource_groups
from volcano.admission.review import INDEXES, Settings
from volcano.admission.webhook.https import ReviewApp, serving_reviews
from volcano.admission.webhook.registration import Location, RegistrationError, register
from volcano.admission.webhook.reviews import Reviewer
from volcano.admission.webhook.serving_certificates import CertificateError, CertificateFiles, Certificates, made_files
from volcano.api.core import Namespace
from volcano.api.durations import DurationError, parse_duration
from volcano.api.errors import ApiError
from volcano.api.scheduling import Queue
from volcano.app.component import connected, parse_feature_gates, run_component
from volcano.app.settings import data_directory
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock, SystemClock
from volcano.machinery.events import EventRecorder
from volcano.machinery.http_endpoints import health_route, serving
from volcano.machinery.informer import Informer
from volcano.machinery.world import Mirror

log = logging.getLogger(__name__)
F = TypeVar("F", bound=Callable[..., Any])
LOOK_EVERY: Final = timedelta(seconds=5)
GATE: Final = "SchedulingGatesQueueAdmission"
RENEW_EVERY: Final = timedelta(hours=12)
SYNC_WITHIN: Final = timedelta(minutes=5)


class WebhookOptions(msgspec.Struct, frozen=True):
    """The flags, parsed."""

    location: Location
    settings: Settings = Settings()
    paths: tuple[str, ...] = DEFAULT_PATHS
    host: str = "0.0.0.0"
    port: int = 8443
    files: CertificateFiles | None = None  # None: certificates of our own
    configuration: Path | None = None
    creates: bool = True
    healthz_address: str = ""
    stop_within: timedelta = timedelta(seconds=30)


class WebhookService:
    """Everything the process holds; `run` serves until cancelled."""

    def __init__(self, client: Client, clock: Clock, options: WebhookOptions) -> None:
        self._client, self._clock, self._options = client, clock, options
        self._chain = AdmissionChain(self._loaded(options.settings), enabled=options.paths)
        self._mirror = Mirror(clock.now, INDEXES)
        self._events = EventRecorder(client, clock, "vc-webhook-manager")
        self.port = 0
        self.ready = asyncio.Event()

    async def run(self) -> None:
        options = self._options
        files = options.files if options.files is not None else await self._clock.run(self._made_files)
        certificates = Certificates(files)
        reviewer = Reviewer(lambda: self._chain, self._mirror, self._client, record=self._events.record)
        app = ReviewApp(reviewer, options.paths)
        informers: list[Informer[Any]] = [
            Informer(self._client, self._mirror, self._clock, Queue),
            Informer(self._client, self._mirror, self._clock, Namespace),
        ]
        async with asyncio.TaskGroup() as group, contextlib.AsyncExitStack() as stack:
            background = [
                *(each.run() for each in informers),
                self._events.run(),
                self._follow_configuration(),
                self._renew(),
                certificates.follow(self._clock, lambda: self._register_again(certificates)),
            ]
            tasks = [group.create_task(work) for work in background]
            try:
                async with asyncio.timeout(SYNC_WITHIN.total_seconds()):
                    for informer in informers:
                        await informer.synced()
                serve = serving_reviews(
                    app, host=options.host, port=options.port, context=certificates.context,
                    stop_within=options.stop_within,
                )  # fmt: skip
                self.port = await stack.enter_async_context(serve)
                if options.healthz_address:
                    routes = {("GET", "/healthz"): health_route()}
                    await stack.enter_async_context(serving(options.healthz_address, routes, certificates.context))
                await self._register(certificates)
                log.info("serving %s at port %d", ", ".join(options.paths) or "nothing", self.port)
                self.ready.set()
                await asyncio.Event().wait()
            finally:
                for task in tasks:
                    task.cancel()

    async def _register(self, certificates: Certificates) -> None:
        await register(
            self._client, self._clock, self._options.paths,
            location=self._options.location, bundle=certificates.bundle, creates=self._options.creates,
        )  # fmt: skip

    async def _register_again(self, certificates: Certificates) -> None:
        """The CA is another: tell the API server, however long it takes."""
        while True:
            try:
                return await self._register(certificates)
            except (ApiError, OSError, RegistrationError) as error:
                log.warning("the new CA is not registered yet: %s", error)
                await self._clock.sleep(LOOK_EVERY)

    async def _renew(self) -> None:
        """Our own certificates are made anew before they end; `follow` takes them up."""
        while self._options.files is None:
            await self._clock.sleep(RENEW_EVERY)
            await self._clock.run(self._made_files)

    def _made_files(self) -> CertificateFiles:
        location = self._options.location
        hosts = {self._options.host} - {"0.0.0.0", "::"}
        if location.service:
            base = f"{location.service}.{location.namespace}"
            hosts |= {location.service, base, f"{base}.svc", f"{base}.svc.cluster.local"}
        if location.url:
            hosts.add(urlsplit(location.url).hostname or "localhost")
        return made_files(data_directory() / "webhook-pki", sorted(hosts), self._clock)

    def _loaded(self, settings: Settings) -> Settings:
        """With the pod webhook's configuration file, if there is one; a missing file counts as none."""
        path = self._options.configuration
        if path is None or not path.is_file():
            return settings
        groups = parse_resource_groups(path.read_text())
        return msgspec.structs.replace(settings, resource_groups=groups)

    async def _follow_configuration(self) -> None:
        seen = self._configuration_state()
        while True:
            await self._clock.sleep(LOOK_EVERY)
            now = self._configuration_state()
            if now == seen or now is None:
                continue
            seen = now
            try:
                settings = self._loaded(self._options.settings)
                self._chain = AdmissionChain(settings, enabled=self._options.paths)
                log.info("the pod webhook's configuration was read again")
            except (ConfigurationError, OSError, UnicodeDecodeError) as error:
                log.warning("keeping the pod webhook's configuration: %s", error)

    def _configuration_state(self) -> tuple[int, int, int] | None:
        try:
            state = self._options.configuration.stat() if self._options.configuration else None
        except OSError:
            return None
        return (state.st_mtime_ns, state.st_size, state.st_ino) if state else None


def parse_paths(text: str) -> tuple[str, ...]:
    paths = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    for path in paths:
        if path not in BY_PATH:
            raise click.BadParameter(f"there is no webhook at {path!r}; known: {', '.join(BY_PATH)}")
    return paths


def _boolean(name: str, default: bool, text: str) -> Callable[[F], F]:
    return click.option(name, type=bool, default=default, is_flag=False, flag_value=True, show_default=True, help=text)


@click.command()
@click.option("--master", default="", help="Address of the API server; overrides the kubeconfig.")
@click.option("--kubeconfig", default="", help="Path of a kubeconfig.")
@click.option("--tls-cert-file", default="", help="Certificate (PEM); without the three files we make our own.")
@click.option("--tls-private-key-file", default="", help="Its key (PEM).")
@click.option("--ca-cert-file", default="", help="The CA that signed it (PEM).")
@click.option("--listen-address", default="", help="Address to bind [default: all].")
@click.option("--port", type=click.IntRange(1, 65535), default=8443, show_default=True)
@click.option("--kube-api-qps", type=float, default=50.0, hidden=True)
@click.option("--kube-api-burst", type=int, default=100, hidden=True)
@click.option("--webhook-namespace", default="", help="Namespace of the service in front of us.")
@click.option("--webhook-service-name", default="", help="Name of the service in front of us.")
@click.option("--webhook-url", default="", help="Or the URL at which the API server reaches us.")
@click.option("--enabled-admission", default=",".join(DEFAULT_PATHS), show_default=True, help="Paths to serve.")
@click.option("--scheduler-name", "scheduler_names", multiple=True, default=("volcano",), show_default=True)
@click.option("--admission-conf", default="", help="Configuration of the pod webhook.")
@_boolean("--enable-healthz", False, "Serve /healthz.")
@click.option("--healthz-address", default=":11251", show_default=True)
@click.option("--graceful-shutdown-time", default="30s", show_default=True)
@_boolean("--enable-queue-allocated-pods-check", False, "Refuse deleting queues with allocated pods.")
@click.option("--max-queue-depth", type=int, default=5, show_default=True)
@_boolean("--enable-root-queue-protection", True, "Freeze the resources of queue root.")
@_boolean("--register-webhooks", True, "Create missing webhook configurations instead of waiting for them.")
@click.option("--feature-gates", default="", help="Name=true|false, separated by commas.")
@click.option("--logtostderr", type=bool, default=True, is_flag=False, flag_value=True, hidden=True)
@click.option("-v", "--v", "verbosity", type=int, default=0, help="Log verbosity.")
@click.version_option(__version__, prog_name="vc-webhook-manager")
def webhook_manager_command(**flags: Any) -> None:
    """Serve Volcano's admission to any Kubernetes API server.

    \b
    Example:
      volcano webhook-manager --kubeconfig ~/.kube/config --webhook-url https://10.0.0.5:8443
    """
    options = options_from(flags)
    run_component(lambda: _main(flags, options), verbosity=flags["verbosity"])


def options_from(flags: dict[str, Any]) -> WebhookOptions:
    """The flags as values, or a complaint about the first that makes no sense."""
    location = Location(flags["webhook_namespace"], flags["webhook_service_name"], flags["webhook_url"])
    if not (location.namespace or location.service or location.url):
        raise click.UsageError("at least one of --webhook-namespace, --webhook-service-name, --webhook-url is needed")
    given = [flags[name] for name in ("tls_cert_file", "tls_private_key_file", "ca_cert_file")]
    if any(given) and not all(given):
        raise click.UsageError("--tls-cert-file, --tls-private-key-file and --ca-cert-file go together")
    gates = parse_feature_gates(flags["feature_gates"])
    try:
        stop_within = parse_duration(flags["graceful_shutdown_time"])
    except DurationError as error:
        raise click.BadParameter(str(error), param_hint="--graceful-shutdown-time") from error
    return WebhookOptions(
        location=location,
        settings=Settings(
            scheduler_names=tuple(flags["scheduler_names"]),
            max_queue_depth=flags["max_queue_depth"],
            protects_root=flags["enable_root_queue_protection"],
            checks_allocated_pods=flags["enable_queue_allocated_pods_check"],
            gates_pods=gates.get(GATE, False),
        ),
        paths=parse_paths(flags["enabled_admission"]),
        host=flags["listen_address"] or "0.0.0.0",
        port=flags["port"],
        files=CertificateFiles(*map(Path, given)) if all(given) else None,
        configuration=Path(flags["admission_conf"]) if flags["admission_conf"] else None,
        creates=flags["register_webhooks"],
        healthz_address=flags["healthz_address"] if flags["enable_healthz"] else "",
        stop_within=stop_within,
    )


async def _main(flags: dict[str, Any], options: WebhookOptions) -> None:
    clock = SystemClock()
    async with connected(flags["kubeconfig"], flags["master"], clock=clock, agent="vc-webhook-manager") as client:
        try:
            await WebhookService(client, clock, options).run()
        except* (CertificateError, RegistrationError, ConfigurationError, ApiError, OSError) as group:
            raise click.ClickException("; ".join(_messages(group))) from group


def _messages(group: BaseExceptionGroup[Any]) -> Iterable[str]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _messages(error)
        else:
            yield str(error)
