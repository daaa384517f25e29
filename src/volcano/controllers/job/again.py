"""Pods that are made again: only for a Job that the API server still has, and after many restarts with a back-off.

Watches lag apart. The pods of a deleted Job may be seen to go while its own deletion is not seen yet, and a pod made
then would be bound and run until the garbage collector removes it. The first pods of a Job cost no such look.

A Job that fails at once and may be restarted millions of times would otherwise keep the whole cluster busy.
"""

from __future__ import annotations

from collections.abc import Hashable
from datetime import timedelta
from typing import Final

from volcano.api.batch import Phase
from volcano.controllers.job.occurrences import PodGone
from volcano.controllers.job.view import JobView
from volcano.machinery.plan import Found

RESTARTS_AT_ONCE: Final = 10
MAX_BACK_OFF: Final = timedelta(seconds=60)
NO_PAUSE: Final = timedelta(0)


def back_off(view: JobView) -> timedelta:
    """How long this restart waits in all: twice as long each time after RESTARTS_AT_ONCE, up to MAX_BACK_OFF."""
    beyond = view.job.status.retry_count - RESTARTS_AT_ONCE
    return min(timedelta(seconds=1 << min(beyond, 16)), MAX_BACK_OFF) if beyond > 0 else NO_PAUSE


def rest_of_back_off(view: JobView) -> timedelta:
    """How long it still waits, from its restart on. A time to come, which a wrong clock wrote, does not count."""
    if view.phase is not Phase.PENDING or not back_off(view):
        return NO_PAUSE
    began = [each.last_transition_time for each in view.job.status.conditions if each.status == Phase.RESTARTING]
    since = began[-1] if began else None
    if since is None or since > view.now:
        return NO_PAUSE
    return max(since + back_off(view) - view.now, NO_PAUSE)


def makes_again(view: JobView, causes: tuple[Hashable, ...]) -> bool:
    """Whether pods that are missing now have been there: as seen, as the status counts them, or before a restart."""
    status = view.job.status
    if status.version > 0 or any(isinstance(cause, PodGone) and cause.job_uid == view.job.uid for cause in causes):
        return True
    counted = status.pending + status.running + status.succeeded + status.failed + status.terminating + status.unknown
    return counted > len(view.members)


def is_still_there(view: JobView, causes: tuple[Hashable, ...]) -> bool | None:
    """What the API server said about the Job; None if it was not asked."""
    answers = [cause for cause in causes if isinstance(cause, Found) and cause.target.uid == view.job.uid]
    return answers[-1].present and not answers[-1].is_deleting if answers else None
