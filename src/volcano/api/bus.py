"""bus.volcano.sh/v1alpha1: Command, an action asked of a Job or a Queue from outside."""

from __future__ import annotations

from volcano.api.meta import JSON, OwnerReference, Resource


class Command(Resource, frozen=True):
    """Several for one target are carried out in the order in which they were asked for (`command_order`)."""

    action: str = ""
    target: OwnerReference | None = None
    reason: str = ""
    message: str = ""


def command_order(command: Command) -> tuple[int, str]:
    """A sort key: in the order in which the API server wrote them.

    Creation times have whole seconds, and servers whose clocks differ write them; names and UIDs are random. Resource
    versions count the writes of a server, and a Command is written once. Creation times decide only where a version is
    not a number.
    """
    version = command.metadata.resource_version
    return int(version) if version.isdecimal() else 0, str(command.metadata.creation_timestamp or "")


def command_body(target: JSON, api_version: str, kind: str, action: str) -> JSON:
    """The Command that asks for an action on a Job or a Queue that was read; it is deleted with its target."""
    metadata = target["metadata"]
    reference = {
        "apiVersion": api_version,
        "kind": kind,
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
