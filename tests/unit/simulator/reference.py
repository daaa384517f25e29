"""An independent simulation of FCFS and SJF with and without EASY backfill, on processors instead of nodes."""

from __future__ import annotations

import heapq
from dataclasses import dataclass


@dataclass(frozen=True)
class RigidJob:
    number: int
    submit: float
    run_time: float
    size: int


def start_times(jobs: list[RigidJob], processors: int, *, shortest_first: bool, backfill: bool) -> dict[int, float]:
    """When each job starts. Everything that ends or arrives at one instant is seen before anything starts."""
    events = [(job.submit, 1, job.number, job) for job in jobs]
    heapq.heapify(events)
    free, starts = processors, dict[int, float]()
    waiting: list[RigidJob] = []
    running: dict[int, tuple[float, RigidJob]] = {}

    def rank(job: RigidJob) -> tuple[float, float, int]:
        return (job.run_time if shortest_first else 0.0, job.submit, job.number)

    while events:
        now = events[0][0]
        while events and events[0][0] == now:
            _, is_arrival, _, job = heapq.heappop(events)
            if is_arrival:
                waiting.append(job)
            else:
                free += job.size
                del running[job.number]
        waiting.sort(key=rank)
        chosen = []
        while waiting and waiting[0].size <= free - sum(job.size for job in chosen):
            chosen.append(waiting.pop(0))
        for job in chosen:
            starts[job.number] = now
            running[job.number] = (now + job.run_time, job)
            free -= job.size
            heapq.heappush(events, (now + job.run_time, 0, job.number, job))
        if not waiting or not backfill:
            continue
        shadow, spare = _shadow(waiting[0], free, list(running.values()))
        for job in waiting[1:]:
            ends_in_time = now + job.run_time <= shadow
            if job.size <= free and (ends_in_time or job.size <= spare):
                spare -= 0 if ends_in_time else job.size
                free -= job.size
                starts[job.number] = now
                running[job.number] = (now + job.run_time, job)
                heapq.heappush(events, (now + job.run_time, 0, job.number, job))
        waiting = [job for job in waiting if job.number not in starts]
    return starts


def _shadow(head: RigidJob, free: int, running: list[tuple[float, RigidJob]]) -> tuple[float, int]:
    """When the first job will fit, and how many processors it then leaves."""
    for end in sorted({end for end, _ in running}):
        available = free + sum(job.size for ends, job in running if ends <= end)
        if available >= head.size:
            return end, available - head.size
    raise AssertionError("the first job never fits")
