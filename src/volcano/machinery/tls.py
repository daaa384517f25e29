"""TLS contexts from what a kubeconfig holds."""

from __future__ import annotations

import os
import ssl
import tempfile

from volcano.machinery.kubeconfig import ConfigError, Endpoint


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
