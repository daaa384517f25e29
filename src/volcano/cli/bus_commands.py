"""Asks a controller to act on a Job or a Queue, by creating a Command (api.bus)."""

from __future__ import annotations

from volcano.api.bus import command_body
from volcano.api.scheme import ResourceType
from volcano.cli.connection import ApiConnection
from volcano.cli.resources import COMMANDS


def ask_for(connection: ApiConnection, resource: ResourceType, namespace: str, name: str, action: str) -> None:
    """Read the target, which must exist, and create the Command."""
    target = connection.get(resource, namespace, name)
    connection.create(COMMANDS, command_body(target, resource.api_version, resource.kind, action))
