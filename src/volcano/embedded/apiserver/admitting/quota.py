"""ResourceQuota: what a namespace may use in all, checked when something is made.

Usage is kept up to date from the store's changes, for namespaces that have a quota. Writes on their way to the store
are counted as reserved, so that many at once cannot slip through together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from volcano.api.errors import Forbidden
from volcano.api.meta import JSON
from volcano.api.quantity import NANO, Quantity, QuantityError, parse_quantity
from volcano.embedded.apiserver.admitting.hook import Attributes
from volcano.embedded.apiserver.kinds.strategies import qos_class
from volcano.embedded.apiserver.store.contract import DELETED, Change, ObjectKey, Store

QUOTAS: Final = "resourcequotas"
_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
_MUST_SPECIFY: Final = frozenset({"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})
_SHORT_COUNTS: Final = frozenset(
    {"pods", "services", "secrets", "configmaps", "persistentvolumeclaims", "replicationcontrollers", "resourcequotas"}
)

Usage = dict[str, int]
"""Resource name of a quota → nano-units."""


class Consumer(msgspec.Struct, frozen=True):
    """One object and what it uses; scopes tell pods apart."""

    usage: Usage
    scopes: frozenset[str] = frozenset()
    priority_class: str = ""
    is_pod: bool = False


class Quota(msgspec.Struct, frozen=True):
    name: str
    hard: Usage
    shown: dict[str, str]
    scopes: tuple[str, ...]
    expressions: tuple[JSON, ...]

    def covers(self, consumer: Consumer) -> bool:
        if (self.scopes or self.expressions) and not consumer.is_pod:
            return False
        if not set(self.scopes) <= consumer.scopes:
            return False
        return all(_expression_holds(expression, consumer) for expression in self.expressions)


class QuotaLedger:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._namespaces: dict[str, _Account] = {}
        self._reserved: dict[ObjectKey, Consumer] = {}
        store.subscribe(self._follow)

    def check(self, attributes: Attributes) -> None:
        """Forbidden when a quota would be exceeded; otherwise the usage is reserved until `release`."""
        if not self._store.count(QUOTAS) or not attributes.resource.namespaced or attributes.object is None:
            return
        quotas = self._quotas(attributes.namespace)
        if not quotas:
            return
        row = attributes.resource
        consumer = consumer_of(row.qualified, attributes.object)
        account = self._account(attributes.namespace)
        for quota in quotas:
            if quota.covers(consumer):
                self._check_one(quota, consumer, account, attributes)
        if not attributes.dry_run:
            self._reserved[ObjectKey(row.qualified, attributes.namespace, attributes.name)] = consumer

    def release(self, key: ObjectKey) -> None:
        """The write is over, one way or the other."""
        self._reserved.pop(key, None)

    def used(self, namespace: str) -> dict[str, dict[str, str]]:
        """For each quota of a namespace, what is used of what it limits."""
        account = self._account(namespace)
        return {
            quota.name: {name: _shown(name, account.total(quota).get(name, 0)) for name in quota.hard}
            for quota in self._quotas(namespace)
        }

    def _check_one(self, quota: Quota, consumer: Consumer, account: _Account, attributes: Attributes) -> None:
        wanted = {name: amount for name, amount in consumer.usage.items() if name in quota.hard}
        if consumer.is_pod:
            missing = sorted(name for name in quota.hard if name in _MUST_SPECIFY and name not in consumer.usage)
            if missing:
                what = ",".join(missing)
                raise self._refused(attributes, f"failed quota: {quota.name}: must specify {what}")
        used = dict(account.total(quota))
        for key, other in self._reserved.items():
            if key.namespace == attributes.namespace and quota.covers(other) and self._store.find(key) is None:
                for name, amount in other.usage.items():
                    used[name] = used.get(name, 0) + amount
        over = sorted(n for n, amount in wanted.items() if amount > 0 and used.get(n, 0) + amount > quota.hard[n])
        if over:
            asked = ",".join(f"{name}={_shown(name, wanted[name])}" for name in over)
            in_use = ",".join(f"{name}={_shown(name, used.get(name, 0))}" for name in over)
            limited = ",".join(f"{name}={quota.shown[name]}" for name in over)
            raise self._refused(
                attributes, f"exceeded quota: {quota.name}, requested: {asked}, used: {in_use}, limited: {limited}"
            )

    def _refused(self, attributes: Attributes, why: str) -> Forbidden:
        row = attributes.resource
        return Forbidden(
            f'{row.qualified} "{attributes.name}" is forbidden: {why}',
            details={"name": attributes.name, "kind": row.plural, **({"group": row.group} if row.group else {})},
        )

    def _quotas(self, namespace: str) -> list[Quota]:
        found = []
        for stored in self._store.scan(QUOTAS, namespace):
            spec = msgspec.json.decode(stored.raw).get("spec") or {}
            hard = spec.get("hard") or {}
            found.append(
                Quota(
                    stored.key.name,
                    {name: _nanos(amount) for name, amount in hard.items()},
                    {name: str(amount) for name, amount in hard.items()},
                    tuple(spec.get("scopes") or ()),
                    tuple((spec.get("scopeSelector") or {}).get("matchExpressions") or ()),
                )
            )
        return found

    def _account(self, namespace: str) -> _Account:
        account = self._namespaces.get(namespace)
        if account is None:
            account = self._namespaces[namespace] = _Account()
            for resource in self._store.resources():
                for stored in self._store.scan(resource, namespace):
                    account.put(stored.key, consumer_of(resource, msgspec.json.decode(stored.raw)))
        return account

    def _follow(self, changes: Sequence[Change]) -> None:
        for change in changes:
            account = self._namespaces.get(change.stored.key.namespace)
            if account is None:
                continue
            if change.stored.key.resource == QUOTAS:
                account.forget_totals()
            if change.kind == DELETED:
                account.remove(change.stored.key)
            else:
                account.put(
                    change.stored.key, consumer_of(change.stored.key.resource, msgspec.json.decode(change.stored.raw))
                )


class _Account:
    """What the objects of one namespace use, with totals per quota."""

    def __init__(self) -> None:
        self._consumers: dict[ObjectKey, Consumer] = {}
        self._totals: dict[str, tuple[Quota, Usage]] = {}

    def put(self, key: ObjectKey, consumer: Consumer) -> None:
        self.remove(key)
        self._consumers[key] = consumer
        self._count(consumer, 1)

    def remove(self, key: ObjectKey) -> None:
        consumer = self._consumers.pop(key, None)
        if consumer is not None:
            self._count(consumer, -1)

    def total(self, quota: Quota) -> Usage:
        known = self._totals.get(quota.name)
        if known is not None and known[0] == quota:
            return known[1]
        total: Usage = {}
        self._totals[quota.name] = (quota, total)
        for consumer in self._consumers.values():
            _add(total, consumer, quota, 1)
        return total

    def forget_totals(self) -> None:
        self._totals.clear()

    def _count(self, consumer: Consumer, sign: int) -> None:
        for quota, total in self._totals.values():
            _add(total, consumer, quota, sign)


def _add(total: Usage, consumer: Consumer, quota: Quota, sign: int) -> None:
    if quota.covers(consumer):
        for name, amount in consumer.usage.items():
            total[name] = total.get(name, 0) + sign * amount


def consumer_of(qualified: str, obj: JSON) -> Consumer:
    """What an object counts for."""
    usage: Usage = {f"count/{qualified}": NANO}
    if qualified in _SHORT_COUNTS:
        usage[qualified] = NANO
    spec = obj.get("spec") or {}
    if qualified == "pods":
        return _pod_consumer(obj, spec)
    if qualified == "services":
        if spec.get("type") in ("NodePort", "LoadBalancer"):
            usage["services.nodeports"] = NANO * len(spec.get("ports") or [])
        if spec.get("type") == "LoadBalancer":
            usage["services.loadbalancers"] = NANO
    if qualified == "persistentvolumeclaims":
        storage = _nanos(((spec.get("resources") or {}).get("requests") or {}).get("storage"))
        usage["requests.storage"] = storage
        if spec.get("storageClassName"):
            prefix = f"{spec['storageClassName']}.storageclass.storage.k8s.io"
            usage[f"{prefix}/requests.storage"] = storage
            usage[f"{prefix}/persistentvolumeclaims"] = NANO
    return Consumer(usage)


def _pod_consumer(pod: JSON, spec: JSON) -> Consumer:
    usage: Usage = {"count/pods": NANO}
    scopes = {"BestEffort" if qos_class(spec) == "BestEffort" else "NotBestEffort"}
    scopes.add("Terminating" if spec.get("activeDeadlineSeconds") is not None else "NotTerminating")
    if spec.get("priorityClassName"):
        scopes.add("PriorityClass")
    if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
        usage["pods"] = NANO
        for name, amount in _effective(spec, "requests").items():
            usage[f"requests.{name}"] = amount
            if name in _COMPUTE:
                usage[name] = amount
        for name, amount in _effective(spec, "limits").items():
            usage[f"limits.{name}"] = amount
    return Consumer(usage, frozenset(scopes), str(spec.get("priorityClassName") or ""), is_pod=True)


def _effective(spec: JSON, part: str) -> Usage:
    """The sum over containers, or the largest init container if that is more."""
    total: Usage = {}
    for container in spec.get("containers") or []:
        for name, amount in _amounts(container, part):
            total[name] = total.get(name, 0) + amount
    for container in spec.get("initContainers") or []:
        for name, amount in _amounts(container, part):
            total[name] = max(total.get(name, 0), amount)
    for name, amount in (spec.get("overhead") or {}).items():
        total[name] = total.get(name, 0) + _nanos(amount)
    return total


def _amounts(container: Any, part: str) -> Iterator[tuple[str, int]]:
    resources = container.get("resources") if isinstance(container, dict) else None
    amounts: Mapping[str, Any] = (resources.get(part) if isinstance(resources, dict) else None) or {}
    for name, amount in amounts.items():
        yield name, _nanos(amount)


def _nanos(amount: Any) -> int:
    try:
        return parse_quantity(amount).nanos if amount is not None else 0
    except (QuantityError, TypeError):
        return 0


def _shown(name: str, nanos: int) -> str:
    binary = name.endswith(("memory", "storage")) and nanos % (1024 * NANO) == 0
    return str(Quantity(nanos, "BinarySI" if binary else "DecimalSI"))


def _expression_holds(expression: JSON, consumer: Consumer) -> bool:
    scope, operator, values = expression.get("scopeName"), expression.get("operator"), expression.get("values") or []
    if scope == "PriorityClass":
        name = consumer.priority_class
        match operator:
            case "Exists":
                return bool(name)
            case "DoesNotExist":
                return not name
            case "In":
                return name in values
            case "NotIn":
                return name not in values
    return scope in consumer.scopes if operator == "Exists" else scope not in consumer.scopes
