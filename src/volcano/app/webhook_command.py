"""`volcano webhook-manager`: the flags and the connection of the webhook manager (admission.webhook.manager)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from volcano import __version__
from volcano.admission.chain import BY_PATH, DEFAULT_PATHS
from volcano.admission.pods import ConfigurationError
from volcano.admission.review import Settings, controller_users
from volcano.admission.webhook.manager import WebhookOptions, WebhookService
from volcano.admission.webhook.registration import Location, RegistrationError
from volcano.admission.webhook.serving_certificates import CertificateError, CertificateFiles
from volcano.api.durations import DurationError, parse_duration
from volcano.api.errors import ApiError
from volcano.app.component import connected, parse_feature_gates, run_component
from volcano.app.settings import data_directory
from volcano.controllers.service.gates import POD_GATES_FEATURE
from volcano.machinery.clock import SystemClock

F = TypeVar("F", bound=Callable[..., Any])


def parse_paths(text: str) -> tuple[str, ...]:
    paths = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    for path in paths:
        if path not in BY_PATH:
            raise click.BadParameter(f"there is no webhook at {path!r}; known: {', '.join(BY_PATH)}")
    return paths


def _boolean(name: str, default: bool, text: str) -> Callable[[F], F]:
    return click.option(name, type=bool, default=default, is_flag=False, flag_value=True, show_default=True, help=text)


@click.command()
@click.option("--master", default="", help="Address of the API server; overrides the kubeconfig.")
@click.option("--kubeconfig", default="", help="Path of a kubeconfig.")
@click.option("--tls-cert-file", default="", help="Certificate (PEM); without the three files one is made.")
@click.option("--tls-private-key-file", default="", help="Its key (PEM).")
@click.option("--ca-cert-file", default="", help="The CA that signed it (PEM).")
@click.option("--listen-address", default="", help="Address to bind [default: all].")
@click.option("--port", type=click.IntRange(1, 65535), default=8443, show_default=True)
@click.option("--kube-api-qps", type=float, default=50.0, hidden=True)
@click.option("--kube-api-burst", type=int, default=100, hidden=True)
@click.option("--webhook-namespace", default="", help="Namespace of the webhook's service.")
@click.option("--webhook-service-name", default="", help="Name of the webhook's service.")
@click.option("--webhook-url", default="", help="URL of the webhook for the API server, instead of a service.")
@click.option("--enabled-admission", default=",".join(DEFAULT_PATHS), show_default=True, help="Paths to serve.")
@click.option("--scheduler-name", "scheduler_names", multiple=True, default=("volcano",), show_default=True)
@click.option("--admission-conf", default="", help="Configuration of the pod webhook.")
@_boolean("--enable-healthz", False, "Serve /healthz.")
@click.option("--healthz-address", default=":11251", show_default=True)
@click.option("--graceful-shutdown-time", default="30s", show_default=True)
@_boolean("--enable-queue-allocated-pods-check", False, "Refuse deleting queues with allocated pods.")
@click.option("--max-queue-depth", type=int, default=5, show_default=True)
@_boolean("--enable-root-queue-protection", True, "Freeze the resources of queue root.")
@_boolean("--register-webhooks", True, "Create missing webhook configurations instead of waiting for them.")
@click.option("--feature-gates", default="", help="Name=true|false, separated by commas.")
@click.option("--logtostderr", type=bool, default=True, is_flag=False, flag_value=True, hidden=True)
@click.option("-v", "--v", "verbosity", type=int, default=0, help="Log verbosity.")
@click.version_option(__version__, prog_name="vc-webhook-manager")
def webhook_manager_command(**flags: Any) -> None:
    """Serve Volcano's admission to any Kubernetes API server.

    \b
    Example:
      volcano webhook-manager --kubeconfig ~/.kube/config --webhook-url https://10.0.0.5:8443
    """
    options = options_from(flags)
    run_component(lambda: _main(flags, options), verbosity=flags["verbosity"])


def options_from(flags: dict[str, Any]) -> WebhookOptions:
    """The flags as values; UsageError names the first that is invalid."""
    location = Location(flags["webhook_namespace"], flags["webhook_service_name"], flags["webhook_url"])
    if not (location.namespace or location.service or location.url):
        raise click.UsageError("at least one of --webhook-namespace, --webhook-service-name, --webhook-url is needed")
    given = [flags[name] for name in ("tls_cert_file", "tls_private_key_file", "ca_cert_file")]
    if any(given) and not all(given):
        raise click.UsageError("--tls-cert-file, --tls-private-key-file and --ca-cert-file go together")
    gates = parse_feature_gates(flags["feature_gates"])
    try:
        stop_within = parse_duration(flags["graceful_shutdown_time"])
    except DurationError as error:
        raise click.BadParameter(str(error), param_hint="--graceful-shutdown-time") from error
    return WebhookOptions(
        location=location,
        settings=Settings(
            scheduler_names=tuple(flags["scheduler_names"]),
            max_queue_depth=flags["max_queue_depth"],
            protects_root=flags["enable_root_queue_protection"],
            checks_allocated_pods=flags["enable_queue_allocated_pods_check"],
            gates_pods=gates.get(POD_GATES_FEATURE, False),
            controller_users=controller_users(location.namespace),
        ),
        paths=parse_paths(flags["enabled_admission"]),
        host=flags["listen_address"] or "0.0.0.0",
        port=flags["port"],
        files=CertificateFiles(*map(Path, given)) if all(given) else None,
        pki=data_directory() / "webhook-pki",
        configuration=Path(flags["admission_conf"]) if flags["admission_conf"] else None,
        creates=flags["register_webhooks"],
        health_address=flags["healthz_address"] if flags["enable_healthz"] else "",
        stop_within=stop_within,
    )


async def _main(flags: dict[str, Any], options: WebhookOptions) -> None:
    clock = SystemClock()
    async with connected(flags["kubeconfig"], flags["master"], clock=clock, agent="vc-webhook-manager") as client:
        try:
            await WebhookService(client, clock, options).run()
        except* (CertificateError, RegistrationError, ConfigurationError, ApiError, OSError) as group:
            raise click.ClickException("; ".join(_messages(group))) from group


def _messages(group: BaseExceptionGroup[Any]) -> Iterable[str]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _messages(error)
        else:
            yield str(error)
