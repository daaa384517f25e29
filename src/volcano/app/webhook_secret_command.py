"""`volcano webhook-certificates`: the flags of the job that keeps the webhook's Secret (webhook.certificate_secret)."""

from __future__ import annotations

from typing import Any

import click

from volcano.admission.webhook.certificate_secret import ensure_secret, service_names
from volcano.api.errors import ApiError
from volcano.api.meta import Key
from volcano.app.component import connected, run_component
from volcano.machinery.clock import SystemClock


@click.command()
@click.option("--kubeconfig", default="", help="Path of a kubeconfig.")
@click.option("--master", default="", help="Address of the API server; overrides the kubeconfig.")
@click.option("--namespace", default="volcano-system", show_default=True, help="Where the Secret and the service are.")
@click.option("--secret", default="volcano-admission-secret", show_default=True, help="Name of the Secret.")
@click.option("--service", default="volcano-admission-service", show_default=True, help="The webhook's service.")
def webhook_certificates_command(**flags: Any) -> None:
    """Create or renew the webhook's certificate, unless the Secret has a valid one.

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
            outcome = await ensure_secret(client, clock, key, service_names(flags["service"], flags["namespace"]))
        except (ApiError, OSError) as error:
            raise click.ClickException(f"Secret {key}: {error}") from error
        click.echo(f"Secret {key}: {outcome}")
