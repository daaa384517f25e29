"""The webhook's certificates: read from files or made here, and reloaded when the files change."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from pathlib import Path

import msgspec

from volcano.machinery.certificate_renewal import FileState
from volcano.machinery.certificates import Authority
from volcano.machinery.clock import Clock

log = logging.getLogger(__name__)


class CertificateError(Exception):
    """The certificates cannot be used; the message says which and why."""


class CertificateFiles(msgspec.Struct, frozen=True):
    """Where certificate, key and the CA that clients should trust are."""

    certificate: Path
    key: Path
    authority: Path

    def states(self) -> tuple[FileState, ...]:
        return tuple(map(FileState.of, (self.certificate, self.key, self.authority)))


def make_files(folder: Path, hosts: Sequence[str], clock: Clock) -> CertificateFiles:
    """A CA in the folder and a certificate for these names; both are created or renewed where due."""
    authority = Authority(folder, clock.now())
    pair = authority.server_pair(hosts, clock.now())
    return CertificateFiles(pair, pair, authority.certificate_path)


class Certificates:
    """A TLS context whose certificates follow the files, and the CA bundle for the API server."""

    def __init__(self, files: CertificateFiles) -> None:
        self.files = files
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.bundle = b""
        self._loaded: tuple[FileState, ...] = ()
        self.load()

    def load(self) -> None:
        """Read all three files; new connections use what they contain."""
        try:
            states = self.files.states()
            bundle = self.files.authority.read_bytes()
            trial = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)  # an error must leave the context in use as it is
            trial.load_cert_chain(self.files.certificate, self.files.key)
            trial.load_verify_locations(cadata=bundle.decode())
            self.context.load_cert_chain(self.files.certificate, self.files.key)
            self.context.load_verify_locations(cadata=bundle.decode())
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            raise CertificateError(f"cannot use {self.files.certificate}, its key and CA: {error}") from error
        self.context.verify_mode = ssl.CERT_OPTIONAL  # a client's certificate is verified if it sends one
        self.bundle, self._loaded = bundle, states

    def changed(self) -> bool:
        try:
            return self.files.states() != self._loaded
        except OSError:
            return False  # the files are being replaced; the next poll sees them

    async def follow(self, clock: Clock, on_authority: Callable[[], Awaitable[None]], *, interval: timedelta) -> None:
        """Until cancelled: reload changed files, and call `on_authority` when the CA is another."""
        while True:
            await clock.sleep(interval)
            if not self.changed():
                continue
            before = self.bundle
            try:
                self.load()
            except CertificateError as error:
                log.warning("keeping the certificates in use: %s", error)
                continue
            log.info("certificates were reloaded")
            if self.bundle != before:
                await on_authority()
