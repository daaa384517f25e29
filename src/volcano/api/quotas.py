"""What one object counts for in a ResourceQuota: the only place that knows a quota's resource names and scopes.

The API server adds it up, refuses what goes beyond and writes the status (decision 22). The PodGroup controllers use
`group_usage` for minResources, which Volcano counts like a quota.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from volcano.api.core import FINISHED_POD_PHASES
from volcano.api.meta import JSON
from volcano.api.pods.amounts import Amounts, amounts_of
from volcano.api.pods.quality import BEST_EFFORT, quality_of_service
from volcano.api.pods.requests import (
    PodResources,
    SizedSpec,
    has_pod_level_resources,
    pod_limits,
    pod_requests,
    read_resources,
)
from volcano.api.quantity import NANO, Quantity

COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
REQUESTS: Final = "requests."
CLASS_SUFFIX: Final = ".storageclass.storage.k8s.io/"
CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
_ONE: Final = Quantity(NANO)
_COUNTED_BY_PLURAL: Final = frozenset(
    {"services", "secrets", "configmaps", "persistentvolumeclaims", "replicationcontrollers", "resourcequotas"}
)
_EACH_CONTAINER_STATES: Final = frozenset(
    {"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"}
)
"""Where a quota limits one of these, every container must state it (unless the pod as a whole states its size)."""


class Consumer(msgspec.Struct, frozen=True):
    """One object: its usage under every name by which a quota may count it, and the scopes that select it."""

    usage: Amounts
    scopes: frozenset[str] = frozenset()
    priority_class: str = ""
    is_pod: bool = False


def consumer_of(qualified: str, obj: JSON) -> Consumer:
    """What an object counts for; `qualified` is its resource with the group, such as `pods` or `jobs.batch`."""
    usage: Amounts = {f"count/{qualified}": _ONE}
    if qualified == "pods":
        return _pod_consumer(obj)
    if qualified in _COUNTED_BY_PLURAL:
        usage[qualified] = _ONE
    if qualified == "services":
        usage |= _service_usage(_mapping(obj.get("spec")))
    if qualified == "persistentvolumeclaims":
        usage |= _claim_usage(obj)
    return Consumer(usage)


# -- pods -------------------------------------------------------------------------------------------------------------
def pod_usage(spec: PodResources) -> Amounts:
    """What an unfinished pod counts for."""
    return {"count/pods": _ONE, **_compute_usage(pod_requests(spec), pod_limits(spec))}


def group_usage(spec: PodResources) -> Amounts:
    """The same as Volcano writes it into minResources: extended resources also under their plain name."""
    usage = pod_usage(spec)
    plain = {name.removeprefix(REQUESTS): amount for name, amount in usage.items() if name.startswith(REQUESTS)}
    return {**plain, **usage}


def template_usage(template: JSON) -> Amounts:
    """`group_usage` of a pod template; one that cannot be read counts as a pod that requests nothing."""
    return group_usage(read_resources(template.get("spec") or {}))


def unstated(limited: Iterable[str], pod: JSON) -> str:
    """Which limited resources a pod's containers fail to state, in the words of Kubernetes' refusal; or nothing."""
    spec = read_resources(pod.get("spec") or {})
    required = sorted(_EACH_CONTAINER_STATES.intersection(limited))
    if not required or has_pod_level_resources(spec):
        return ""
    missing = {name: names for name in required if (names := _containers_without(spec, name))}
    return "; ".join(f"{name} for: {','.join(names)}" for name, names in missing.items())


def _containers_without(spec: SizedSpec, name: str) -> list[str]:
    containers = (*spec.containers, *spec.init_containers)
    return sorted(
        {
            each.name
            for each in containers
            if name not in _compute_usage(amounts_of(each.resources.requests), amounts_of(each.resources.limits))
        }
    )


def _pod_consumer(pod: JSON) -> Consumer:
    spec = _mapping(pod.get("spec"))
    sized = read_resources(spec)
    deadline = spec.get("activeDeadlineSeconds")
    scopes = {
        "BestEffort" if quality_of_service(sized) == BEST_EFFORT else "NotBestEffort",
        "Terminating" if isinstance(deadline, int) and deadline >= 0 else "NotTerminating",
    }
    priority_class = str(spec.get("priorityClassName") or "")
    if priority_class:
        scopes.add("PriorityClass")
    if _looks_into_other_namespaces(_mapping(spec.get("affinity"))):
        scopes.add("CrossNamespacePodAffinity")
    ended = _mapping(pod.get("status")).get("phase") in FINISHED_POD_PHASES
    usage = {"count/pods": _ONE} if ended else pod_usage(sized)
    return Consumer(usage, frozenset(scopes), priority_class, is_pod=True)


def _compute_usage(requests: Mapping[str, Quantity], limits: Mapping[str, Quantity]) -> Amounts:
    usage: Amounts = {"pods": _ONE}
    for name, amount in requests.items():
        if name in COMPUTE or name.startswith("hugepages-"):
            usage[name] = usage[REQUESTS + name] = amount
        elif _is_extended(name):
            usage[REQUESTS + name] = amount
    usage |= {f"limits.{name}": amount for name, amount in limits.items() if name in COMPUTE}
    return usage


def _is_extended(name: str) -> bool:
    """A device: a qualified name outside Kubernetes' own domain."""
    return "/" in name and "kubernetes.io/" not in name and not name.startswith(REQUESTS)


