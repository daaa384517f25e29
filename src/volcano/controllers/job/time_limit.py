"""Time limits: a job that has run for its stated estimate is terminated, where the job or its queue asks for that.

Only what the user stated is a limit; an estimate learned from past runs is not.
"""

from __future__ import annotations

from collections.abc import Hashable
from datetime import timedelta
from typing import Final

from volcano.api.batch import Action, Phase
from volcano.api.durations import format_duration
from volcano.api.jobs.estimates import ENFORCE, TIME_LIMIT_KEY, parse_estimate, stated_estimate
from volcano.controllers.job.policies import ActionRequest
from volcano.controllers.job.states import effect_of
from volcano.controllers.job.view import JobView
from volcano.machinery.time_after import TimeAfter

REASON: Final = "TimeLimit"


def limit_of(view: JobView) -> timedelta | None:
    """How long the job may run; None when nothing limits it."""
    holders = [view.job.annotations, *([view.queue.annotations] if view.queue is not None else [])]
    if not any(annotations.get(TIME_LIMIT_KEY) == ENFORCE for annotations in holders):
        return None
    try:
        stated = view.job.spec.running_estimate
        return parse_estimate(stated) if stated else stated_estimate(view.job.annotations)
    except ValueError:
        return None


def time_limit(view: JobView) -> TimeAfter | None:
    """How long a running job may run, and since when; a job that was restarted runs anew."""
    limit = limit_of(view) if view.phase is Phase.RUNNING else None
    if limit is None:
        return None
    entered = (each.last_transition_time for each in view.job.status.conditions if each.status == Phase.RUNNING)
    started = next(entered, None)
    return TimeAfter(started, limit) if started is not None else None


def limit_request(view: JobView, causes: tuple[Hashable, ...]) -> ActionRequest | None:
    """The termination of a job whose limit is reached."""
    limit = time_limit(view)
    effect = effect_of(view.phase, Action.TERMINATE_JOB)
    if limit is None or effect is None or not limit.is_over(view.now, causes):
        return None
    why = f"the job has run for its time limit of {format_duration(limit.lasts)}"
    return ActionRequest(Action.TERMINATE_JOB, effect, why, reason=REASON)
