"""When a queue's limit lets a gang in: the first expected end after which its queues hold little enough."""

from __future__ import annotations

from typing import Final

import numpy as np

from volcano.scheduler.core.node_table import Column
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


def _opens(session: Session, queue: Queue, wanted: Column, releases: Releases, held: dict[str, Resources]) -> float:
    assert queue.capability is not None, "only queues with a limit are asked"
    below = {name for name in session.queues if any(each is queue for each in _line(session, name))}
    ours = np.array([releases.jobs[owner].queue in below for owner in releases.owners], dtype=bool)
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
