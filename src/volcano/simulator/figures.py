"""Figures about one run: waits, slowdown, makespan, utilisation, fragmentation, fairness, evictions; in seconds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from volcano.api import scheduling
from volcano.simulator.fairness import jain, satisfaction, share_samples
from volcano.simulator.jobs import JobOutcome, WorkloadJob, amounts_of_role
from volcano.simulator.timelines import Timelines

T = TypeVar("T")

SLOWDOWN_THRESHOLD_SECONDS: Final = 10.0  # shorter run times count as this long
DIGITS: Final = 6
MAX_NAMED_JOBS: Final = 100


def figures(
    outcomes: Iterable[JobOutcome],
    timelines: Timelines,
    queues: Sequence[scheduling.Queue],
    never_runnable: Mapping[str, str],
    now: float,
) -> dict[str, Any]:
    """What report.json says of one policy."""
    every = list(outcomes)
    finished = [outcome for outcome in every if outcome.end is not None]
    begin = min((outcome.job.submit for outcome in finished), default=0.0)
    end = max((outcome.end for outcome in finished if outcome.end is not None), default=begin)
    unfinished = [outcome.job.name for outcome in every if outcome.end is None]
    used = _integrals(timelines, begin, end)
    return {
        "jobs": len(every) + len(never_runnable),
        "finished": len(finished),
        "bounded_slowdown": {
            "mean": _mean([bounded_slowdown(outcome) for outcome in finished]),
            "threshold": SLOWDOWN_THRESHOLD_SECONDS,
        },
        "wait": _waits(finished),
        "makespan": round(end - begin, DIGITS),
        "utilisation": utilisation(finished, used),
        "allocation": {name: _share(used.held.get(name, 0.0), offered) for name, offered in used.offered_names()},
        "fragmentation": _fragmentation(timelines),
        "fairness": _fairness(every, timelines, queues, begin, end),
        "starvation": _starvation(every, now),
        "evictions": sum(outcome.evictions for outcome in every),
        "lost_pod_seconds": round(sum(outcome.lost_seconds for outcome in every), DIGITS),
        "never_runnable": {"count": len(never_runnable), "jobs": dict(list(never_runnable.items())[:MAX_NAMED_JOBS])},
        "unfinished": {"count": len(unfinished), "jobs": unfinished[:MAX_NAMED_JOBS]},
        "failed": {each.job.name: each.failed for each in [o for o in every if o.failed][:MAX_NAMED_JOBS]},
    }


def _waits(finished: Iterable[JobOutcome]) -> dict[str, float]:
    waits = sorted(outcome.wait for outcome in finished if outcome.wait is not None)
    return {
        "mean": _mean(waits),
        "p50": percentile(waits, 50),
        "p95": percentile(waits, 95),
        "p99": percentile(waits, 99),
        "max": round(waits[-1], DIGITS) if waits else 0.0,
    }


@dataclass(slots=True)
class ResourceSeconds:
    """Amount times seconds, between the first submission and the last end."""

    held: dict[str, float]
    offered: dict[str, float]
    asked: set[str]

    def offered_names(self) -> list[tuple[str, float]]:
        return [(name, self.offered.get(name, 0.0)) for name in sorted({"cpu", *self.asked})]


def _integrals(timelines: Timelines, begin: float, end: float) -> ResourceSeconds:
    held: dict[str, float] = {}
    asked: set[str] = set()
    for points in timelines.queues.values():
        for point, until in _spans(points, lambda each: each.seconds, begin, end):
            asked.update(point.wanted)
            for name, amount in point.held.items():
                held[name] = held.get(name, 0.0) + amount * (until - max(point.seconds, begin))
    offered: dict[str, float] = {}
    for (at, amounts), until in _spans(timelines.capacity, lambda each: each[0], begin, end):
        for name, amount in amounts.items():
            offered[name] = offered.get(name, 0.0) + amount * (until - max(at, begin))
    return ResourceSeconds(held, offered, asked)


def _spans(points: Sequence[T], at: Callable[[T], float], begin: float, end: float) -> Iterator[tuple[T, float]]:
    """Each point with the time until which it holds, as far as it lies between begin and end."""
    for index, point in enumerate(points):
        until = min(at(points[index + 1]) if index + 1 < len(points) else end, end)
        if until > max(at(point), begin):
            yield point, until


def _fragmentation(timelines: Timelines) -> dict[str, float]:
    """Of the room that was free while jobs waited or ran, the share that no typical pod could use."""
    return {
        name: _share(timelines.unusable_seconds[name], free) for name, free in sorted(timelines.free_seconds.items())
    }


def _fairness(
    every: Sequence[JobOutcome], timelines: Timelines, queues: Sequence[scheduling.Queue], begin: float, end: float
) -> dict[str, Any]:
    samples = share_samples(timelines, queues, begin, end)
    of_queue: dict[str, list[JobOutcome]] = {}
    for outcome in every:
        of_queue.setdefault(outcome.job.queue, []).append(outcome)
    satisfied = {name: satisfaction(found) for name, found in samples.items()}
    return {
        "jain": round(jain([each for each in satisfied.values() if each is not None]), DIGITS),
        "queues": {
            name: {
                "jobs": len(of_queue.get(name, ())),
                "finished": sum(outcome.end is not None for outcome in of_queue.get(name, ())),
                "held": _mean([each.held for each in found]),
                "deserved": _mean([each.deserved for each in found]),
                "satisfied": None if satisfied[name] is None else round(satisfied[name] or 0.0, DIGITS),
                "wait": _waits(outcome for outcome in of_queue.get(name, ()) if outcome.end is not None),
                "evictions": sum(outcome.evictions for outcome in of_queue.get(name, ())),
            }
            for name, found in sorted(samples.items())
        },
    }


def _starvation(every: Sequence[JobOutcome], now: float) -> dict[str, Any]:
    """The longest wait, also of a job that has not started."""
    waits = [(outcome.wait if outcome.wait is not None else now - outcome.job.submit, outcome) for outcome in every]
    waits = [pair for pair in waits if pair[0] >= 0.0]
    if not waits:
        return {"longest_wait": 0.0, "job": "", "started": True}
    longest, outcome = max(waits, key=lambda pair: (pair[0], pair[1].job.name))
    return {"longest_wait": round(longest, DIGITS), "job": outcome.job.name, "started": outcome.start is not None}


def bounded_slowdown(outcome: JobOutcome) -> float:
    """Time from submission to end over run time, at least 1; very short jobs do not dominate it."""
    if outcome.end is None:
        return 1.0
    ran = outcome.job.run_time if outcome.ran is None else outcome.ran
    return max((outcome.end - outcome.job.submit) / max(ran, SLOWDOWN_THRESHOLD_SECONDS), 1.0)


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Interpolated between the two nearest of the sorted values; 0 without any."""
    if not ordered:
        return 0.0
    place = (len(ordered) - 1) * percent / 100.0
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return round(ordered[low] + (ordered[high] - ordered[low]) * (place - low), DIGITS)


def utilisation(finished: Iterable[JobOutcome], used: ResourceSeconds) -> dict[str, float]:
    """The share of what all nodes offered during the makespan that work which counted used, by resource."""
    work: dict[str, float] = {}
    for outcome in finished:
        seconds = outcome.job.run_time if outcome.ran is None else outcome.ran
        for name, amount in requested(outcome.job).items():
            work[name] = work.get(name, 0.0) + amount * seconds
    return {name: _share(work.get(name, 0.0), used.offered.get(name, 0.0)) for name in sorted({"cpu", *work})}


def _share(part: float, whole: float) -> float:
    return round(part / whole, DIGITS) if whole else 0.0


def requested(job: WorkloadJob) -> dict[str, float]:
    """What all pods of a job request together."""
    sums: dict[str, float] = {}
    for role in job.roles:
        for name, amount in amounts_of_role(role).items():
            sums[name] = sums.get(name, 0.0) + amount * role.count
    return sums


def _mean(values: Sequence[float]) -> float:
    return round(math.fsum(values) / len(values), DIGITS) if values else 0.0
