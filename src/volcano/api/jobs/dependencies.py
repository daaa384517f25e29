"""What a job waits for before it starts: other jobs (`afterok`, `afternotok`, `afterany`, `after`), its array's limit.

Stated in annotations, as `vsub --dependency` and `vsub --array 1-100%10` write them. Pure: jobs in, verdicts out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from volcano.api.batch import STOPPED_PHASES, Job, Phase
from volcano.api.names import qualified_name_problems

DEPENDENCY_KEY: Final = "volcano.sh/dependency"
"""On a Job: `afterok:a:b,afterany:c`. It starts when all of them hold."""
MET_KEY: Final = "volcano.sh/dependency-met"
"""On a Job: what has held once, so that a job that is deleted later is not asked for again."""
ARRAY_KEY: Final = "volcano.sh/array"
"""A label of the jobs of one array."""
ARRAY_INDEX_KEY: Final = "volcano.sh/array-index"
ARRAY_LIMIT_KEY: Final = "volcano.sh/array-limit"
"""On each job of an array: how many of them may be unfinished and started at a time."""
ARRAY_TURN: Final = "array"
"""In MET_KEY: the array's limit has let the job start."""
MAX_DEPENDENCIES: Final = 1024
FORM: Final = "must be kind:job[:job…], separated by commas, where kind is afterok, afternotok, afterany or after"


class DependencyKind(StrEnum):
    """What must have become of another job."""

    AFTER_OK = "afterok"
    AFTER_NOT_OK = "afternotok"
    AFTER_ANY = "afterany"
    AFTER = "after"


WORDS: Final = {
    DependencyKind.AFTER_OK: "to complete",
    DependencyKind.AFTER_NOT_OK: "to fail",
    DependencyKind.AFTER_ANY: "to end",
    DependencyKind.AFTER: "to start",
}


class Dependency(NamedTuple):
    """One job that is waited for."""

    kind: DependencyKind
    job: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.job}"


class Prospect(StrEnum):
    """Whether a dependency holds, may hold later, or cannot hold any more."""

    MET = "met"
    OPEN = "open"
    NEVER = "never"


def parse_dependencies(text: str) -> tuple[Dependency, ...]:
    """ValueError with what is wrong."""
    found: dict[Dependency, None] = {}
    for part in text.split(","):
        kind, *jobs = part.strip().split(":")
        if kind not in tuple(DependencyKind) or not jobs:
            raise ValueError(f"{part!r} {FORM}")
        for job in jobs:
            if qualified_name_problems(job):
                raise ValueError(f"{job!r} is no job's name; {FORM}")
            found[Dependency(DependencyKind(kind), job)] = None
    if len(found) > MAX_DEPENDENCIES:
        raise ValueError(f"{len(found)} jobs are too many: at most {MAX_DEPENDENCIES} can be waited for")
    return tuple(found)


def stated_dependencies(annotations: Mapping[str, str]) -> tuple[Dependency, ...]:
    """ValueError where the annotation cannot be read."""
    text = annotations.get(DEPENDENCY_KEY, "")
    return parse_dependencies(text) if text else ()


def met_before(annotations: Mapping[str, str]) -> frozenset[str]:
    return frozenset(filter(None, annotations.get(MET_KEY, "").split(",")))


def prospect(dependency: Dependency, job: Job | None) -> Prospect:
    """A job that is not there has ended, and how is not known."""
    phase = job.status.state.phase if job is not None else ""
    match dependency.kind:
        case DependencyKind.AFTER_ANY | DependencyKind.AFTER if job is None:
            return Prospect.MET
        case DependencyKind.AFTER:
            return Prospect.MET if phase not in ("", Phase.PENDING) else Prospect.OPEN
        case DependencyKind.AFTER_ANY:
            return Prospect.MET if phase in STOPPED_PHASES else Prospect.OPEN
    if job is not None and phase not in STOPPED_PHASES:
        return Prospect.OPEN
    wanted = dependency.kind is DependencyKind.AFTER_OK
    return Prospect.MET if job is not None and (phase == Phase.COMPLETED) == wanted else Prospect.NEVER


# -- arrays -----------------------------------------------------------------------------------------------------------
def array_of(job: Job) -> str:
    """`namespace/array` for a job of an array with a limit, else nothing."""
    array = job.labels.get(ARRAY_KEY, "")
    return f"{job.namespace}/{array}" if array and array_limit(job) else ""


def array_limit(job: Job) -> int:
    text = job.annotations.get(ARRAY_LIMIT_KEY, "")
    return int(text) if text.isdecimal() and len(text) <= 6 else 0


def array_index(job: Job) -> int:
    text = job.labels.get(ARRAY_INDEX_KEY, "")
    return int(text) if text.isdecimal() and len(text) <= 9 else 0


def next_in_array(jobs: Iterable[Job], limit: int) -> list[Job]:
    """The unfinished jobs of an array that may have started: as many as the limit, the lowest indexes first."""
    unfinished = [job for job in jobs if job.status.state.phase not in STOPPED_PHASES and not job.is_deleting]
    return sorted(unfinished, key=lambda job: (array_index(job), job.name))[:limit]
