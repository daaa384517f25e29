"""ResourceQuota: what a namespace may use in all, checked when something is created or grows.

What one object counts for is api.quotas'. Usage is kept up to date from the store's changes, for namespaces that have
a quota. Writes on their way to the store are counted as reserved, so that many at once cannot slip through together.
`upkeep.quota_status` writes the sums into the status.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from volcano.api.errors import Forbidden
from volcano.api.meta import JSON
from volcano.api.pods.amounts import Amounts, amounts_of, to_wire
from volcano.api.quantity import Quantity
from volcano.api.quotas import Consumer, consumer_of, is_in_scope, unstated
from volcano.embedded.apiserver.store.contract import DELETED, LoggedChange, ObjectKey, Store
from volcano.machinery.admission import UPDATE, Attributes

QUOTAS: Final = "resourcequotas"
MAY_GROW: Final = frozenset({"services", "persistentvolumeclaims"})
"""Kinds of which Kubernetes also checks updates: a service may get more node ports, a claim more storage."""
_ZERO: Final = Quantity(0)


class Quota(msgspec.Struct, frozen=True):
    """A ResourceQuota as far as admission reads it."""

    name: str
    hard: Amounts
    scopes: tuple[str, ...]
    expressions: tuple[JSON, ...]

    def covers(self, consumer: Consumer) -> bool:
        return is_in_scope(consumer, self.scopes, self.expressions)


class QuotaLedger:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._namespaces: dict[str, _Account] = {}
        self._reserved: dict[ObjectKey, Consumer] = {}
        store.subscribe(self._follow)

    def check(self, attributes: Attributes) -> None:
        """Forbidden when a quota would be exceeded; otherwise the usage of a new object is reserved until `release`."""
        if not self._store.count(QUOTAS) or not attributes.resource.namespaced or attributes.object is None:
            return
        grows = attributes.resource.qualified in MAY_GROW or attributes.subresource == "resize"
        if attributes.operation == UPDATE and not grows:
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
        if not attributes.dry_run and attributes.operation != UPDATE:
            self._reserved[ObjectKey(row.qualified, attributes.namespace, attributes.name)] = consumer

    def release(self, key: ObjectKey) -> None:
        """The write is over, one way or the other."""
        self._reserved.pop(key, None)

    def used(self, namespace: str) -> dict[str, dict[str, str]]:
        """For each quota of a namespace, what is used of what it limits."""
        account = self._account(namespace)
        return {
            quota.name: to_wire({name: account.total(quota).get(name, _ZERO) for name in quota.hard})
            for quota in self._quotas(namespace)
        }

    def _check_one(self, quota: Quota, consumer: Consumer, account: _Account, attributes: Attributes) -> None:
        if consumer.is_pod and (missing := unstated(quota.hard, attributes.object or {})):
            raise self._refused(attributes, f"failed quota: {quota.name}: must specify {missing}")
        before = consumer_of(attributes.resource.qualified, attributes.old).usage if attributes.old else {}
        wanted = {name: amount - before.get(name, _ZERO) for name, amount in consumer.usage.items()}
        used = self._used_and_reserved(quota, account, attributes.namespace)
        over = {
            name: amount
            for name, amount in wanted.items()
            if name in quota.hard and amount > _ZERO and used.get(name, _ZERO) + amount > quota.hard[name]
        }
        if over:
            in_use = _listed({name: used.get(name, _ZERO) for name in over})
            limited = _listed({name: quota.hard[name] for name in over})
            raise self._refused(
                attributes,
                f"exceeded quota: {quota.name}, requested: {_listed(over)}, used: {in_use}, limited: {limited}",
            )

    def _used_and_reserved(self, quota: Quota, account: _Account, namespace: str) -> Amounts:
        used = dict(account.total(quota))
        for key, other in self._reserved.items():
            if key.namespace == namespace and quota.covers(other) and self._store.find(key) is None:
                _add(used, other.usage)
        return used

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
                    amounts_of(hard),
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

    def _follow(self, changes: Sequence[LoggedChange]) -> None:
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
        self._totals: dict[str, tuple[Quota, Amounts]] = {}

    def put(self, key: ObjectKey, consumer: Consumer) -> None:
        self.remove(key)
        self._consumers[key] = consumer
        for quota, total in self._totals.values():
            if quota.covers(consumer):
                _add(total, consumer.usage)

    def remove(self, key: ObjectKey) -> None:
        consumer = self._consumers.pop(key, None)
        if consumer is not None:
            for quota, total in self._totals.values():
                if quota.covers(consumer):
                    _subtract(total, consumer.usage)

    def total(self, quota: Quota) -> Amounts:
        known = self._totals.get(quota.name)
        if known is not None and known[0] == quota:
            return known[1]
        total: Amounts = {}
        self._totals[quota.name] = (quota, total)
        for consumer in self._consumers.values():
            if quota.covers(consumer):
                _add(total, consumer.usage)
        return total

    def forget_totals(self) -> None:
        self._totals.clear()


def _add(total: Amounts, usage: Amounts) -> None:
    for name, amount in usage.items():
        total[name] = total.get(name, _ZERO) + amount


def _subtract(total: Amounts, usage: Amounts) -> None:
    for name, amount in usage.items():
        total[name] = total.get(name, _ZERO) - amount


def _listed(amounts: Amounts) -> str:
    return ",".join(f"{name}={amount}" for name, amount in to_wire(amounts).items())
