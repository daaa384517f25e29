"""The ResourceQuotas of a namespace that keep pods from being created, or keep a job out of its queue."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from volcano.api.core import Pod, ResourceQuota
from volcano.api.meta import JSON
from volcano.api.pods.amounts import Amounts, amounts_of
from volcano.api.quantity import Quantity
from volcano.api.quotas import consumer_of, is_in_scope
from volcano.api.why.reasons import Finding, finding
from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.explain.trials import TriedJob


def quota_cause(snapshot: Snapshot, subject: TriedJob, placed: Sequence[Pod]) -> Finding | None:
    """The quota that does not allow the pods that are yet to be created; None when all exist or all are allowed."""
    missing = [pod for pod in subject.pods if pod.uid not in snapshot.tasks]
    least = subject.group.spec.min_member
    exist = len(subject.pods) - len(missing) + len(placed)
    if not missing or exist >= max(least, 1):
        return None
    needed = missing[: max(1, least - exist)]
    everything = [*(pod for pod in subject.pods if pod.uid in snapshot.tasks), *placed, *needed]
    for key, quota in sorted(snapshot.cluster.resource_quotas.items()):
        if key.namespace == (subject.group.namespace or "default"):
            found = _exceeded(quota, needed, everything)
            if found is not None:
                return found
    return None


def _exceeded(quota: ResourceQuota, needed: Sequence[Pod], everything: Sequence[Pod]) -> Finding | None:
    hard = amounts_of(quota.status.hard or quota.spec.hard)
    used = amounts_of(quota.status.used)
    more, whole = _usage(quota, needed), _usage(quota, everything)
    for resource, limit in hard.items():
        wanted = more.get(resource)
        if wanted is None or not wanted or used.get(resource, Quantity(0)) + wanted <= limit:
            continue
        total = whole[resource]
        return finding(
            "QuotaTooSmall" if limit < total else "QuotaUsed",
            quota=quota.name,
            used=str(used.get(resource, Quantity(0))),
            hard=str(limit),
            resource=resource,
            needed=str(total),
        )
    return None


def _usage(quota: ResourceQuota, pods: Iterable[Pod]) -> Amounts:
    total: Amounts = {}
    selector = quota.spec.scope_selector or {}
    expressions: list[JSON] = selector.get("matchExpressions") or []
    for pod in pods:
        body: JSON = {"spec": msgspec.to_builtins(pod.spec), "status": {"phase": "Pending"}}
        consumer = consumer_of("pods", body)
        if is_in_scope(consumer, quota.spec.scopes, expressions):
            for name, amount in consumer.usage.items():
                total[name] = total.get(name, Quantity(0)) + amount
    return total
