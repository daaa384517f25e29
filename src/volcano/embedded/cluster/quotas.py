"""Resource quotas: how much of each a namespace uses. Refusing what goes beyond is admission's business."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from datetime import timedelta
from typing import Any, ClassVar, Final

from volcano.api.core import PersistentVolumeClaim, Pod, ResourceQuota, ResourceQuotaStatus
from volcano.api.meta import Key, Quantities, Resource
from volcano.api.partial import PartialObject
from volcano.api.pods.requests import Amounts, added, amounts_of, pod_limits, pod_requests, quota_usage
from volcano.api.quantity import Quantity, parse_quantity
from volcano.machinery.controller import Controller, Wake, Waker, self_key
from volcano.machinery.plan import NOTHING, Later, Plan, patch_status
from volcano.machinery.world import Change, World

ALL: Final = ""  # the name in the key that stands for all quotas of a namespace
PAUSE: Final = timedelta(seconds=1)  # a burst of changes is counted once
TICK: Final = "tick"
COUNTED: Final = ("services", "configmaps", "secrets", "resourcequotas", "replicationcontrollers")
CLASS_SUFFIX: Final = ".storageclass.storage.k8s.io/"


class ResourceQuotaController(Controller):
    """Keeps the status of ResourceQuotas."""

    name: ClassVar = "resource-quota"

    @property
    def wakes_on(self) -> Mapping[type[Resource], Waker]:
        return {ResourceQuota: self_key, Pod: _pods, PartialObject: _objects}

    @property
    def reads(self) -> tuple[type[Resource], ...]:
        return (PersistentVolumeClaim,)

    def decide(self, key: Key, world: World, causes: tuple[Hashable, ...]) -> Plan:
        if key.name == ALL:
            quotas = world.where(ResourceQuota, "namespace", key.namespace)
            if quotas and TICK not in causes:
                return (Later(PAUSE, TICK),)
            return tuple(Later(timedelta(0), key=quota.key) for quota in quotas)
        quota = world.get(ResourceQuota, key)
        if quota is None or quota.is_deleting:
            return NOTHING
        hard = quota.spec.hard or {}
        status = ResourceQuotaStatus(hard=hard, used=used(quota, world))
        return NOTHING if status == quota.status else (patch_status(quota, status),)


def _pods(change: Change[Pod]) -> Iterable[Wake]:
    """Coming and going is seen with all other objects; here it is finishing that matters."""
    if change.old is not None and change.new is not None and change.old.is_finished != change.new.is_finished:
        yield Wake(Key(change.new.namespace, ALL))


def _objects(change: Change[PartialObject]) -> Iterable[Wake]:
    if change.object.namespace and (change.old is None or change.new is None):
        yield Wake(Key(change.object.namespace, ALL))


def used(quota: ResourceQuota, world: World) -> Quantities:
    """The present use of each resource that the quota names."""
    total = added(
        _of_pods(quota, world.where(Pod, "namespace", quota.namespace)),
        _of_claims(world.where(PersistentVolumeClaim, "namespace", quota.namespace)),
        _of_objects(world.where(PartialObject, "namespace", quota.namespace)),
    )
    nothing = parse_quantity(0)
    return {name: str(total.get(name, nothing)) for name in quota.spec.hard or {}}


def _of_pods(quota: ResourceQuota, pods: Iterable[Pod]) -> Amounts:
    mine = [pod for pod in pods if not pod.is_finished and in_scope(pod, quota)]
    total = added(*(quota_usage(pod.spec) for pod in mine))
    total.pop("count/pods", None)  # counted with the other objects, finished or not
    return total


def in_scope(pod: Pod, quota: ResourceQuota) -> bool:
    """Whether a quota that is only for some pods is for this one."""
    expressions: list[dict[str, Any]] = [{"scopeName": scope, "operator": "Exists"} for scope in quota.spec.scopes]
    expressions += (quota.spec.scope_selector or {}).get("matchExpressions") or []
    return all(_matches(pod, expression) for expression in expressions)


def _matches(pod: Pod, expression: Mapping[str, Any]) -> bool:
    match expression.get("scopeName"):
        case "Terminating":
            return pod.spec.active_deadline_seconds is not None
        case "NotTerminating":
            return pod.spec.active_deadline_seconds is None
        case "BestEffort":
            return _is_best_effort(pod)
        case "NotBestEffort":
            return not _is_best_effort(pod)
        case "PriorityClass":
            return _matches_class(pod, expression)
    return False


def _is_best_effort(pod: Pod) -> bool:
    asked = {*pod_requests(pod.spec), *pod_limits(pod.spec)}
    return not asked & {"cpu", "memory"}


def _matches_class(pod: Pod, expression: Mapping[str, Any]) -> bool:
    name, values = pod.spec.priority_class_name, expression.get("values") or ()
    match expression.get("operator"):
        case "In":
            return name in values
        case "NotIn":
            return name not in values
        case "Exists":
            return bool(name)
        case "DoesNotExist":
            return not name
    return False


def _of_claims(claims: Iterable[PersistentVolumeClaim]) -> Amounts:
    total: dict[str, Quantity] = {}
    for claim in claims:
        storage = amounts_of(claim.spec.resources.requests).get("storage")
        mine: Amounts = {"persistentvolumeclaims": parse_quantity(1)}
        if storage is not None:
            mine["requests.storage"] = storage
        if claim.spec.storage_class_name:
            prefix = claim.spec.storage_class_name + CLASS_SUFFIX
            mine |= {prefix + name: amount for name, amount in mine.items()}
        total = added(total, mine)
    return total


def _of_objects(objects: Iterable[PartialObject]) -> Amounts:
    counts: Counter[str] = Counter()
    for each in objects:
        counts[f"count/{each.resource.qualified}"] += 1
        if not each.resource.group and each.resource.plural in COUNTED:
            counts[each.resource.plural] += 1
    return {name: parse_quantity(count) for name, count in counts.items()}
