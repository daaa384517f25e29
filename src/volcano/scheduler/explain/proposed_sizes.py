"""Candidates that make a job smaller: its gang, what a pod requests, its replicas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from volcano.api.quantity import QuantityError, parse_quantity
from volcano.scheduler.core.node_view import NodeView
from volcano.scheduler.explain.amounts_text import amount_text
from volcano.scheduler.explain.causes_nodes import node_masks
from volcano.scheduler.explain.change_costs import GANG, REPLICAS, REQUEST, ChangeCandidate
from volcano.scheduler.explain.owners import ChangedOwner, Operation, escaped
from volcano.scheduler.explain.trials import attempt, opened, standing
from volcano.scheduler.explain.waiting_case import WaitingCase
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import CPU, EPSILON, MEMORY, PODS, Job, Status, Task

SMALLEST: Final = {CPU: 1.0, MEMORY: 1024.0 * 1024.0}


def room_now(case: WaitingCase) -> int:
    """How many of the waiting pods would be placed now, if each might start alone."""
    tried = attempt(case.snapshot, case.rules, case.subject.of_any_size(), let_in=True)
    return tried.bound


def gang_candidates(case: WaitingCase, owner: ChangedOwner) -> Iterator[ChangeCandidate]:
    path = {"Job": "/spec/minAvailable", "PodGroup": "/spec/minMember"}.get(owner.kind)
    if path is None:
        return
    stated = case.subject.group.spec.min_member
    later = case.planned.after
    if later:
        at_once = sum(replicas for task, replicas in case.planned.replicas.items() if task not in later)
        if 0 < at_once < stated:
            yield _gang_of(path, at_once, stated, owner)
    exist = len(case.subject.pods) + len(case.placed)
    if 0 < exist < stated:
        yield _gang_of(path, exist, stated, owner)
    size = case.ready + room_now(case)
    if 0 < size < stated:
        yield _gang_of(path, size, stated, owner)
    allowed = _allowed_by_quotas(case)
    if 0 < allowed < stated:
        yield _gang_of(path, allowed, stated, owner)


def _gang_of(path: str, size: int, stated: int, owner: ChangedOwner) -> ChangeCandidate:
    name = path.rpartition("/")[2]
    op = "replace" if owner.at(path) is not None else "add"
    return ChangeCandidate(GANG, f"lower {name} from {stated} to {size}", [{"op": op, "path": path, "value": size}])


def _allowed_by_quotas(case: WaitingCase) -> int:
    """Pods that the quotas on the number of pods allow in all."""
    most = 2**31
    for key, quota in case.snapshot.cluster.resource_quotas.items():
        if key.namespace == (case.subject.group.namespace or "default"):
            for name in ("pods", "count/pods"):
                hard, used = (quota.status.hard or {}).get(name), (quota.status.used or {}).get(name, "0")
                if hard is not None:
                    own = sum(pod.uid in case.snapshot.tasks for pod in case.subject.pods) + len(case.placed)
                    most = min(most, int(parse_quantity(hard).value - parse_quantity(used).value) + own)
    return most if most < 2**31 else 0


# -- a smaller request ------------------------------------------------------------------------------------------------
def request_candidates(case: WaitingCase, owner: ChangedOwner) -> Iterator[ChangeCandidate]:
    with standing(case.snapshot, case.subject, let_in=True) as job, opened(case.snapshot, case.rules, job) as session:
        for task in _by_role(job):
            for name in task.request.names:
                if name != PODS:
                    yield from _smaller(session, job, task, name, owner)


def _by_role(job: Job) -> list[Task]:
    chosen: dict[str, Task] = {}
    for task in sorted(job.by_status[Status.PENDING].values(), key=lambda task: task.uid):
        chosen.setdefault(task.role, task)
    return list(chosen.values())


def _smaller(session: Session, job: Job, task: Task, name: str, owner: ChangedOwner) -> Iterator[ChangeCandidate]:
    """The largest request with which as many pods as are needed have room now."""
    view = NodeView(session.table)
    masks = node_masks(session.table, task)
    suitable = masks.labelled & ~masks.cordoned & ~masks.tainted & ~masks.not_ready
    for other in task.request.names:
        if other not in (name, PODS):
            suitable = suitable & (view.idle[other] > task.request[other] - EPSILON)
    free = np.maximum(view.idle[name][suitable], 0.0)
    pending = sum(other.role == task.role for other in job.by_status[Status.PENDING].values())
    needed = min(pending, max(1, job.min_available - job.counts.ready))
    queue_room = _queue_room(session, job, name)
    most = _largest_part(np.minimum(free, queue_room), needed)
    if queue_room < float("inf"):
        most = min(most, queue_room / needed)
    amount = _rounded(most, name)
    if amount < SMALLEST.get(name, 1000.0) or amount >= task.request[name] - EPSILON:
        return
    text, before = amount_text(amount, name), amount_text(task.request[name], name)
    for path in owner.pod_spec_paths(task.role if owner.kind == "Job" else None):
        operations = _lowered(owner, path, name, amount, task.request[name])
        if operations:
            yield ChangeCandidate(REQUEST, f"ask for {text} {name} instead of {before} per pod", operations)


def _queue_room(session: Session, job: Job, name: str) -> float:
    """What the queue may still hold of a resource, by its own limits; infinite without any."""
    room = float("inf")
    for plugin in session.ask.plugins("allocatable"):
        account = (getattr(plugin, "accounts", None) or {}).get(job.queue)
        if account is not None:
            limit = account.real_capability
            if limit[name] >= EPSILON:
                room = min(room, limit[name] - account.allocated[name])
    return max(room, 0.0)


def _largest_part(free: Any, needed: int) -> float:
    """The largest amount of which `needed` pieces can be cut from these."""
    low, high = 0.0, float(free.max(initial=0.0))
    if high <= 0.0:
        return 0.0
    if float(np.floor(free / high + 1e-9).sum()) >= needed:
        return high
    for _ in range(40):
        middle = (low + high) / 2.0
        if middle <= 0.0:
            break
        if float(np.floor(free / middle + 1e-9).sum()) >= needed:
            low = middle
        else:
            high = middle
    return low


def _rounded(amount: float, name: str) -> float:
    """Down to what people write: tenths of a cpu, mebibytes, whole devices."""
    if name == CPU:
        step = 100.0 if amount >= 100.0 else 1.0
    elif name == MEMORY:
        step = 1024.0**3 if amount >= 4 * 1024.0**3 else 1024.0**2
    else:
        step = 1000.0
    return float(np.floor(amount / step + 1e-6) * step)


def _lowered(owner: ChangedOwner, path: str, name: str, amount: float, before: float) -> list[Operation]:
    """The container that asks for most gives way; a limit that would be below its request, or a device's, follows."""
    containers = (owner.at(path) or {}).get("containers") or []
    stated = [(_stated(each, name), place) for place, each in enumerate(containers)]
    most, place = max(stated, default=(0.0, 0))
    left = amount - (before - most)
    if most <= 0.0 or left <= 0.0:
        return []
    where, text = f"{path}/containers/{place}/resources", amount_text(left, name)
    operations: list[Operation] = []
    resources = containers[place].get("resources") or {}
    for section in ("requests", "limits"):
        amounts = resources.get(section) or {}
        if name in amounts and (section == "requests" or "/" in name or name not in (resources.get("requests") or {})):
            operations.append({"op": "replace", "path": f"{where}/{section}/{escaped(name)}", "value": text})
    return operations


