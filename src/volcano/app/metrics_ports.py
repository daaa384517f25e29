"""Metrics of the embedded scheduler and controllers on loopback ports, and as Endpoints of their Services.

Only what changes nothing is served there, since a port knows no users; the rest is behind the API server's service
proxy. A port that another program has is left out with a warning.
"""

from __future__ import annotations

import contextlib
import errno
import logging
from collections.abc import AsyncIterator
from typing import Final

from volcano.api.core import Endpoints
from volcano.api.errors import AlreadyExists, NotFound
from volcano.api.meta import JSON, Key
from volcano.api.scheme import resource_type
from volcano.app.system import CONTROLLERS_SERVICE, SCHEDULER_SERVICE, LocalService, System
from volcano.controllers.service.routes import controller_routes
from volcano.machinery.client import Client
from volcano.machinery.http_endpoints import Routes, serving
from volcano.scheduler.service.routes import scheduler_routes

log = logging.getLogger(__name__)

ADDRESS: Final = "127.0.0.1"
SERVED_PATHS: Final = ("/metrics", "/healthz")


@contextlib.asynccontextmanager
async def metrics_ports(system: System) -> AsyncIterator[None]:
    """Serve while the block runs."""
    components = (
        (SCHEDULER_SERVICE, scheduler_routes(system.scheduler)),
        (CONTROLLERS_SERVICE, controller_routes(system.metrics)),
    )
    client = system.client("volcano-bootstrap")
    async with contextlib.AsyncExitStack() as stack:
        for service, routes in components:
            is_served = await _serve(stack, service, routes)
            await _publish(client, service, is_served=is_served)
        yield


async def _serve(stack: contextlib.AsyncExitStack, service: LocalService, routes: Routes) -> bool:
    harmless = {(method, path): route for (method, path), route in routes.items() if path in SERVED_PATHS}
    try:
        await stack.enter_async_context(serving(f"{ADDRESS}:{service.port}", harmless))
    except OSError as error:
        place = f"/api/v1/namespaces/{service.namespace}/services/{service.name}/proxy/metrics"
        why = "is in use" if error.errno == errno.EADDRINUSE else f"is not available ({error.strerror})"
        log.warning("port %d %s: metrics of %s are only at %s", service.port, why, service.name, place)
        return False
    return True


async def _publish(client: Client, service: LocalService, *, is_served: bool) -> None:
    """The Endpoints of a component's Service; none while somebody else has the port."""
    row, key = resource_type(Endpoints), Key(service.namespace, service.name)
    if not is_served:
        with contextlib.suppress(NotFound):
            await client.delete(row, key)
        return
    subsets: list[JSON] = [{"addresses": [{"ip": ADDRESS}], "ports": [{"name": "metrics", "port": service.port}]}]
    body: JSON = {"metadata": {"name": service.name, "namespace": service.namespace}, "subsets": subsets}
    try:
        await client.create(row, body)
    except AlreadyExists:
        await client.patch(row, key, {"subsets": subsets})
