"""LimitRanger: defaults of requests and limits in a namespace, and their bounds per container, pod and claim."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from volcano.api.errors import Forbidden
from volcano.api.meta import JSON
from volcano.api.pods.amounts import to_wire
from volcano.api.pods.requests import pod_limits, pod_requests, read_resources
from volcano.api.quantity import Quantity, QuantityError, parse_quantity
from volcano.embedded.apiserver.store.contract import Store
from volcano.machinery.admission import CREATE, Attributes

LIMIT_RANGES: Final = "limitranges"


def apply_limit_ranges(store: Store, attributes: Attributes) -> None:
    """Give containers the requests and limits they do not name."""
    if not store.count(LIMIT_RANGES) or not isinstance((attributes.object or {}).get("spec"), dict):
        return
    for limit in _limits(store, attributes.namespace):
        if limit.get("type") != "Container":
            continue
        for container in _containers(attributes.object or {}):
            resources = container.setdefault("resources", {})
            if not isinstance(resources, dict):
                continue
            for part, defaults in (("limits", limit.get("default")), ("requests", limit.get("defaultRequest"))):
                given = resources.get(part) or {}
                missing = {name: amount for name, amount in (defaults or {}).items() if name not in given}
                if part == "requests":  # a limit that was given is also the request
                    missing = {
                        n: a
                        for n, a in missing.items()
                        if n not in (resources.get("limits") or {}) or n in (limit.get("default") or {})
                    }
                if missing:
                    resources[part] = {**given, **missing}


def check_limit_ranges(store: Store, attributes: Attributes) -> None:
    """Refuse what is outside a namespace's bounds. A pod's resources are checked when they are stated.

    The bounds of a pod are for what its author states: the overhead of a runtime class does not count.
    """
    if not store.count(LIMIT_RANGES) or attributes.object is None:
        return
    is_claim = attributes.resource.plural == "persistentvolumeclaims"
    if not is_claim and attributes.operation != CREATE and attributes.subresource != "resize":
        return
    faults: list[str] = []
    for limit in _limits(store, attributes.namespace):
        kind = limit.get("type")
        if is_claim and kind == "PersistentVolumeClaim":
            requests = ((attributes.object.get("spec") or {}).get("resources") or {}).get("requests") or {}
            faults += _faults(limit, "PersistentVolumeClaim", requests, {})
        elif not is_claim and kind == "Container":
            for container in _containers(attributes.object):
                resources = container.get("resources") or {}
                faults += _faults(limit, "Container", resources.get("requests") or {}, resources.get("limits") or {})
        elif not is_claim and kind == "Pod":
            spec = msgspec.structs.replace(read_resources(attributes.object.get("spec")), overhead=None)
            faults += _faults(limit, "Pod", to_wire(pod_requests(spec)), to_wire(pod_limits(spec)))
    if faults:
        listed = faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"
        raise Forbidden(f'{attributes.resource.qualified} "{attributes.name}" is forbidden: {listed}')


def _limits(store: Store, namespace: str) -> Iterator[JSON]:
    for stored in store.scan(LIMIT_RANGES, namespace):
        for limit in (msgspec.json.decode(stored.raw).get("spec") or {}).get("limits") or []:
            if isinstance(limit, dict):
                yield limit


def _containers(pod: JSON) -> Iterable[JSON]:
    spec = pod.get("spec") or {}
    for field in ("initContainers", "containers"):
        for container in spec.get(field) or []:
            if isinstance(container, dict):
                yield container


def _faults(limit: JSON, kind: str, requests: JSON, limits: JSON) -> Iterator[str]:
    for name, bound in (limit.get("min") or {}).items():
        if name not in requests:
            yield f"minimum {name} usage per {kind} is {bound}.  No request is specified"
        elif _less(requests[name], bound):
            yield f"minimum {name} usage per {kind} is {bound}, but request is {requests[name]}"
    for name, bound in (limit.get("max") or {}).items():
        if kind == "PersistentVolumeClaim":
            if name in requests and _less(bound, requests[name]):
                yield f"maximum {name} usage per {kind} is {bound}, but request is {requests[name]}"
        elif name not in limits:
            yield f"maximum {name} usage per {kind} is {bound}.  No limit is specified"
        elif _less(bound, limits[name]):
            yield f"maximum {name} usage per {kind} is {bound}, but limit is {limits[name]}"
    for name, ratio in (limit.get("maxLimitRequestRatio") or {}).items():
        request, top, most = _parsed(requests.get(name)), _parsed(limits.get(name)), _parsed(ratio)
        if request is None or top is None or not request:
            why = "but no request is specified or request is 0"
            yield f"{name} max limit to request ratio per {kind} is {ratio}, {why}"
        elif most is not None and top.nanos / request.nanos > float(most):
            got = top.nanos / request.nanos
            yield f"{name} max limit to request ratio per {kind} is {ratio}, but provided ratio is {got:f}"


def _less(left: Any, right: Any) -> bool:
    one, other = _parsed(left), _parsed(right)
    return one is not None and other is not None and one < other


def _parsed(amount: Any) -> Quantity | None:
    try:
        return parse_quantity(amount) if amount is not None else None
    except (QuantityError, TypeError):
        return None
