"""Calls what a `clientConfig` names (a URL or a Service): admission webhooks, conversion webhooks.

A service is reached at one of its ready endpoints, but its certificate must be for `<service>.<namespace>.svc`: that
is the name operators issue it for, and addresses of pods change.
"""

from __future__ import annotations

import base64
import binascii
import ssl
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from volcano.api.errors import ServiceUnavailable
from volcano.api.meta import JSON
from volcano.embedded.apiserver.kinds.services import SERVICES, ready_endpoint
from volcano.embedded.apiserver.store.contract import ObjectKey, Store
from volcano.embedded.apiserver.wire.outbound import Outbound, unverified

CONTEXTS_KEPT: Final = 64
DEFAULT_SERVICE_PORT: Final = 443


class WebhookFailed(Exception):
    """The webhook answered, but not with what it was asked for."""


class ServiceEndpoint(msgspec.Struct, frozen=True):
    """Where a service answers over HTTPS, and the name that its certificate must carry."""

    host: str
    port: int
    server_name: str

    def url(self, path: str) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"https://{host}:{self.port}/{path.lstrip('/')}"


class WebhookClient:
    """Posts reviews; what is trusted is remembered by its bundle."""

    def __init__(self, store: Store, outbound: Outbound) -> None:
        self._store = store
        self._outbound = outbound
        self._contexts: dict[str, ssl.SSLContext] = {}

    async def post(self, config: JSON, review: JSON, seconds: float, *, query: tuple[tuple[str, str], ...] = ()) -> Any:
        """The decoded answer. ServiceUnavailable when there is none, WebhookFailed when it is not JSON."""
        context, url, name = self.context(config.get("caBundle") or ""), config.get("url"), None
        if not url:
            service = config.get("service") or {}
            endpoint = self.endpoint(service)
            url, name = endpoint.url(str(service.get("path") or "/")), endpoint.server_name
        response = await self._outbound.fetch(
            "POST",
            url,
            headers={"content-type": "application/json", "accept": "application/json"},
            body=msgspec.json.encode(review),
            query=query,
            context=context,
            seconds=seconds,
            server_name=name,
        )
        if not 200 <= response.status < 300:
            raise WebhookFailed(f"the server answered {response.status}")
        try:
            return msgspec.json.decode(response.body)
        except (msgspec.DecodeError, RecursionError):
            raise WebhookFailed("the answer is not JSON") from None

    def endpoint(self, service: Mapping[str, Any]) -> ServiceEndpoint:
        """The first ready endpoint of the port that a service reference names."""
        namespace, name = str(service.get("namespace")), str(service.get("name"))
        port = int(service.get("port") or DEFAULT_SERVICE_PORT)
        found = self._store.find(ObjectKey(SERVICES, namespace, name))
        if found is None:
            raise ServiceUnavailable(f'service "{name}" not found')
        ports = (msgspec.json.decode(found.raw).get("spec") or {}).get("ports") or []
        port_name = next((p.get("name") or "" for p in ports if p.get("port") == port), None)
        if port_name is None:
            raise ServiceUnavailable(f'no service port {port} found for service "{name}"')
        host, endpoint_port = ready_endpoint(self._store, namespace, name, port_name)
        return ServiceEndpoint(host, endpoint_port, f"{name}.{namespace}.svc")

    def context(self, bundle: str, *, is_checked: bool = True) -> ssl.SSLContext:
        """TLS that trusts the authorities of a base64 bundle; those of the machine without one."""
        if not is_checked:
            return tls_context(bundle, is_checked=False)
        context = self._contexts.get(bundle)
        if context is None:
            context = tls_context(bundle)
            if len(self._contexts) >= CONTEXTS_KEPT:
                self._contexts.clear()
            self._contexts[bundle] = context
        return context


def tls_context(bundle: str, *, is_checked: bool = True) -> ssl.SSLContext:
    """TLS that trusts the authorities of a base64 bundle; those of the machine without one."""
    if not is_checked:
        found: ssl.SSLContext = unverified()
        return found
    try:
        pem = base64.b64decode(bundle).decode() if bundle else None
        return ssl.create_default_context(cadata=pem)
    except (ssl.SSLError, binascii.Error, UnicodeDecodeError) as error:
        raise WebhookFailed(f"the caBundle cannot be read: {error}") from error
