"""The Command object that asks a controller to act on a Job or a Queue."""

from __future__ import annotations

from volcano.api.meta import JSON
from volcano.api.scheme import ResourceType
from volcano.cli.connection import ApiConnection
from volcano.cli.resources import COMMANDS


def command_for(target: JSON, resource: ResourceType, action: str) -> JSON:
    metadata = target["metadata"]
    reference = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "metadata": {
            "generateName": f"{metadata['name']}-{action.lower()}-",
            "namespace": metadata.get("namespace") or "default",
            "ownerReferences": [reference],
        },
        "target": reference,
        "action": action,
    }


def ask_for(connection: ApiConnection, resource: ResourceType, namespace: str, name: str, action: str) -> None:
    """Read the target, which must exist, and create the Command."""
    target = connection.get(resource, namespace, name)
    connection.create(COMMANDS, command_for(target, resource, action))
