"""When a queue's limit lets a gang in, and what it leaves to others until then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from volcano.scheduler.core.node_table import Column, Mask
from volcano.scheduler.core.releases import Releases
from volcano.scheduler.framework.queue_usage import held_by_queues
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Job, Queue, Resources

MAX_QUEUE_DEPTH: Final = 64
TOLERANCE: Final = 1e-6


def quota_opens(session: Session, job: Job, wanted: Column, releases: Releases) -> float:
    """Seconds from now until the capability of the job's queue and of those above it has room; infinite: never."""
    line = [queue for queue in _line(session, job.queue) if queue.capability is not None]
    if not line:
        return 0.0
    held = held_by_queues(session)
    return max(_opens(session, queue, wanted, releases, held) for queue in line)


def quota_leaves(
    session: Session, queue: str, request: Resources, promised: Mapping[str, Column], seconds: float, releases: Releases
) -> bool:
    """Whether a task may still run at that time beside the gangs that are promised it (queue → what they take).

    Only limits that the task and such a gang share matter.
    """
    for limit in _line(session, queue):
        below = _below(session, limit) if limit.capability is not None else set()
        wanted = [amounts for name, amounts in promised.items() if name in below]
        if limit.capability is None or not wanted:
            continue
        held, ours = held_by_queues(session), _of_queues(releases, below)
        ended = releases.amounts[ours & (releases.seconds <= seconds + TOLERANCE)].sum(axis=0)
        for name, at in session.table.resources.items():
            if name not in limit.capability.amounts or request[name] <= 0.0:
                continue
            used = sum(held[each][name] for each in below if each in held) - float(ended[at])
            if used + float(sum(each[at] for each in wanted)) + request[name] > limit.capability[name] + TOLERANCE:
                return False
    return True


def _below(session: Session, queue: Queue) -> set[str]:
    """The queues whose jobs count for a queue."""
    return {name for name in session.queues if any(each is queue for each in _line(session, name))}


def _of_queues(releases: Releases, queues: set[str]) -> Mask:
    return np.array([releases.jobs[owner].queue in queues for owner in releases.owners], dtype=bool)


def _opens(session: Session, queue: Queue, wanted: Column, releases: Releases, held: dict[str, Resources]) -> float:
    assert queue.capability is not None, "only queues with a limit are asked"
    below = _below(session, queue)
    ours = _of_queues(releases, below)
    seconds, opens = releases.seconds[ours], 0.0
    for name, at in session.table.resources.items():
        if name not in queue.capability.amounts or wanted[at] <= 0.0:
            continue
        used = sum(held[each][name] for each in below if each in held)
        missing = used + float(wanted[at]) - queue.capability[name]
        if missing <= TOLERANCE:
            continue
        freed = np.cumsum(releases.amounts[ours, at])
        enough = np.flatnonzero(freed >= missing - TOLERANCE)
        if not len(enough):
            return float("inf")
        opens = max(opens, float(seconds[enough[0]]))
    return opens


def _line(session: Session, name: str) -> list[Queue]:
    """The queue and those above it."""
    line: list[Queue] = []
    while name in session.queues and len(line) < MAX_QUEUE_DEPTH:
        queue = session.queues[name]
        if any(each is queue for each in line):
            break
        line.append(queue)
        name = queue.parent
    return line
