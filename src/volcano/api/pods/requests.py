"""What a pod asks for, as Kubernetes adds it up, and what it counts against a quota.

Used for the minResources of PodGroups and the status of ResourceQuotas. The scheduler has its own arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeAlias

import msgspec

from volcano.api.core import Container, PodSpec, ResourceRequirements
from volcano.api.meta import JSON, Quantities
from volcano.api.quantity import Quantity, QuantityError, parse_quantity

Amounts: TypeAlias = dict[str, Quantity]
Field: TypeAlias = Literal["requests", "limits"]

COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
ONE: Final = parse_quantity(1)


def pod_requests(spec: PodSpec) -> Amounts:
    """Containers together, or an init container with the sidecars before it if that is more; overhead on top."""
    return added(_containers(spec, "requests"), amounts_of(spec.overhead))


def pod_limits(spec: PodSpec) -> Amounts:
    limits, overhead = _containers(spec, "limits"), amounts_of(spec.overhead)
    return added(limits, {name: amount for name, amount in overhead.items() if name in limits})


def quota_usage(spec: PodSpec) -> Amounts:
    """One pod of this shape, under every name by which a quota may count it."""
    usage: Amounts = {"count/pods": ONE, "pods": ONE}
    for name, amount in pod_requests(spec).items():
        if name in COMPUTE or name.startswith("hugepages-") or _is_extended(name):
            usage[name] = usage[f"requests.{name}"] = amount
    for name, amount in pod_limits(spec).items():
        if name in COMPUTE:
            usage[f"limits.{name}"] = amount
    return usage


def template_usage(template: JSON) -> Amounts:
    """The same for a pod template; one that cannot be read uses nothing but a pod."""
    try:
        spec = msgspec.convert(template.get("spec") or {}, PodSpec, strict=False)
    except msgspec.ValidationError:
        spec = PodSpec()
    return quota_usage(spec)


def added(*many: Mapping[str, Quantity]) -> Amounts:
    total: Amounts = {}
    for amounts in many:
        for name, amount in amounts.items():
            total[name] = total[name] + amount if name in total else amount
    return total


def times(amounts: Mapping[str, Quantity], count: int) -> Amounts:
    return {name: amount * count for name, amount in amounts.items()}


def to_wire(amounts: Mapping[str, Quantity]) -> dict[str, str]:
    """As an object says it, names in order."""
    return {name: str(amounts[name]) for name in sorted(amounts)}


def amounts_of(quantities: Quantities | None) -> Amounts:
    """Wire quantities parsed; what is no quantity counts as absent, for the server has refused it already."""
    parsed: Amounts = {}
    for name, text in (quantities or {}).items():
        try:
            parsed[name] = parse_quantity(text)
        except QuantityError:
            continue
    return parsed


def _containers(spec: PodSpec, field: Field) -> Amounts:
    total = added(*(_of(container.resources, field) for container in spec.containers))
    sidecars: Amounts = {}
    most: Amounts = {}
    for container in spec.init_containers:
        own = _of(container.resources, field)
        if _is_sidecar(container):
            sidecars = added(sidecars, own)
            most = _larger((most, sidecars))
        else:
            most = _larger((most, added(sidecars, own)))
    total = _larger((added(total, sidecars), most))
    # What the pod as a whole declares replaces the sum of its containers.
    return {**total, **(_of(spec.resources, field) if spec.resources is not None else {})}


def _of(resources: ResourceRequirements, field: Field) -> Amounts:
    return amounts_of(resources.requests if field == "requests" else resources.limits)


def _is_sidecar(container: Container) -> bool:
    return container.restart_policy == "Always"


def _larger(many: Iterable[Amounts]) -> Amounts:
    answer: Amounts = {}
    for amounts in many:
        for name, amount in amounts.items():
            if name not in answer or amount > answer[name]:
                answer[name] = amount
    return answer


def _is_extended(name: str) -> bool:
    """A device: a qualified name outside Kubernetes' own domain."""
    return "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.")
