"""The webhook's certificates: read from files or made by itself, and taken up anew when the files change."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final

import msgspec

from volcano.machinery.certificates import Authority
from volcano.machinery.clock import Clock

log = logging.getLogger(__name__)
LOOK_EVERY: Final = timedelta(seconds=5)


class CertificateError(Exception):
    """The certificates cannot be used; the message says which and why."""


class CertificateFiles(msgspec.Struct, frozen=True):
    """Where certificate, key and the CA that clients should trust are."""

    certificate: Path
    key: Path
    authority: Path

    def fingerprint(self) -> tuple[tuple[int, int, int], ...]:
        """Changes whenever a file is replaced or written, also through a symbolic link as Secrets are mounted."""
        states = [path.stat() for path in (self.certificate, self.key, self.authority)]
        return tuple((state.st_mtime_ns, state.st_size, state.st_ino) for state in states)


def made_files(folder: Path, hosts: Sequence[str], clock: Clock) -> CertificateFiles:
    """Certificates of our own: a CA in the folder, and a certificate for these names, renewed when due."""
    authority = Authority(folder, clock.now())
    pair = authority.server_pair(hosts, clock.now())
    return CertificateFiles(pair, pair, authority.certificate_path)


class Certificates:
    """A TLS context whose certificates follow the files, and the CA bundle to tell the API server."""

    def __init__(self, files: CertificateFiles) -> None:
        self.files = files
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.bundle = b""
        self._seen: tuple[tuple[int, int, int], ...] = ()
        self.load()

    def load(self) -> None:
        """Read all three files; connections from now on use what they hold."""
        try:
            seen = self.files.fingerprint()
            bundle = self.files.authority.read_bytes()
            trial = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)  # the context in use stays whole if the files are not
            trial.load_cert_chain(self.files.certificate, self.files.key)
            trial.load_verify_locations(cadata=bundle.decode())
            self.context.load_cert_chain(self.files.certificate, self.files.key)
            self.context.load_verify_locations(cadata=bundle.decode())
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            raise CertificateError(f"cannot use {self.files.certificate}, its key and CA: {error}") from error
        self.context.verify_mode = ssl.CERT_OPTIONAL  # a client's certificate is verified if it shows one
        self.bundle, self._seen = bundle, seen

    def changed(self) -> bool:
        try:
            return self.files.fingerprint() != self._seen
        except OSError:
            return False  # between two versions; look again later

    async def follow(self, clock: Clock, on_authority: Callable[[], Awaitable[None]]) -> None:
        """Until cancelled: take up changed files, and say so when the CA is another."""
        while True:
            await clock.sleep(LOOK_EVERY)
            if not self.changed():
                continue
            before = self.bundle
            try:
                self.load()
            except CertificateError as error:
                log.warning("keeping the certificates in use: %s", error)
                continue
            log.info("certificates were exchanged")
            if self.bundle != before:
                await on_authority()
