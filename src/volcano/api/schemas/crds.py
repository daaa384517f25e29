"""The CustomResourceDefinitions of Volcano's kinds, made from the structs that read them.

Names, scope and subresources come from the scheme, schemas from api.schemas.structs; printer columns are below.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Final

import msgspec

from volcano.api import batch, bus, flow, reservation, scheduling, topology
from volcano.api.meta import JSON, Resource
from volcano.api.schemas.descriptions import COMMON, KIND_DESCRIPTIONS
from volcano.api.schemas.structs import struct_schema
from volcano.api.scheme import ResourceType, resource_type

KINDS: Final[tuple[type[Resource], ...]] = (
    batch.Job,
    batch.CronJob,
    bus.Command,
    scheduling.PodGroup,
    scheduling.Queue,
    flow.JobTemplate,
    flow.JobFlow,
    topology.HyperNode,
    topology.Numatopology,
    topology.NodeShard,
    topology.ColocationConfiguration,
    reservation.Reservation,
)


def _column(name: str, type_: str, path: str, priority: int = 0) -> JSON:
    column: JSON = {"jsonPath": path, "name": name, "type": type_}
    return column | ({"priority": priority} if priority else {})


CREATED: Final = ".metadata.creationTimestamp"

COLUMNS: Final[Mapping[type[Resource], list[JSON]]] = {
    batch.Job: [
        _column("STATUS", "string", ".status.state.phase"),
        _column("minAvailable", "integer", ".status.minAvailable"),
        _column("RUNNINGS", "integer", ".status.running"),
        _column("AGE", "date", CREATED),
        _column("QUEUE", "string", ".spec.queue", 1),
    ],
    scheduling.PodGroup: [
        _column("STATUS", "string", ".status.phase"),
        _column("minMember", "integer", ".spec.minMember"),
        _column("RUNNINGS", "integer", ".status.running"),
        _column("AGE", "date", CREATED),
        _column("QUEUE", "string", ".spec.queue", 1),
    ],
    scheduling.Queue: [_column("PARENT", "string", ".spec.parent")],
    flow.JobFlow: [_column("Status", "string", ".status.state.phase"), _column("Age", "date", CREATED)],
    topology.HyperNode: [
        _column("Tier", "string", ".spec.tier"),
        _column("TierName", "string", ".spec.tierName"),
        _column("NodeCount", "integer", ".status.nodeCount"),
        _column("Age", "date", CREATED),
    ],
    topology.NodeShard: [_column("AGE", "date", CREATED)],
    reservation.Reservation: [
        _column("PHASE", "string", ".status.phase"),
        _column("START", "date", ".status.start"),
        _column("FOR", "string", ".spec.duration"),
        _column("QUEUE", "string", ".spec.queue"),
        _column("NODES", "integer", ".status.nodeCount"),
        _column("NAMESPACE", "string", ".spec.namespace", 1),
        _column("USER", "string", ".spec.user", 1),
        _column("SCHEDULE", "string", ".spec.schedule", 1),
        _column("AGE", "date", CREATED),
    ],
}

REQUIRED: Final[Mapping[type[Resource], list[str]]] = {
    topology.NodeShard: ["spec"],
    topology.ColocationConfiguration: ["spec"],
    reservation.Reservation: ["spec"],
}

EMPTY_SUBRESOURCES: Final = (scheduling.PodGroup,)
"""Kinds whose manifest says `subresources: {}`: status is written with the object."""


def crd_manifests() -> list[JSON]:
    """All of them, ready for `kubectl apply` and for the embedded server."""
    return [_manifest(reader, resource_type(reader)) for reader in KINDS]


def _manifest(reader: type[Resource], row: ResourceType) -> JSON:
    names: JSON = {
        "kind": row.kind,
        "listKind": f"{row.kind}List",
        "plural": row.plural,
        "singular": row.singular or row.kind.lower(),
    }
    if row.short_names:
        names["shortNames"] = list(row.short_names)
    version: JSON = {
        "name": row.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _schema(reader)},
    }
    if row.has_status:
        version["subresources"] = {"status": {}}
    elif reader in EMPTY_SUBRESOURCES:
        version["subresources"] = {}
    if reader in COLUMNS:
        version["additionalPrinterColumns"] = [dict(column) for column in COLUMNS[reader]]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": row.qualified,
            "annotations": {"helm.sh/resource-policy": "keep"},
        },
        "spec": {
            "group": row.group,
            "names": names,
            "scope": "Namespaced" if row.namespaced else "Cluster",
            "versions": [version],
        },
    }


def _schema(reader: type[Resource]) -> JSON:
    """A copy for every caller: no part is shared with another manifest."""
    schema: JSON = msgspec.json.decode(_encoded_schema(reader))
    return schema


@functools.cache
def _encoded_schema(reader: type[Resource]) -> bytes:
    schema = struct_schema(reader)
    schema["properties"] |= {
        "apiVersion": {"type": "string", "description": COMMON["apiVersion"]},
        "kind": {"type": "string", "description": COMMON["kind"]},
        "metadata": {"type": "object"},  # the API server adds its schema, and refuses a definition that describes it
    }
    schema["description"] = KIND_DESCRIPTIONS[reader]
    if reader in REQUIRED:
        schema["required"] = list(REQUIRED[reader])
    return msgspec.json.encode(schema)
