"""How long a job is expected to run: where that is stated, which values are accepted, and what past runs teach.

A statement (`spec.runningEstimate` of a Job, or the annotation on a PodGroup or a pod) takes precedence over what was
learned from finished jobs of the same user, queue and name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

import msgspec

from volcano.api.batch import Job
from volcano.api.durations import DurationError, format_duration, parse_duration
from volcano.api.meta import Resource

ESTIMATE_KEY: Final = "volcano.sh/running-estimate"
LEARNED_KEY: Final = "volcano.sh/learned-estimate"
SUBMITTER_KEY: Final = "volcano.sh/submitted-by"
TIME_LIMIT_KEY: Final = "volcano.sh/time-limit"
"""On a Job or a Queue: with `enforce`, a job that has run for its stated estimate is terminated."""
ENFORCE: Final = "enforce"
MAX_ESTIMATE: Final = timedelta(hours=8784)
"""A leap year. A longer estimate is refused: it is a mistake in the unit more often than a job."""
ESTIMATE_RULE: Final = (
    f"must be a duration above 0s and of at most {MAX_ESTIMATE // timedelta(hours=1)}h, such as 1h30m"
)
MAX_ANNOTATION_CHARACTERS: Final = 256
_NUMBER_AT_END: Final = re.compile(r"[-_.]*[0-9]+$")
_CLOCK_TIME: Final = re.compile(
    r"(?:(?P<days>\d{1,4})-)?(?P<first>\d{1,6})(?::(?P<second>\d{1,2}))?(?::(?P<third>\d{1,2}))?"
)


class LearnedEstimate(msgspec.Struct, frozen=True):
    """Half of the past runs took at most `p50`, nine of ten at most `p90`; both in seconds."""

    p50: float
    p90: float
    runs: int


# -- statements -------------------------------------------------------------------------------------------------------
def parse_estimate(text: str) -> timedelta:
    """ValueError with the rule when it is not an acceptable estimate."""
    try:
        stated = parse_duration(text)
    except DurationError as error:
        raise ValueError(ESTIMATE_RULE) from error
    if not timedelta(0) < stated <= MAX_ESTIMATE:
        raise ValueError(ESTIMATE_RULE)
    return stated


def estimate_problem(path: str, text: object) -> str:
    """What is wrong with a stated estimate, with its path; empty when nothing is."""
    try:
        parse_estimate(text if isinstance(text, str) else "")
    except ValueError as error:
        return f"{path}: Invalid value: {str(text)[:64]!r}: {error}".replace("'", '"')
    return ""


def annotation_problem(annotations: Mapping[str, str]) -> str:
    if ESTIMATE_KEY not in annotations:
        return ""
    return estimate_problem(f"metadata.annotations[{ESTIMATE_KEY}]", annotations[ESTIMATE_KEY])


def stated_estimate(annotations: Mapping[str, str]) -> timedelta | None:
    """None when there is none, or it was stored without having been checked and is not acceptable."""
    text = annotations.get(ESTIMATE_KEY)
    if text is None:
        return None
    try:
        return parse_estimate(text)
    except ValueError:
        return None


def parse_time_limit(text: str) -> timedelta:
    """`1h30m`, or as Slurm's users write it: minutes, minutes:seconds, hours:minutes:seconds, days-hours[:minutes]."""
    match = _CLOCK_TIME.fullmatch(text)
    if match is None:
        return parse_estimate(text)
    first, second, third = (int(match[name] or 0) for name in ("first", "second", "third"))
    if match["days"] is not None:
        span = timedelta(days=int(match["days"]), hours=first, minutes=second, seconds=third)
    elif match["third"] is not None:
        span = timedelta(hours=first, minutes=second, seconds=third)
    else:
        span = timedelta(minutes=first, seconds=second)
    return parse_estimate(format_duration(span))


# -- what was learned -------------------------------------------------------------------------------------------------
def encode_learned(learned: LearnedEstimate) -> str:
    return msgspec.json.encode(learned).decode()


def learned_estimate(annotations: Mapping[str, str]) -> LearnedEstimate | None:
    """None when there is none or it cannot be read."""
    text = annotations.get(LEARNED_KEY, "")
    if not text or len(text) > MAX_ANNOTATION_CHARACTERS:
        return None
    try:
        learned = msgspec.json.decode(text, type=LearnedEstimate)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    accepted = 0.0 < learned.p50 <= learned.p90 <= MAX_ESTIMATE.total_seconds()
    return learned if accepted and learned.runs > 0 else None


def name_without_number(job: Job) -> str:
    """What the runs of one recurring job have in common: `train` of train-17, or the prefix that names are made of."""
    made_of: str = job.metadata.generate_name
    return made_of.rstrip("-_.") if made_of.rstrip("-_.") else without_number(job.name)


def without_number(name: str) -> str:
    return _NUMBER_AT_END.sub("", name) or name


def submitter(owner: Resource) -> dict[str, str]:
    """The annotation that the Jobs of an owner take over, where it is recorded."""
    known = owner.annotations.get(SUBMITTER_KEY, "")
    return {SUBMITTER_KEY: known} if known else {}


def without_submitter(annotations: object) -> dict[str, str]:
    """Annotations of a template, in which anyone may write any name."""
    given = annotations if isinstance(annotations, dict) else {}
    return {key: text for key, text in given.items() if key != SUBMITTER_KEY}


def submitter_of(job: Job) -> str:
    """Who submitted the job, as far as it is recorded; otherwise its namespace stands for them."""
    return job.annotations.get(SUBMITTER_KEY) or namespace_as_user(job.namespace)


def namespace_as_user(namespace: str) -> str:
    return f"namespace {namespace}"
