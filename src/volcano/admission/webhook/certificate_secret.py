"""The Secret with the webhook's certificate: created once, renewed in time.

A job runs this before and beside the webhook managers, so that all of them serve the same certificate.
"""

from __future__ import annotations

import base64
import tempfile
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from volcano.api.core import Secret
from volcano.api.errors import AlreadyExists, NotFound
from volcano.api.meta import JSON, Key
from volcano.api.scheme import resource_type
from volcano.machinery.certificates import Authority
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock

SECRETS: Final = resource_type(Secret)
RENEW_BEFORE_EXPIRY: Final = timedelta(days=60)


def service_names(service: str, namespace: str) -> list[str]:
    """The names under which a service is reached in a cluster."""
    base = f"{service}.{namespace}"
    return [service, base, f"{base}.svc", f"{base}.svc.cluster.local"]


async def ensure_secret(client: Client, clock: Clock, key: Key, hosts: list[str]) -> str:
    """Create the Secret, renew it, or leave it as it is; the result says which."""
    try:
        found = await client.get_json(SECRETS, key)
    except NotFound:
        metadata = {"name": key.name, "namespace": key.namespace}
        made = await clock.run(lambda: _new_content(clock.now(), hosts))
        try:
            await client.create(SECRETS, {"metadata": metadata, "type": "kubernetes.io/tls", "data": made})
        except AlreadyExists:
            return "created by another job meanwhile"
        return "created"
    if is_valid_for_long(found.get("data") or {}, clock.now()):
        return "still valid"
    await client.patch(SECRETS, key, {"data": await clock.run(lambda: _new_content(clock.now(), hosts))})
    return "renewed"


def is_valid_for_long(content: JSON, now: datetime) -> bool:
    """Whether the content has a certificate, its key and its CA, none of which has to be renewed yet."""
    from cryptography import x509

    try:
        texts = [base64.b64decode(content[name]) for name in ("tls.crt", "ca.crt")]
        certificates = [x509.load_pem_x509_certificate(text) for text in texts]
        return bool(content["tls.key"]) and all(
            each.not_valid_after_utc - now > RENEW_BEFORE_EXPIRY for each in certificates
        )
    except (KeyError, ValueError):
        return False


def _new_content(now: datetime, hosts: list[str]) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        authority = Authority(Path(folder), now)
        pair = authority.issue(hosts[0], (), now, hosts=hosts)
        files = {"ca.crt": authority.pair.certificate, "tls.crt": pair.certificate, "tls.key": pair.key}
    return {name: base64.b64encode(value).decode() for name, value in files.items()}
