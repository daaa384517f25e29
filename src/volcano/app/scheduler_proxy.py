"""The scheduler's questions inside the embedded system: answered through the API's service proxy, without a port.

On a real cluster the same path (services/volcano-scheduler/proxy/simulate) leads to the scheduler's own HTTP server.
"""

from __future__ import annotations

from typing import Final

import msgspec
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from volcano.api.core import Service
from volcano.api.errors import AlreadyExists
from volcano.api.scheme import resource_type
from volcano.machinery.client import Client
from volcano.machinery.transport import Handler, Request, Response
from volcano.scheduler.service.service import SchedulerService

NAMESPACE: Final = "volcano-system"
NAME: Final = "volcano-scheduler"
PORT: Final = 8080
_JSON: Final = {"content-type": "application/json"}


def scheduler_handler(service: SchedulerService) -> Handler:
    async def handle(request: Request) -> Response:
        match request.method, request.path.strip("/"):
            case "POST", "simulate":
                return await _simulate(service, request)
            case "GET", "metrics":
                page = generate_latest(service.metrics.registry)
                return Response(200, {"content-type": CONTENT_TYPE_LATEST}, page)
            case "GET", "state":
                return Response(200, dict(_JSON), msgspec.json.encode(service.state()))
            case "GET", "healthz":
                return Response(200, {"content-type": "text/plain"}, b"ok")
        return Response(404, {"content-type": "text/plain"}, b"404 page not found\n")

    return handle


async def _simulate(service: SchedulerService, request: Request) -> Response:
    try:
        answer = await service.simulate(msgspec.json.decode(request.body))
    except ValueError as error:
        return Response(400, dict(_JSON), msgspec.json.encode({"error": str(error)}))
    return Response(200, dict(_JSON), msgspec.json.encode(answer))


async def ensure_service(client: Client) -> None:
    """The Service that the proxy path names."""
    body = {
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": {"app": NAME}},
        "spec": {"clusterIP": "None", "ports": [{"name": "metrics", "port": PORT, "protocol": "TCP"}]},
    }
    try:
        await client.create(resource_type(Service), body)
    except AlreadyExists:
        return
