"""`volcano webhook-certificates`: a Secret with the webhook's certificate, made once and renewed in time.

Run as a job before and beside the webhook's processes, so that all of them show the same certificate.
"""

from __future__ import annotations

import base64
import tempfile
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import click

from volcano.api.core import Secret
from volcano.api.errors import AlreadyExists, ApiError, NotFound
from volcano.api.meta import JSON, Key
from volcano.api.scheme import resource_type
from volcano.app.component import connected, run_component
from volcano.machinery.certificates import Authority
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock, SystemClock

SECRETS: Final = resource_type(Secret)
RENEW_BEFORE: Final = timedelta(days=60)


@click.command()
@click.option("--kubeconfig", default="", help="Path of a kubeconfig.")
@click.option("--master", default="", help="Address of the API server; overrides the kubeconfig.")
@click.option("--namespace", default="volcano-system", show_default=True, help="Where the Secret and the service are.")
@click.option("--secret", default="volcano-admission-secret", show_default=True, help="Name of the Secret.")
@click.option("--service", default="volcano-admission-service", show_default=True, help="The webhook's service.")
def webhook_certificates_command(**flags: Any) -> None:
    """Make the webhook's certificate, unless there is a good one.

    \b
    Example:
      volcano webhook-certificates --namespace volcano-system
    """
    run_component(lambda: _main(flags))


async def _main(flags: dict[str, Any]) -> None:
    clock = SystemClock()
    async with connected(flags["kubeconfig"], flags["master"], clock=clock, agent="vc-webhook-certificates") as client:
        key = Key(flags["namespace"], flags["secret"])
        try:
            said = await ensure_secret(client, clock, key, service_names(flags["service"], flags["namespace"]))
        except (ApiError, OSError) as error:
            raise click.ClickException(f"Secret {key}: {error}") from error
        click.echo(f"Secret {key}: {said}")


def service_names(service: str, namespace: str) -> list[str]:
    base = f"{service}.{namespace}"
    return [service, base, f"{base}.svc", f"{base}.svc.cluster.local"]


async def ensure_secret(client: Client, clock: Clock, key: Key, hosts: list[str]) -> str:
    """Made, renewed, or left as it is; and which of these."""
    try:
        found = await client.get_json(SECRETS, key)
    except NotFound:
        metadata = {"name": key.name, "namespace": key.namespace}
        made = await clock.run(lambda: _content(clock.now(), hosts))
        try:
            await client.create(SECRETS, {"metadata": metadata, "type": "kubernetes.io/tls", "data": made})
        except AlreadyExists:
            return "another made it"
        return "made"
    if is_good(found.get("data") or {}, clock.now()):
        return "good as it is"
    await client.patch(SECRETS, key, {"data": await clock.run(lambda: _content(clock.now(), hosts))})
    return "renewed"


def is_good(content: JSON, now: datetime) -> bool:
    """Whether there is a certificate that will last for a while."""
    from cryptography import x509

    try:
        texts = [base64.b64decode(content[name]) for name in ("tls.crt", "ca.crt")]
        certificates = [x509.load_pem_x509_certificate(text) for text in texts]
        return bool(content["tls.key"]) and all(each.not_valid_after_utc - now > RENEW_BEFORE for each in certificates)
    except (KeyError, ValueError):
        return False


def _content(now: datetime, hosts: list[str]) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        authority = Authority(Path(folder), now)
        pair = authority.issue(hosts[0], (), now, hosts=hosts)
        files = {"ca.crt": authority.pair.certificate, "tls.crt": pair.certificate, "tls.key": pair.key}
    return {name: base64.b64encode(value).decode() for name, value in files.items()}
