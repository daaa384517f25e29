"""TLS contexts from what a kubeconfig holds, kept up to date with its files."""

from __future__ import annotations

import logging
import os
import ssl
import tempfile
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from volcano.machinery.kubeconfig import ConfigError, Endpoint

if TYPE_CHECKING:
    from volcano.machinery.certificate_renewal import FileState

log = logging.getLogger(__name__)


def client_context(endpoint: Endpoint) -> ssl.SSLContext | None:
    """How to trust the server and prove who we are; None for plain http."""
    if endpoint.server.startswith("http://"):
        return None
    try:
        context = ssl.create_default_context(cadata=endpoint.ca.decode() if endpoint.ca else None)
        if endpoint.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if endpoint.client_certificate and endpoint.client_key:
            _load_pair(context, endpoint.client_certificate, endpoint.client_key)
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(f"the certificates for {endpoint.server} cannot be used: {error}") from error
    return context


def _load_pair(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """The ssl module only reads files; this one is private and gone at once."""
    handle, path = tempfile.mkstemp(prefix="volcano-client-")
    try:
        os.write(handle, certificate + b"\n" + key)
        os.close(handle)
        context.load_cert_chain(path)
    finally:
        os.unlink(path)


class FollowedEndpoint:
    """An endpoint whose credentials follow its files: a renewed client certificate is shown on new connections."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.context = client_context(endpoint)
        self._loaded = self._states()
        self._looked_at: datetime | None = None

    def refresh(self, now: datetime) -> None:
        """Read the files again if one has changed; at most once per interval. What cannot be used is logged."""
        from volcano.machinery.certificate_renewal import CHECK_INTERVAL  # imports asyncio; commands ask once

        if self._looked_at is not None and now - self._looked_at < CHECK_INTERVAL:
            return
        is_first, self._looked_at = self._looked_at is None, now
        if is_first or self.endpoint.read_again is None:
            return
        states = self._states()
        if states is None or states == self._loaded:
            return
        try:
            found: Endpoint = self.endpoint.read_again()
            client_context(found)  # an error must leave the context in use as it is
            if self.context is not None:
                if found.ca and found.ca != self.endpoint.ca:
                    self.context.load_verify_locations(cadata=found.ca.decode())
                if found.client_certificate and found.client_key:
                    _load_pair(self.context, found.client_certificate, found.client_key)
        except (ConfigError, OSError, ValueError) as error:
            log.warning("keeping the credentials in use: %s", error)
            return
        self._loaded = states
        self.endpoint = msgspec.structs.replace(found, server=self.endpoint.server)
        log.info("the credentials were read again from %s", ", ".join(map(str, found.files)))

    def _states(self) -> tuple[FileState, ...] | None:
        """None while a file is being replaced; the next look sees it."""
        from volcano.machinery.certificate_renewal import FileState

        try:
            return tuple(map(FileState.of, self.endpoint.files))
        except OSError:
            return None
