"""RunTimes: how long past runs of a job took, by user, queue and name; what an estimate can be learned from.

The table is bounded, and the same runs give the same answers in whatever order they were added. It is filled from
finished Jobs; any other record of runs can be added through `add`.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from volcano.api.batch import Job, Phase
from volcano.api.history_records import JobRecord
from volcano.api.jobs.estimates import (
    MAX_ESTIMATE,
    LearnedEstimate,
    name_without_number,
    namespace_as_user,
    submitter_of,
    without_number,
)

MAX_NAMES: Final = 4096
MAX_RUNS_PER_NAME: Final = 64
"""The newest are kept: what a job did long ago says little about its next run."""


class RunName(NamedTuple):
    """Runs that are expected to take alike."""

    user: str
    queue: str
    name: str


class PastRun(NamedTuple):
    ended: datetime
    uid: str  # of the Job, so that a run that is added twice counts once
    seconds: float


class RunTimes:
    def __init__(self) -> None:
        self._runs: dict[RunName, list[PastRun]] = {}

    def add(self, name: RunName, run: PastRun) -> None:
        runs = self._runs.setdefault(name, [])
        if any(known.uid == run.uid and known.ended == run.ended for known in runs):
            return
        bisect.insort(runs, run)
        if len(runs) > MAX_RUNS_PER_NAME:
            del runs[0]
        if len(self._runs) > MAX_NAMES:
            oldest = min(self._runs, key=lambda each: (self._runs[each][-1].ended, each))
            del self._runs[oldest]

    def add_finished(self, job: Job) -> None:
        """Take in a Job that has completed; others teach nothing about how long a run takes."""
        run = completed_run(job)
        if run is not None:
            self.add(run_name(job), run)

    def add_past(self, job: JobRecord) -> None:
        """Take in a job of the history; one that was started again tells little about one run."""
        if job.phase != Phase.COMPLETED or job.retries or job.started is None or job.ended is None:
            return
        spent = min(max(job.ended - job.started, timedelta(seconds=1)), MAX_ESTIMATE)
        user = job.user or namespace_as_user(job.namespace)
        name = RunName(user, job.queue, without_number(job.name))
        self.add(name, PastRun(job.ended, job.uid, spent.total_seconds()))

    def learned(self, name: RunName) -> LearnedEstimate | None:
        runs = self._runs.get(name)
        if not runs:
            return None
        ordered = sorted(run.seconds for run in runs)
        return LearnedEstimate(percentile(ordered, 0.5), percentile(ordered, 0.9), len(ordered))


def run_name(job: Job) -> RunName:
    return RunName(submitter_of(job), job.spec.queue, name_without_number(job))


def completed_run(job: Job) -> PastRun | None:
    """From entering Running for the last time to Completed; None when the job did not complete."""
    if job.status.state.phase != Phase.COMPLETED:
        return None
    entered = {each.status: each.last_transition_time for each in job.status.conditions}
    started, ended = entered.get(Phase.RUNNING), entered.get(Phase.COMPLETED)
    if started is None or ended is None or ended < started:
        return None
    spent = max(ended - started, timedelta(seconds=1))  # times are written in whole seconds
    return PastRun(ended, job.uid, min(spent, MAX_ESTIMATE).total_seconds())


def percentile(ordered: Sequence[float], part: float) -> float:
    """The smallest value that at least this part of the values does not exceed (nearest rank)."""
    return ordered[max(math.ceil(part * len(ordered)) - 1, 0)]
