"""Jobs from a trace in the Standard Workload Format, version 2.2: a line for each job, 18 numbers, -1 for unknown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from volcano.simulator.jobs import Role, WorkloadJob

FIELDS: Final = 18
MAX_NAMED_LINES: Final = 20
NUMBER, SUBMIT, RUN_TIME, ALLOCATED, REQUESTED, REQUESTED_TIME, USER, QUEUE = 0, 1, 3, 4, 7, 8, 11, 14


@dataclass(slots=True)
class UnreadableLines:
    """Lines that were left out: how many, and the first of them with the reason."""

    count: int = 0
    named: list[str] = field(default_factory=list)

    def add(self, line: int, reason: str) -> None:
        self.count += 1
        if len(self.named) < MAX_NAMED_LINES:
            self.named.append(f"line {line}: {reason}")


@dataclass(slots=True)
class WorkloadTrace:
    jobs: list[WorkloadJob]
    unreadable: UnreadableLines


def read_swf(
    path: Path, *, first: int = 0, count: int | None = None, single_pod: bool = False, exact: bool = False
) -> WorkloadTrace:
    """Each job a gang of pods of one cpu, or one pod of as many cpus; the times are kept as they are.

    `exact`: the run time counts as the estimate even where the trace has a requested time.
    """
    unreadable = UnreadableLines()
    with path.open(encoding="utf-8", errors="replace") as lines:
        jobs = _jobs(lines, unreadable, single_pod=single_pod, exact=exact)
        chosen = _slice(jobs, first, count)
    return WorkloadTrace(chosen, unreadable)


def _slice(jobs: Iterator[WorkloadJob], first: int, count: int | None) -> list[WorkloadJob]:
    chosen = []
    for index, job in enumerate(jobs):
        if count is not None and index >= first + count:
            break
        if index >= first:
            chosen.append(job)
    return chosen


def _jobs(lines: Iterable[str], unreadable: UnreadableLines, *, single_pod: bool, exact: bool) -> Iterator[WorkloadJob]:
    names: set[str] = set()
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith(";"):
            continue
        try:
            job = _job(text.split(), single_pod=single_pod, exact=exact)
        except ValueError as error:
            unreadable.add(number, str(error))
            continue
        if job.name in names:
            unreadable.add(number, f"{job.name} is already there")
            continue
        names.add(job.name)
        yield job


def _job(fields: list[str], *, single_pod: bool, exact: bool) -> WorkloadJob:
    if len(fields) < ALLOCATED + 1 or len(fields) > FIELDS:
        raise ValueError(f"{len(fields)} fields instead of {FIELDS}")
    numbers = [_number(text, place) for place, text in enumerate(fields)]
    numbers += [-1.0] * (FIELDS - len(numbers))
    size = int(numbers[ALLOCATED] if numbers[ALLOCATED] > 0 else numbers[REQUESTED])
    if size <= 0:
        raise ValueError("neither allocated nor requested processors are given")
    if numbers[RUN_TIME] < 0:
        raise ValueError("the run time is not given")
    if numbers[SUBMIT] < 0:
        raise ValueError("the submit time is not given")
    requested = numbers[REQUESTED_TIME]
    role = Role("task", 1, {"cpu": str(size)}) if single_pod else Role("task", size, {"cpu": "1"})
    return WorkloadJob(
        name=f"job-{int(numbers[NUMBER])}",
        submit=numbers[SUBMIT],
        run_time=numbers[RUN_TIME],
        roles=(role,),
        estimate=requested if requested > 0 and not exact else numbers[RUN_TIME],
        user=f"user-{int(numbers[USER])}" if numbers[USER] > 0 else "",
    )


def _number(text: str, place: int) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"field {place + 1} is not a number: {text[:40]!r}")
    return number
