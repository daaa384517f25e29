"""What a pod requests as the scheduler's own amounts. The rule that adds it up is api.pods.requests'."""

from __future__ import annotations

from typing import Final

from volcano.api.core import Pod
from volcano.api.pods.amounts import Amounts, parsed
from volcano.api.pods.requests import pod_limits, pod_requests
from volcano.api.quantity import parse_quantity
from volcano.scheduler.model.resources import CPU, MEMORY, PODS, Resources, resources_of

ASSUMED: Final[Amounts] = {CPU: parse_quantity("100m"), MEMORY: parse_quantity("200Mi")}
"""What a scorer assumes of a container that states no request."""


def request_of(pod: Pod) -> Resources:
    """The amount a pod occupies, including one of `pods`. Raises QuantityError for a malformed amount."""
    request = resources_of(pod_requests(pod.spec, parse=parsed))
    request.amounts[PODS] = request[PODS] + 1.0
    return request


def limits_of(pod: Pod) -> Resources:
    """The most a pod may use; an estimator of usage reads it."""
    return resources_of(pod_limits(pod.spec, parse=parsed))


def assumed_request_of(pod: Pod) -> tuple[float, float]:
    """cpu and memory with a default for every container that states none, as the scorers of Kubernetes count."""
    assumed = resources_of(pod_requests(pod.spec, parse=parsed, assumed=ASSUMED))
    return assumed[CPU], assumed[MEMORY]
