"""When waiting jobs will start: three playbacks of the live objects, with short, expected and long run times.

A job with past runs has their median and 90th percentile; without them, the estimate is the expected run time, and
half and twice of it are taken for short and long.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from volcano.api.jobs.expected_starts import DEFAULT, LEARNED, STATED, ExpectedStart, ExpectedStarts
from volcano.machinery.clock import Stopwatch
from volcano.scheduler.framework.run_time_estimates import default_estimate
from volcano.scheduler.model import Job
from volcano.scheduler.service.playback import Playback, Played, ends_with
from volcano.scheduler.service.simulate import Known

SHORT, EXPECTED, LONG = "short", "expected", "long"
SHORT_PART: Final = 0.5
LONG_PART: Final = 2.0
SHORT_OF_MEDIAN: Final = 0.5
MAX_PLAYBACK_SECONDS: Final = 0.3


class PlaybackBudget:
    """How long each playback may run real cycles; the rest of a second or two is for the coarse plan."""

    def __init__(self, seconds: float = MAX_PLAYBACK_SECONDS) -> None:
        self._seconds, self._watches = seconds, dict[str, Stopwatch]()

    def allows(self, kind: str) -> bool:
        return self._watches.setdefault(kind, Stopwatch()).seconds() < self._seconds


def expected_starts(known: Known, may_go_on: Callable[[str], bool]) -> ExpectedStarts:
    """`may_go_on` says whether the playback of this name may take more time; what is left is estimated coarsely."""
    default = default_estimate(known.config)
    played: dict[str, Played] = {}
    jobs: dict[str, Job] = {}
    every: dict[str, Job] = {}
    for kind in (EXPECTED, SHORT, LONG):
        if kind in played:
            continue
        playback = Playback(known, ends_with(_run_times(kind, default)), partial(may_go_on, kind)).start()
        jobs = jobs or dict(playback.waiting)
        every = every or dict(playback.every)
        if playback.is_large:
            for other in (SHORT, LONG):
                played[other] = playback.coarse(ends_with(_run_times(other, default)))
        played[kind] = playback.run()
    names = {id: job_name(job) for id, job in every.items()}
    return ExpectedStarts(known.now, {names[id]: _answer(id, job, played, names) for id, job in sorted(jobs.items())})


def _run_times(kind: str, default: timedelta) -> Callable[[Job], timedelta]:
    def run_time(job: Job) -> timedelta:
        learned = job.learned if job.estimate is None else None
        if learned is not None:
            seconds = {SHORT: learned.p50 * SHORT_OF_MEDIAN, EXPECTED: learned.p50, LONG: learned.p90}[kind]
            return timedelta(seconds=seconds)
        return job.expected_run_time(default) * {SHORT: SHORT_PART, EXPECTED: 1.0, LONG: LONG_PART}[kind]

    return run_time


def job_name(job: Job) -> str:
    """namespace/name of the Job that the PodGroup belongs to, or of the PodGroup itself."""
    owners = job.group.metadata.owner_references if job.group is not None else []
    return next((f"{job.namespace}/{owner.name}" for owner in owners if owner.kind == "Job"), job.id)


def _answer(id: str, job: Job, played: dict[str, Played], names: dict[str, str]) -> ExpectedStart:
    start = played[EXPECTED].starts.get(id)
    moments = [each.starts[id] for each in played.values() if id in each.starts]
    learned = job.learned if job.estimate is None else None
    basis = STATED if job.estimate is not None else LEARNED if learned is not None else DEFAULT
    return ExpectedStart(
        queue=job.queue,
        start=start,
        earliest=min(moments, default=None),
        latest=_latest(id, moments, played),
        after=tuple(names.get(each, each) for each in played[EXPECTED].after.get(id, ())),
        basis=basis,
        runs=learned.runs if learned is not None else 0,
    )


def _latest(id: str, moments: list[datetime], played: dict[str, Played]) -> datetime | None:
    """None when one of the playbacks did not come to the job's start."""
    return max(moments, default=None) if all(id in each.starts for each in played.values()) else None
