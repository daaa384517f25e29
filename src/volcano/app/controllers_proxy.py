"""The controllers' metrics inside the embedded system: answered through the API's service proxy, without a port.

On a real cluster the same path (services/volcano-controllers-service:8081/proxy/metrics) leads to the controller
manager's own HTTP server.
"""

from __future__ import annotations

from typing import Final

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from volcano.api.core import Service
from volcano.api.errors import AlreadyExists
from volcano.api.scheme import resource_type
from volcano.machinery.client import Client
from volcano.machinery.transport import Handler, Request, Response

NAMESPACE: Final = "volcano-system"
NAME: Final = "volcano-controllers-service"
PORT: Final = 8081


def controllers_handler(registry: CollectorRegistry) -> Handler:
    async def handle(request: Request) -> Response:
        match request.method, request.path.strip("/"):
            case "GET", "metrics":
                return Response(200, {"content-type": CONTENT_TYPE_LATEST}, generate_latest(registry))
            case "GET", "healthz":
                return Response(200, {"content-type": "text/plain"}, b"ok")
        return Response(404, {"content-type": "text/plain"}, b"404 page not found\n")

    return handle


async def ensure_controllers_service(client: Client) -> None:
    """The Service that the proxy path names."""
    body = {
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": {"app": "volcano-controllers"}},
        "spec": {"clusterIP": "None", "ports": [{"name": "metrics", "port": PORT, "protocol": "TCP"}]},
    }
    try:
        await client.create(resource_type(Service), body)
    except AlreadyExists:
        return
