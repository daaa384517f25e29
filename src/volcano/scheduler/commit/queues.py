"""What a queue holds, written to its status as Volcano does."""

from __future__ import annotations

from collections.abc import Iterator

from volcano.api.meta import JSON
from volcano.api.quantity import BINARY_SI, NANO, Quantity, QuantityError
from volcano.api.scheduling import Queue as ApiQueue
from volcano.machinery.plan import Patch, ref
from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.framework.decisions import Decisions
from volcano.scheduler.model import CPU, MEMORY, PODS, Resources, resources_from


def queue_patches(decisions: Decisions, snapshot: Snapshot) -> Iterator[tuple[str, Patch]]:
    """For every queue whose status is not current."""
    for name, amount in decisions.queue_allocated.items():
        queue = snapshot.queues.get(name)
        stated = queue.object if queue is not None else None
        if stated is None or _is_stated(stated, amount):
            continue
        before = stated.status.allocated or {}
        body: JSON = dict(quantities_from(amount))
        body |= {resource: None for resource in before if resource not in body}
        yield name, Patch(ref(stated), {"status": {"allocated": body}}, subresource="status")


def _is_stated(queue: ApiQueue, amount: Resources) -> bool:
    if queue.status.allocated is None:
        return False
    try:
        known = resources_from(queue.status.allocated)
    except QuantityError:
        return False
    names = {name for name in (*known, *amount) if known[name] or amount[name]}
    return all(known[name] == amount[name] for name in names)


def quantities_from(amount: Resources) -> dict[str, str]:
    """A ResourceList as Volcano writes a queue's: cpu and the rest in thousandths, memory binary, pods counted."""
    listed: dict[str, str] = {}
    for name, value in amount.amounts.items():
        if name == MEMORY:
            listed[name] = str(Quantity(round(value) * NANO, BINARY_SI))
        elif name == PODS:
            listed[name] = str(Quantity(round(value) * NANO))
        elif value or name == CPU:
            listed[name] = str(Quantity(round(value) * (NANO // 1000)))
    return listed