def _stated(container: dict[str, Any], name: str) -> float:
    resources = container.get("resources") or {}
    text = (resources.get("requests") or {}).get(name, (resources.get("limits") or {}).get(name))
    if text is None:
        return 0.0
    try:
        quantity = parse_quantity(text)
    except QuantityError:
        return 0.0
    return float(quantity.value if name == MEMORY else quantity.milli)


def replica_candidates(case: WaitingCase, owner: ChangedOwner) -> Iterator[ChangeCandidate]:
    if owner.kind != "Job":
        return
    tasks = (owner.body.get("spec") or {}).get("tasks") or []
    if len(tasks) != 1:
        return
    stated = int(tasks[0].get("replicas") or 1)
    size = case.ready + room_now(case) or _allowed_by_quotas(case)
    if 0 < size < stated:
        operations: list[Operation] = [{"op": "replace", "path": "/spec/tasks/0/replicas", "value": size}]
        if owner.at("/spec/tasks/0/minAvailable") is not None:
            operations.append({"op": "replace", "path": "/spec/tasks/0/minAvailable", "value": size})
        op = "replace" if owner.at("/spec/minAvailable") is not None else "add"
        operations.append(
            {"op": op, "path": "/spec/minAvailable", "value": min(size, case.subject.group.spec.min_member)}
        )
        yield ChangeCandidate(REPLICAS, f"run {size} pods instead of {stated}", operations)
