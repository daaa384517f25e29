"""What a pod asks for: containers, init containers, sidecars, pod-level amounts, overhead."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from volcano.api.core import Container, Pod, PodSpec
from volcano.api.meta import Quantities
from volcano.scheduler.model.resources import CPU, MEMORY, PODS, Resources, resources_from

ASSUMED_CPU: Final = 100.0
ASSUMED_MEMORY: Final = 200.0 * 2**20
"""What a scorer assumes of a container that states no request."""


def request_of(pod: Pod) -> Resources:
    """The amount a pod occupies, including one of `pods`."""
    request = _with_init_containers(pod.spec, "requests")
    request.amounts[PODS] = request[PODS] + 1.0
    if pod.spec.resources is not None:
        for name, amount in resources_from(pod.spec.resources.requests).amounts.items():
            if amount and (name in (CPU, MEMORY) or name.startswith("hugepages-")):
                request.amounts[name] = amount
    return request.add(resources_from(pod.spec.overhead)) if pod.spec.overhead else request


def limits_of(pod: Pod) -> Resources:
    """The same sum over limits; an estimator of usage reads it."""
    return _with_init_containers(pod.spec, "limits")


def quality_of_service(pod: Pod) -> str:
    """Guaranteed when every container asks for all the cpu and memory it is limited to; BestEffort when none asks."""
    states, guaranteed = False, True
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        requests, limits = resources_from(container.resources.requests), resources_from(container.resources.limits)
        for name in (CPU, MEMORY):
            asked = requests[name] or limits[name]
            states = states or asked > 0.0
            guaranteed = guaranteed and limits[name] > 0.0 and asked == limits[name]
    return "BestEffort" if not states else "Guaranteed" if guaranteed else "Burstable"


def assumed_request_of(pod: Pod) -> tuple[float, float]:
    """cpu and memory with a default for every container that states none, as the scorers of Kubernetes count."""
    overhead = resources_from(pod.spec.overhead)
    assumed = _with_init_containers(pod.spec, "requests", assume=True).add(overhead)
    return assumed[CPU], assumed[MEMORY]


def _with_init_containers(spec: PodSpec, field: str, *, assume: bool = False) -> Resources:
    total = Resources()
    for amount in _amounts(spec.containers, field, assume):
        total.add(amount)
    if not spec.init_containers:
        return total
    sidecars, peak = Resources(), Resources()
    for container, amount in zip(spec.init_containers, _amounts(spec.init_containers, field, assume), strict=True):
        if container.restart_policy == "Always":
            total.add(amount)
            sidecars.add(amount)
            peak = peak.at_least(sidecars)
        else:
            peak = peak.at_least(amount + sidecars)
    return total.at_least(peak)


def _amounts(containers: Iterable[Container], field: str, assume: bool) -> Iterable[Resources]:
    for container in containers:
        listed: Quantities | None = getattr(container.resources, field)
        amount = resources_from(listed)
        if assume and CPU not in (listed or {}):
            amount.amounts[CPU] = ASSUMED_CPU
        if assume and MEMORY not in (listed or {}):
            amount.amounts[MEMORY] = ASSUMED_MEMORY
        yield amount
