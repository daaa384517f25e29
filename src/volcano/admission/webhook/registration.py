"""The Mutating- and ValidatingWebhookConfigurations of the webhook manager: created if missing, with its CA in them."""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterable
from datetime import timedelta
from typing import Final

import msgspec

from volcano.admission.chain import BY_PATH, Webhook
from volcano.api.errors import AlreadyExists, Conflict, NotFound
from volcano.api.meta import JSON, Key
from volcano.api.scheme import ResourceType, find_resource_type
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock

log = logging.getLogger(__name__)
NAME_PREFIX: Final = "volcano-admission-service"
POLL_INTERVAL: Final = timedelta(seconds=1)
APPEAR_TIMEOUT: Final = timedelta(minutes=5)
MAX_UPDATE_ATTEMPTS: Final = 10
REVIEW_TIMEOUT_SECONDS: Final = 10


class RegistrationError(Exception):
    """The webhook configurations could not be created or updated."""


class Location(msgspec.Struct, frozen=True):
    """Where the API server reaches the webhook: at a service, or at a URL."""

    namespace: str = ""
    service: str = ""
    url: str = ""

    def client_config(self, path: str, bundle: bytes) -> JSON:
        config: JSON = {"caBundle": base64.b64encode(bundle).decode()}
        if self.service:
            config["service"] = {"name": self.service, "namespace": self.namespace, "path": path, "port": 443}
        else:
            config["url"] = self.url.rstrip("/") + path
        return config


def configuration_name(path: str) -> str:
    return NAME_PREFIX + path.replace("/", "-")


def configuration_type(webhook: Webhook) -> ResourceType:
    kind = "MutatingWebhookConfiguration" if webhook.kind == "mutating" else "ValidatingWebhookConfiguration"
    found = find_resource_type("admissionregistration.k8s.io", kind)
    assert found is not None, "the scheme has webhook configurations"
    return found


def configuration(webhook: Webhook, location: Location, bundle: bytes) -> JSON:
    """The object for one path."""
    for_hypernodes = webhook.resource.plural == "hypernodes"
    row = webhook.resource
    entry: JSON = {
        "name": webhook.name,
        "admissionReviewVersions": ["v1"],
        "clientConfig": location.client_config(webhook.path, bundle),
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "rules": [
            {
                "apiGroups": [row.group],
                "apiVersions": [row.version],
                "operations": list(webhook.operations),
                "resources": [row.plural],
                "scope": "*",
            }
        ],
        "sideEffects": "None" if for_hypernodes else "NoneOnDryRun",
        "timeoutSeconds": REVIEW_TIMEOUT_SECONDS,
    }
    if not for_hypernodes:
        exempt = sorted({location.namespace, "kube-system"} - {""})
        expression = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": exempt}
        entry["namespaceSelector"] = {"matchExpressions": [expression]}
    if webhook.kind == "mutating":
        entry["reinvocationPolicy"] = "Never"
    return {"metadata": {"name": configuration_name(webhook.path)}, "webhooks": [entry]}


async def register(
    client: Client, clock: Clock, paths: Iterable[str], *, location: Location, bundle: bytes, creates: bool = True
) -> None:
    """Make sure that every enabled path has its configuration with this CA; RegistrationError if that fails."""
    for path in paths:
        webhook = BY_PATH[path]
        if creates:
            await _ensure(client, webhook, location, bundle)
        else:
            await _wait_for(client, clock, webhook)
        await _put_bundle(client, webhook, bundle)


async def _ensure(client: Client, webhook: Webhook, location: Location, bundle: bytes) -> None:
    row, key = configuration_type(webhook), Key("", configuration_name(webhook.path))
    try:
        await client.get_json(row, key)
    except NotFound:
        try:
            await client.create(row, configuration(webhook, location, bundle))
            log.info("created %s", key.name)
        except AlreadyExists:
            log.debug("%s was created by another process", key.name)


async def _wait_for(client: Client, clock: Clock, webhook: Webhook) -> None:
    """Wait until the installer has created the configuration."""
    row, key = configuration_type(webhook), Key("", configuration_name(webhook.path))
    end = clock.now() + APPEAR_TIMEOUT
    while True:
        try:
            await client.get_json(row, key)
            return
        except NotFound:
            if clock.now() >= end:
                raise RegistrationError(f"{row.kind} {key.name} did not appear within {APPEAR_TIMEOUT}") from None
        await clock.sleep(POLL_INTERVAL)


async def _put_bundle(client: Client, webhook: Webhook, bundle: bytes) -> None:
    """Write the CA into every entry, if it differs."""
    row, key = configuration_type(webhook), Key("", configuration_name(webhook.path))
    wanted = base64.b64encode(bundle).decode()
    for _ in range(MAX_UPDATE_ATTEMPTS):
        found = await client.get_json(row, key)
        entries = [entry for entry in found.get("webhooks") or () if isinstance(entry, dict)]
        if all((entry.get("clientConfig") or {}).get("caBundle") == wanted for entry in entries):
            return
        for entry in entries:
            entry["clientConfig"] = {**(entry.get("clientConfig") or {}), "caBundle": wanted}
        try:
            await client.update(row, found)
            return
        except Conflict:
            continue
    raise RegistrationError(f"{row.kind} {key.name} keeps changing; its CA could not be written")
