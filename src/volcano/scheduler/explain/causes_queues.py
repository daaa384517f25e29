"""Why a queue may not have what a job needs: never, as its limits are; or not now, as it and others hold it."""

from __future__ import annotations

from collections.abc import Iterator

from volcano.api.nearest_words import did_you_mean
from volcano.api.scheduling import ROOT_QUEUE
from volcano.api.why.reasons import Finding, finding, named
from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.explain.amounts_text import amount_text
from volcano.scheduler.explain.trials import TrialRules
from volcano.scheduler.framework.decisions import queue_allocated
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import CPU, EPSILON, MEMORY, PODS, Job, Queue, Resources, Status, Task


def queue_state_cause(snapshot: Snapshot, rules: TrialRules, name: str) -> Finding | None:
    """What keeps any job out of the queue: it does not exist, is closed, or has queues below it."""
    queue = snapshot.queues.get(name)
    if queue is None:
        open_ones = [each.name for each in snapshot.queues.values() if each.is_open and each.name != ROOT_QUEUE]
        return finding("QueueNotFound", queue=name, meant=did_you_mean(name, open_ones))
    if queue.state in ("Closed", "Closing"):
        return finding("QueueClosed", queue=name, state=queue.state)
    capacity = rules.option("capacity")
    if capacity is not None and capacity.hierarchy:
        children = sorted(other.name for other in snapshot.queues.values() if other.parent == name)
        if children and name != ROOT_QUEUE:
            return finding("QueueHasChildren", queue=name, names=named(children))
    broken = snapshot.set_aside.get(f"Queue/{name}")
    return finding("QueueBroken", queue=name, message=broken) if broken else None


def needed_of(job: Job) -> Resources:
    """What the pods that the job still needs to start ask for together; of each role, no more than its minimum."""
    missing = max(0, job.min_available - job.counts.ready)
    pending = sorted(job.by_status[Status.PENDING].values(), key=lambda task: task.uid)
    chosen: list[Task] = []
    for role, least in job.role_minimums.items() if job.checks_roles else ():
        have = job.roles[role].ready if role in job.roles else 0
        chosen += [task for task in pending if task.role == role][: max(0, least - have)]
    picked = {task.uid for task in chosen}
    rest = [task for task in pending if task.uid not in picked]
    chosen += rest[: max(0, missing - len(chosen))]
    if not chosen and pending:
        chosen = pending[:1]
    needed = Resources()
    for task in chosen:
        needed.add(task.request)
    if not chosen and job.min_resources is not None:
        needed.add(job.min_resources)
    return needed


def line_of(snapshot: Snapshot, name: str) -> Iterator[Queue]:
    """A queue and its ancestors."""
    seen: set[str] = set()
    while name in snapshot.queues and name not in seen:
        seen.add(name)
        yield snapshot.queues[name]
        name = snapshot.queues[name].parent or ROOT_QUEUE


def too_small_cause(snapshot: Snapshot, job: Job) -> Finding | None:
    """A queue, or one above it, that may never hold what the job needs, however empty it is."""
    needed = needed_of(job)
    for queue in line_of(snapshot, job.queue):
        over = _over(needed, queue.capability, Resources())
        if over is not None:
            assert queue.capability is not None
            return finding(
                "QueueTooSmall",
                queue=queue.name,
                limit=amount_text(queue.capability[over], over),
                resource=over,
                needed=amount_text(needed[over], over),
            )
    return None


