"""Nodes, their taints, images and addresses."""

from __future__ import annotations

from datetime import datetime

import msgspec

from volcano.api.meta import (
    JSON,
    Condition,
    Model,
    Quantities,
    Resource,
)


class Taint(Model, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: datetime | None = None


class NodeSpec(Model, frozen=True):
    unschedulable: bool = False
    taints: list[Taint] = []
    provider_id: str = msgspec.field(default="", name="providerID")


class ContainerImage(Model, frozen=True):
    names: list[str] = []
    size_bytes: int = 0


class NodeAddress(Model, frozen=True):
    type: str = ""
    address: str = ""


class NodeStatus(Model, frozen=True):
    capacity: Quantities | None = None
    allocatable: Quantities | None = None
    conditions: list[Condition] = []
    images: list[ContainerImage] = []
    addresses: list[NodeAddress] = []
    daemon_endpoints: JSON | None = None


class Node(Resource, frozen=True):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
