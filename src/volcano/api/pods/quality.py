"""The quality of service class of a pod, by amounts and not by their spelling."""

from __future__ import annotations

from typing import Final

from volcano.api.core import ResourceRequirements
from volcano.api.pods.amounts import Amounts, added, amounts_of
from volcano.api.pods.requests import PodResources

BEST_EFFORT: Final = "BestEffort"
BURSTABLE: Final = "Burstable"
GUARANTEED: Final = "Guaranteed"
CLASSES: Final = (BEST_EFFORT, BURSTABLE, GUARANTEED)
"""From the class that is evicted first to the one that is evicted last."""

_COUNTED: Final = ("cpu", "memory")


def quality_of_service(spec: PodResources) -> str:
    """Guaranteed when every container limits cpu and memory and requests just that; BestEffort when nothing is stated.

    Amounts that the pod as a whole states are looked at instead of those of its containers. A limit without a request
    is also the request, as the API server writes it when a pod is created. Amounts of zero count as absent.
    """
    if spec.resources is not None:
        stated = [spec.resources]
    else:
        stated = [container.resources for container in (*spec.containers, *spec.init_containers)]
    requests: Amounts = {}
    limits: Amounts = {}
    all_limited = True
    for resources in stated:
        own_limits = _counted(amounts_of(resources.limits))
        requests = added(requests, _requests(resources))
        limits = added(limits, own_limits)
        all_limited = all_limited and len(own_limits) == len(_COUNTED)
    if not requests and not limits:
        return BEST_EFFORT
    return GUARANTEED if all_limited and requests == limits else BURSTABLE


def _requests(resources: ResourceRequirements) -> Amounts:
    return _counted({**amounts_of(resources.limits), **amounts_of(resources.requests)})


def _counted(amounts: Amounts) -> Amounts:
    return {name: amount for name, amount in amounts.items() if name in _COUNTED and amount.nanos > 0}
