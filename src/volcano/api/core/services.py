"""Services and the addresses behind them."""

from __future__ import annotations

import msgspec

from volcano.api.meta import (
    JSON,
    Model,
    Resource,
)


class ServicePort(Model, frozen=True):
    name: str = ""
    protocol: str = "TCP"
    port: int = 0
    target_port: int | str | None = None
    node_port: int = 0


class ServiceSpec(Model, frozen=True):
    selector: dict[str, str] = {}
    cluster_ip: str = msgspec.field(default="", name="clusterIP")
    ports: list[ServicePort] = []
    type: str = ""
    publish_not_ready_addresses: bool = False
    external_name: str = ""
    session_affinity: str = ""
    session_affinity_config: JSON | None = None


class Service(Resource, frozen=True):
    spec: ServiceSpec = ServiceSpec()
    status: JSON | None = None


class Endpoints(Resource, frozen=True):
    subsets: list[JSON] = []


class EndpointSlice(Resource, frozen=True):
    address_type: str = ""
    endpoints: list[JSON] = []
    ports: list[JSON] = []