def never_allowed_cause(session: Session, job: Job) -> Finding:
    """The limit that the job alone exceeds, on a cluster where nothing else runs."""
    snapshot, needed = session.snapshot, needed_of(job)
    too_small = too_small_cause(snapshot, job)
    if too_small is not None:
        return too_small
    lines = {queue.name for queue in line_of(snapshot, job.queue)}
    others = [queue for queue in snapshot.queues.values() if queue.guarantee is not None and queue.name not in lines]
    for resource in _requested(needed):
        holders = sorted((q for q in others if q.guarantee and q.guarantee[resource] >= EPSILON), key=_name)
        guaranteed = sum(q.guarantee[resource] for q in holders if q.guarantee is not None)
        left = session.total[resource] - guaranteed
        if guaranteed and needed[resource] > left + EPSILON:
            return finding(
                "OthersGuaranteed",
                holder=named([q.name for q in holders]),
                guaranteed=amount_text(guaranteed, resource),
                resource=resource,
                left=amount_text(left, resource),
                needed=amount_text(needed[resource], resource),
            )
    why = session.record.why.get(job.id)
    return finding("NotLetIn", queue=job.queue, message=str(why) if why is not None else "its limits do not allow it")


def not_now_cause(session: Session, job: Job) -> Finding:
    """What the queue or one above it holds and may hold, where the job would exceed it."""
    snapshot, needed = session.snapshot, needed_of(job)
    too_small = too_small_cause(snapshot, job)
    if too_small is not None:
        return too_small
    held = queue_allocated(session)
    shares = _shares(session)
    for queue in line_of(snapshot, job.queue):
        holds = held.get(queue.name, Resources())
        over = _over(needed, queue.capability, holds)
        if over is not None:
            assert queue.capability is not None
            return finding(
                "QueueFull",
                queue=queue.name,
                held=amount_text(holds[over], over),
                limit=amount_text(queue.capability[over], over),
                resource=over,
                needed=amount_text(needed[over], over),
                holders=_holders_text(session, queue.name, job),
            )
    for queue in line_of(snapshot, job.queue):
        share, holds = shares.get(queue.name), held.get(queue.name, Resources())
        over = _over(needed, share, holds) if share is not None else None
        if over is not None:
            assert share is not None
            return finding(
                "QueueAboveShare",
                queue=queue.name,
                held=amount_text(holds[over], over),
                share=amount_text(share[over], over),
                resource=over,
                needed=amount_text(needed[over], over),
                holders=_holders_text(session, queue.name, job),
            )
    why = session.record.why.get(job.id)
    return finding("NotLetIn", queue=job.queue, message=str(why) if why is not None else "its share is used")


def _shares(session: Session) -> dict[str, Resources]:
    """What each queue deserves (proportion) or may really have (capacity), as the plugin computed it."""
    shares: dict[str, Resources] = {}
    for plugin in session.ask.plugins("allocatable"):
        accounts = getattr(plugin, "accounts", None)
        for name, account in accounts.items() if accounts is not None else ():
            shares[name] = account.real_capability if plugin.name == "capacity" else account.deserved
    return shares


def _over(needed: Resources, limit: Resources | None, held: Resources) -> str | None:
    """The resource that would exceed the limit the most; one that the limit does not name is not limited."""
    if limit is None:
        return None
    over = {}
    for name in _requested(needed):
        stated = limit[name] if name in (CPU, MEMORY) else limit.amounts.get(name)
        if stated is None or (name in (CPU, MEMORY) and stated < EPSILON):
            continue
        if held[name] + needed[name] > stated + EPSILON:
            over[name] = (held[name] + needed[name]) / max(stated, EPSILON)
    return max(over, key=lambda name: over[name]) if over else None


def _requested(needed: Resources) -> list[str]:
    return [name for name in needed.names if name != PODS]


def _name(queue: Queue) -> str:
    return queue.name


def _holders_text(session: Session, queue: str, job: Job) -> str:
    below = {name for name in session.queues if any(q.name == queue for q in line_of(session.snapshot, name))}
    holding = [
        other
        for other in session.jobs.values()
        if other.queue in below and other is not job and not other.allocated.is_empty
    ]
    holding.sort(key=lambda other: (-other.allocated[CPU], other.id))
    return f"; held by {named([owner_name(other) for other in holding])}" if holding else ""


def owner_name(job: Job) -> str:
    owners = job.group.metadata.owner_references if job.group is not None else []
    return owners[0].name if owners else job.name.removeprefix("pod:")
