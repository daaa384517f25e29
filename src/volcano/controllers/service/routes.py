"""What the controller manager answers over HTTP: its metrics and its health.

`volcano controller-manager` serves these routes at --listen-address; in the embedded system the API server's service
proxy calls them without a port (services/volcano-controllers-service:8081/proxy/metrics).
"""

from __future__ import annotations

from volcano.controllers.service.job_metrics import ControllerMetrics
from volcano.machinery.http_endpoints import Routes, health_route, metrics_route


def controller_routes(metrics: ControllerMetrics) -> Routes:
    return {("GET", "/metrics"): metrics_route(metrics.registry), ("GET", "/healthz"): health_route()}
