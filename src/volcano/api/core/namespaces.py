"""Namespaces, and the plain objects in them that hold settings: ConfigMap, Secret, ServiceAccount."""

from __future__ import annotations

from volcano.api.meta import (
    JSON,
    ObjectReference,
    Resource,
)


class Namespace(Resource, frozen=True):
    status: JSON | None = None
    spec: JSON | None = None


class ConfigMap(Resource, frozen=True):
    data: dict[str, str] | None = None
    binary_data: dict[str, str] | None = None
    immutable: bool | None = None


class Secret(Resource, frozen=True):
    type: str = ""
    data: dict[str, str] | None = None
    immutable: bool | None = None


class ServiceAccount(Resource, frozen=True):
    secrets: list[ObjectReference] = []
    automount_service_account_token: bool | None = None
