"""Figures about one run: waits, bounded slowdown, makespan, utilisation, evictions; times in seconds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from volcano.api.quantity import parse_quantity
from volcano.simulator.jobs import JobOutcome, WorkloadJob

SLOWDOWN_THRESHOLD_SECONDS: Final = 10.0  # shorter run times count as this long
DIGITS: Final = 6
MAX_NAMED_JOBS: Final = 100


def figures(
    outcomes: Iterable[JobOutcome], capacity: Mapping[str, float], never_runnable: Mapping[str, str]
) -> dict[str, Any]:
    """What report.json says of one policy."""
    every = list(outcomes)
    finished = [outcome for outcome in every if outcome.end is not None]
    waits = sorted(outcome.wait for outcome in finished if outcome.wait is not None)
    makespan = _makespan(finished)
    unfinished = [outcome.job.name for outcome in every if outcome.end is None]
    return {
        "jobs": len(every) + len(never_runnable),
        "finished": len(finished),
        "bounded_slowdown": {
            "mean": _mean([bounded_slowdown(outcome) for outcome in finished]),
            "threshold": SLOWDOWN_THRESHOLD_SECONDS,
        },
        "wait": {
            "mean": _mean(waits),
            "p50": percentile(waits, 50),
            "p95": percentile(waits, 95),
            "p99": percentile(waits, 99),
            "max": round(waits[-1], DIGITS) if waits else 0.0,
        },
        "makespan": makespan,
        "utilisation": utilisation(finished, capacity, makespan),
        "evictions": sum(outcome.evictions for outcome in every),
        "lost_pod_seconds": round(sum(outcome.lost_seconds for outcome in every), DIGITS),
        "never_runnable": {"count": len(never_runnable), "jobs": dict(list(never_runnable.items())[:MAX_NAMED_JOBS])},
        "unfinished": {"count": len(unfinished), "jobs": unfinished[:MAX_NAMED_JOBS]},
    }


def bounded_slowdown(outcome: JobOutcome) -> float:
    """Time from submission to end over run time, at least 1; very short jobs do not dominate it."""
    if outcome.end is None:
        return 1.0
    return max((outcome.end - outcome.job.submit) / max(outcome.job.run_time, SLOWDOWN_THRESHOLD_SECONDS), 1.0)


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Interpolated between the two nearest of the sorted values; 0 without any."""
    if not ordered:
        return 0.0
    place = (len(ordered) - 1) * percent / 100.0
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return round(ordered[low] + (ordered[high] - ordered[low]) * (place - low), DIGITS)


def utilisation(finished: Iterable[JobOutcome], capacity: Mapping[str, float], makespan: float) -> dict[str, float]:
    """The share of what all nodes offered during the makespan that work which counted used, by resource."""
    used: dict[str, float] = {}
    for outcome in finished:
        for name, amount in requested(outcome.job).items():
            used[name] = used.get(name, 0.0) + amount * outcome.job.run_time
    offered = {name: capacity.get(name, 0.0) * makespan for name in {"cpu", *used}}
    return {
        name: round(used.get(name, 0.0) / offered[name], DIGITS) if offered[name] else 0.0 for name in sorted(offered)
    }


def requested(job: WorkloadJob) -> dict[str, float]:
    """What all pods of a job request together."""
    sums: dict[str, float] = {}
    for role in job.roles:
        for name, text in role.requests.items():
            sums[name] = sums.get(name, 0.0) + float(parse_quantity(text)) * role.count
    return sums


def _makespan(finished: Sequence[JobOutcome]) -> float:
    """From the first submission to the last end, of jobs that finished."""
    ends = [outcome.end for outcome in finished if outcome.end is not None]
    return round(max(ends) - min(outcome.job.submit for outcome in finished), DIGITS) if ends else 0.0


def _mean(values: Sequence[float]) -> float:
    return round(math.fsum(values) / len(values), DIGITS) if values else 0.0
