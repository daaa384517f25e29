"""The webhook manager: one process that serves admission to any Kubernetes, with all that belongs to it.

It follows queues, namespaces, certificates and the pod webhook's configuration, serves reviews (webhook.reviews) over
HTTPS (webhook.https) and registers itself (webhook.registration). Flags and connection are app.webhook_command's.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from datetime import timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from volcano.admission.chain import DEFAULT_PATHS, AdmissionChain
from volcano.admission.pods import ConfigurationError, parse_resource_groups
from volcano.admission.review import INDEXES, Settings
from volcano.admission.webhook.certificate_secret import service_names
from volcano.admission.webhook.https import ReviewApp, serving_reviews
from volcano.admission.webhook.registration import Location, RegistrationError, register
from volcano.admission.webhook.reviews import Reviewer
from volcano.admission.webhook.serving_certificates import CertificateFiles, Certificates, make_files
from volcano.api.core import Namespace
from volcano.api.errors import ApiError
from volcano.api.scheduling import Queue
from volcano.machinery.certificate_renewal import FileState
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock
from volcano.machinery.events import EventRecorder
from volcano.machinery.http_endpoints import health_route, serving
from volcano.machinery.informer import Informer
from volcano.machinery.world import Mirror

log = logging.getLogger(__name__)
FILE_POLL_INTERVAL: Final = timedelta(seconds=5)
RENEWAL_CHECK_INTERVAL: Final = timedelta(hours=12)
SYNC_TIMEOUT: Final = timedelta(minutes=5)


class WebhookOptions(msgspec.Struct, frozen=True):
    """How a webhook manager runs."""

    location: Location
    settings: Settings = Settings()
    paths: tuple[str, ...] = DEFAULT_PATHS
    host: str = "0.0.0.0"
    port: int = 8443
    files: CertificateFiles | None = None
    """The certificates to serve with; without them the manager makes its own in `pki`."""
    pki: Path = Path("webhook-pki")
    configuration: Path | None = None
    creates: bool = True
    """Create missing webhook configurations instead of waiting for an installer."""
    health_address: str = ""
    stop_within: timedelta = timedelta(seconds=30)
    file_poll_interval: timedelta = FILE_POLL_INTERVAL


class WebhookService:
    """The running webhook manager; `run` serves until cancelled."""

    def __init__(self, client: Client, clock: Clock, options: WebhookOptions) -> None:
        self._client, self._clock, self._options = client, clock, options
        self._chain = AdmissionChain(self._with_configuration(options.settings), enabled=options.paths)
        self._mirror = Mirror(clock.now, INDEXES)
        self._events = EventRecorder(client, clock, "vc-webhook-manager")
        self.port = 0
        self.ready = asyncio.Event()

    async def run(self) -> None:
        files = self._options.files
        if files is None:
            files = await self._clock.run(self._make_files)
        certificates = Certificates(files)
        informers: list[Informer[Any]] = [
            Informer(self._client, self._mirror, self._clock, Queue),
            Informer(self._client, self._mirror, self._clock, Namespace),
        ]
        async with asyncio.TaskGroup() as group:
            background = [
                *(each.run() for each in informers),
                self._events.run(),
                self._follow_configuration(),
                self._renew_own_certificates(),
                certificates.follow(
                    self._clock,
                    lambda: self._register_until_done(certificates),
                    interval=self._options.file_poll_interval,
                ),
            ]
            tasks = [group.create_task(work) for work in background]
            try:
                async with asyncio.timeout(SYNC_TIMEOUT.total_seconds()):
                    for informer in informers:
                        await informer.synced()
                await self._serve(certificates)
            finally:
                for task in tasks:
                    task.cancel()

    async def _serve(self, certificates: Certificates) -> None:
        options = self._options
        reviewer = Reviewer(lambda: self._chain, self._mirror, self._client, record=self._events.record)
        app = ReviewApp(reviewer, options.paths)
        async with contextlib.AsyncExitStack() as stack:
            reviews = serving_reviews(
                app, host=options.host, port=options.port, context=certificates.context, stop_within=options.stop_within
            )
            self.port = await stack.enter_async_context(reviews)
            if options.health_address:
                routes = {("GET", "/healthz"): health_route()}
                await stack.enter_async_context(serving(options.health_address, routes, certificates.context))
            await self._register(certificates)
            log.info("serving %s at port %d", ", ".join(options.paths) or "no path", self.port)
            self.ready.set()
            await asyncio.Event().wait()

    # -- registration -------------------------------------------------------------------------------------------------
    async def _register(self, certificates: Certificates) -> None:
        await register(
            self._client, self._clock, self._options.paths,
            location=self._options.location, bundle=certificates.bundle, creates=self._options.creates,
        )  # fmt: skip

    async def _register_until_done(self, certificates: Certificates) -> None:
        """Write a new CA into the webhook configurations; retry until it succeeds."""
        while True:
            try:
                return await self._register(certificates)
            except (ApiError, OSError, RegistrationError) as error:
                log.warning("the new CA is not registered yet, retrying: %s", error)
                await self._clock.sleep(self._options.file_poll_interval)

    # -- certificates -------------------------------------------------------------------------------------------------
    async def _renew_own_certificates(self) -> None:
        """Renew the manager's own certificates before they expire; `Certificates.follow` loads the new files."""
        while self._options.files is None:
            await self._clock.sleep(RENEWAL_CHECK_INTERVAL)
            await self._clock.run(self._make_files)

    def _make_files(self) -> CertificateFiles:
        location = self._options.location
        hosts = {self._options.host} - {"0.0.0.0", "::"}
        if location.service:
            hosts.update(service_names(location.service, location.namespace))
        if location.url:
            hosts.add(urlsplit(location.url).hostname or "localhost")
        return make_files(self._options.pki, sorted(hosts), self._clock)

    # -- the pod webhook's configuration ------------------------------------------------------------------------------
    def _with_configuration(self, settings: Settings) -> Settings:
        """The settings with the pod webhook's configuration file; a missing file counts as an empty one."""
        path = self._options.configuration
        if path is None or not path.is_file():
            return settings
        groups = parse_resource_groups(path.read_text())
        return msgspec.structs.replace(settings, resource_groups=groups)

    async def _follow_configuration(self) -> None:
        loaded = self._configuration_state()
        while True:
            await self._clock.sleep(self._options.file_poll_interval)
            current = self._configuration_state()
            if current == loaded or current is None:
                continue
            loaded = current
            try:
                settings = self._with_configuration(self._options.settings)
                self._chain = AdmissionChain(settings, enabled=self._options.paths)
                log.info("the pod webhook's configuration was reloaded")
            except (ConfigurationError, OSError, UnicodeDecodeError) as error:
                log.warning("keeping the pod webhook's configuration: %s", error)

    def _configuration_state(self) -> FileState | None:
        try:
            return FileState.of(self._options.configuration) if self._options.configuration else None
        except OSError:
            return None