def _looks_into_other_namespaces(affinity: JSON) -> bool:
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = _mapping(affinity.get(kind))
        required = rules.get("requiredDuringSchedulingIgnoredDuringExecution") or []
        preferred = rules.get("preferredDuringSchedulingIgnoredDuringExecution") or []
        terms = [*required, *(_mapping(each).get("podAffinityTerm") for each in preferred)]
        if any(_mapping(t).get("namespaces") or _mapping(t).get("namespaceSelector") is not None for t in terms):
            return True
    return False


# -- services and claims ----------------------------------------------------------------------------------------------
def _service_usage(spec: JSON) -> Amounts:
    """A load balancer that allocates no node ports counts only those that it names."""
    ports = [_mapping(port) for port in spec.get("ports") or []]
    if spec.get("type") == "NodePort":
        return {"services.nodeports": _count(len(ports))}
    if spec.get("type") != "LoadBalancer":
        return {}
    if spec.get("allocateLoadBalancerNodePorts") is False:
        ports = [port for port in ports if port.get("nodePort")]
    return {"services.nodeports": _count(len(ports)), "services.loadbalancers": _ONE}


def _claim_usage(claim: JSON) -> Amounts:
    spec = _mapping(claim.get("spec"))
    usage: Amounts = {"persistentvolumeclaims": _ONE}
    storage = amounts_of(_mapping(_mapping(spec.get("resources")).get("requests"))).get("storage")
    if storage is not None:
        usage["requests.storage"] = Quantity(storage.value * NANO, storage.notation)  # whole bytes
    annotations = _mapping(_mapping(claim.get("metadata")).get("annotations"))
    storage_class = annotations.get(CLASS_ANNOTATION) or spec.get("storageClassName")
    if storage_class:
        usage |= {f"{storage_class}{CLASS_SUFFIX}{name}": amount for name, amount in usage.items()}
    return usage


def _count(number: int) -> Quantity:
    return Quantity(number * NANO)


def _mapping(value: Any) -> JSON:
    return value if isinstance(value, dict) else {}


# -- scopes -----------------------------------------------------------------------------------------------------------
def is_in_scope(consumer: Consumer, scopes: Iterable[str], expressions: Iterable[JSON]) -> bool:
    """Whether a quota with these scopes counts an object. A quota with scopes counts pods only."""
    wanted = [*({"scopeName": scope, "operator": "Exists"} for scope in scopes), *expressions]
    if wanted and not consumer.is_pod:
        return False
    return all(_matches(consumer, expression) for expression in wanted)


def _matches(consumer: Consumer, expression: JSON) -> bool:
    scope, operator, values = expression.get("scopeName"), expression.get("operator"), expression.get("values") or []
    if scope != "PriorityClass":
        return scope in consumer.scopes  # validation admits no operator but Exists
    match operator:
        case "Exists":
            return bool(consumer.priority_class)
        case "DoesNotExist":
            return not consumer.priority_class
        case "In":
            return consumer.priority_class in values
        case "NotIn":
            return consumer.priority_class not in values
    return False
