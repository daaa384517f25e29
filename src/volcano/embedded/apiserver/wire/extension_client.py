"""ExtensionClient: passes requests on to the servers of APIServices, with the caller's identity in headers.

The server proves itself by a certificate for `<service>.<namespace>.svc`; this server proves itself by the client
certificate `front-proxy-client`, so that its X-Remote-* headers are believed. Both are what the ConfigMap
extension-apiserver-authentication says (upkeep.own_service writes it).
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from volcano.api.errors import ServiceUnavailable
from volcano.embedded.apiserver.wire.outbound import Outbound
from volcano.embedded.apiserver.wire.webhook_client import WebhookClient, WebhookFailed, tls_context
from volcano.machinery.transport import Request, Response, User

FRONT_PROXY_NAME: Final = "front-proxy-client"
USER_HEADER: Final = "X-Remote-User"
GROUP_HEADER: Final = "X-Remote-Group"
EXTRA_PREFIX: Final = "X-Remote-Extra-"
UID_HEADER: Final = "X-Remote-Uid"
CONTEXTS_KEPT: Final = 64
_REMOTE: Final = "x-remote-"
_SAFE_PATH: Final = "/:@!$&'()*+,;=~-._%"


class ExtensionClient:
    """Requests to extension servers; TLS contexts are kept for as long as their bundle and our certificate stay."""

    def __init__(self, webhooks: WebhookClient, outbound: Outbound) -> None:
        self._webhooks = webhooks
        self._outbound = outbound
        self.certificate: Path | None = None
        """Our client certificate and key; None where the server is not reached over HTTPS either."""
        self._contexts: dict[tuple[str, bool, Path | None, int], ssl.SSLContext] = {}

    async def send(
        self,
        request: Request,
        user: User,
        service: Mapping[str, Any],
        *,
        ca_bundle: str,
        is_checked: bool,
        seconds: float | None,
        streams: bool,
    ) -> Response:
        """The server's answer. ServiceUnavailable when it cannot be reached."""
        endpoint = self._webhooks.endpoint(service)
        given = {name: value for name, value in request.headers.items() if not name.lower().startswith(_REMOTE)}
        return await self._outbound.fetch(
            request.method,
            endpoint.url(quote(request.path, safe=_SAFE_PATH)),
            query=request.query,
            headers=given,
            repeated=tuple(identity_headers(user)),
            body=request.body,
            context=self._context(ca_bundle, is_checked=is_checked),
            seconds=seconds,
            streams=streams,
            server_name=endpoint.server_name,
        )

    def _context(self, bundle: str, *, is_checked: bool) -> ssl.SSLContext:
        changed = self.certificate.stat().st_mtime_ns if self.certificate else 0
        key = (bundle, is_checked, self.certificate, changed)
        context = self._contexts.get(key)
        if context is None:
            try:
                context = tls_context(bundle, is_checked=is_checked)
            except WebhookFailed as error:
                raise ServiceUnavailable(str(error)) from error
            if self.certificate is not None:
                context.load_cert_chain(self.certificate)
            if len(self._contexts) >= CONTEXTS_KEPT:
                self._contexts.clear()
            self._contexts[key] = context
        return context


def identity_headers(user: User) -> Iterator[tuple[str, str]]:
    """Who asks, as an extension server reads it."""
    yield USER_HEADER, user.name
    if user.uid:
        yield UID_HEADER, user.uid
    for group in user.groups:
        yield GROUP_HEADER, group
    for name, values in user.extra.items():
        for value in values:
            yield EXTRA_PREFIX + quote(name, safe=""), value
