"""Requests and limits of containers and pods: names, amounts, requests within limits, claims."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from volcano.api import names
from volcano.api.fields import Field
from volcano.api.pods.amounts import Amounts
from volcano.api.pods.requests import containers_together, read_resources
from volcano.api.quantity import Quantity, QuantityError, parse_quantity

HUGEPAGES: Final = "hugepages-"
COMPUTE: Final = ("cpu", "memory")
CONTAINER_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")
COUNTED: Final = frozenset(
    {
        "pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps",
        "persistentvolumeclaims", "services.nodeports", "services.loadbalancers",
    }
)  # fmt: skip
"""Standard resources that only come in whole numbers; extended resources do too."""
STANDARD: Final = COUNTED | {
    f"{prefix}{name}" for prefix in ("", "requests.", "limits.") for name in CONTAINER_RESOURCES
} | {"storage", "requests.storage"}  # fmt: skip


def is_native(resource: str) -> bool:
    return "/" not in resource or "kubernetes.io/" in resource


def is_extended(resource: str) -> bool:
    if is_native(resource) or resource.startswith("requests."):
        return False
    return not names.qualified_name_problems(f"requests.{resource}")


def is_whole(resource: str) -> bool:
    """Whether the resource only comes in whole numbers."""
    return resource in COUNTED or is_extended(resource)


def allows_overcommit(resource: str) -> bool:
    return is_native(resource) and not resource.startswith(HUGEPAGES)


def check_amount(place: Field, resource: str, amount: Quantity) -> None:
    if amount.nanos < 0:
        place.invalid("must be greater than or equal to 0", str(amount))
    if is_whole(resource) and amount.milli % 1000:
        place.invalid("must be an integer", str(amount))


def check_container_requirements(container: Field, claims: frozenset[str]) -> None:
    _check_requirements(container.at("resources"), claims, _check_container_resource)


def check_overhead(spec: Field) -> None:
    """Reported as if they were limits of the overhead: Kubernetes checks them as such."""
    for resource, entry in spec.entries("overhead"):
        place = spec.at("overhead", "limits").index(resource, entry.value)
        _check_container_resource(place, resource)
        amount = place.as_quantity()
        if amount is not None:
            check_amount(place, resource, amount)


def check_pod_requirements(spec: Field, claims: frozenset[str]) -> None:
    """Resources of the whole pod: at least what its containers ask for together."""
    resources = spec.at("resources")
    if not resources.is_set:
        return
    if spec.at("os").text("name") == "windows":
        resources.forbidden("may not be set for a windows pod")
        return
    if resources.has("claims"):
        resources.at("claims").forbidden("claims may not be set for Resources at pod-level")
    _check_requirements(resources, claims, _check_pod_resource)
    requests, limits = _amounts(resources, "requests"), _amounts(resources, "limits")
    containers = read_resources(spec.value)
    for resource, total in sorted(containers_together(containers, "requests").items()):
        if resource in requests and total > requests[resource]:
            detail = f"must be greater than or equal to aggregate container requests of {total}"
            resources.at("requests").index(resource).invalid(detail, str(requests[resource]))
    for resource, total in sorted(containers_together(containers, "limits").items()):
        if resource.startswith(HUGEPAGES) and resource in limits and total > limits[resource]:
            detail = f"must be greater than or equal to aggregate container limits of {total}"
            resources.at("limits").index(resource).invalid(detail, str(limits[resource]))
    for i, container in enumerate(spec.each("containers")):
        for resource, amount in _amounts(container.at("resources"), "limits").items():
            if resource in limits and amount > limits[resource]:
                detail = f"must be less than or equal to pod limits of {limits[resource]}"
                place = resources.at("containers").index(i).index(resource).at("limits")  # Kubernetes' own path
                place.invalid(detail, str(amount))


def _check_requirements(resources: Field, claims: frozenset[str], check_name: Callable[[Field, str], None]) -> None:
    limits, requests = resources.at("limits"), resources.at("requests")
    limited: Amounts = {}
    for resource, place in resources.entries("limits"):
        check_name(place, resource)
        amount = place.as_quantity()
        if amount is not None:
            limited[resource] = amount
            check_amount(place, resource, amount)
            _check_pages(place, resource, amount)
    requested: list[str] = []
    for resource, place in resources.entries("requests"):
        check_name(place, resource)
        amount = place.as_quantity()
        if amount is None:
            continue
        requested.append(resource)
        check_amount(place, resource, amount)
        _check_within_limit(requests, limits, resource, amount=amount, limit=limited.get(resource))
        _check_pages(place, resource, amount)
    used = (*limited, *requested)
    if any(resource.startswith(HUGEPAGES) for resource in used) and not any(r in COMPUTE for r in used):
        resources.forbidden("HugePages require cpu or memory")
    _check_claims(resources, claims)


def _check_within_limit(
    requests: Field, limits: Field, resource: str, *, amount: Quantity, limit: Quantity | None
) -> None:
    if limit is None:
        if not allows_overcommit(resource):
            limits.required("Limit must be set for non overcommitable resources")
    elif amount != limit and not allows_overcommit(resource):
        requests.invalid(f"must be equal to {resource} limit of {limit}", str(amount))
    elif amount > limit:
        requests.invalid(f"must be less than or equal to {resource} limit of {limit}", str(amount))


def _check_pages(place: Field, resource: str, amount: Quantity) -> None:
    if not resource.startswith(HUGEPAGES):
        return
    try:
        page = parse_quantity(resource.removeprefix(HUGEPAGES))
    except QuantityError:
        page = Quantity(0)
    if page.nanos <= 0 or page.milli % 1000 or amount.value % page.value:
        place.invalid(f"{amount} is not positive integer multiple of {resource}", str(amount))


def _check_resource_name(place: Field, resource: str) -> bool:
    problems = names.qualified_name_problems(resource)
    for problem in problems:
        place.invalid(problem, resource)
    if problems:
        return False
    paged = resource.startswith((HUGEPAGES, f"requests.{HUGEPAGES}"))
    if "/" not in resource and resource not in STANDARD and not paged:
        place.invalid("must be a standard resource type or fully qualified", resource)
        return False
    return True


def _check_container_resource(place: Field, resource: str) -> None:
    _check_resource_name(place, resource)
    if "/" not in resource:
        if resource not in CONTAINER_RESOURCES and not resource.startswith(HUGEPAGES):
            place.invalid("must be a standard resource for containers", resource)
    elif not is_native(resource) and not is_extended(resource):
        place.invalid("doesn't follow extended resource name standard", resource)


def _check_pod_resource(place: Field, resource: str) -> None:
    known = resource in COMPUTE or resource.startswith(HUGEPAGES)
    if _check_resource_name(place, resource) and not known:
        Field(resource, place.path, place.errors).unsupported(("cpu", HUGEPAGES, "memory"))


def _check_claims(resources: Field, claims: frozenset[str]) -> None:
    seen: set[str] = set()
    for place in resources.each("claims"):
        name, request = place.text("name"), place.text("request")
        if not name:
            place.required()
            continue
        if request:
            place.at("request").check(names.dns_label_problems(request))
        key = f"{name}/{request}" if request else name
        overlaps = name in seen or key in seen or (not request and any(s.startswith(f"{name}/") for s in seen))
        if overlaps:
            place.duplicate(key if name not in seen else name)
        seen.add(key)
        if name not in claims:
            listed = f": {', '.join(sorted(claims))}" if claims else " which is empty"
            place.not_found(name, f"must be one of the names in pod.spec.resourceClaims{listed}")


def _amounts(resources: Field, kind: str) -> Amounts:
    """What can be read; what cannot has been noted by the check of its own container."""
    found: Amounts = {}
    for resource, place in Field(resources.value, "").entries(kind):
        amount = place.as_quantity()
        if amount is not None:
            found[resource] = amount
    return found
