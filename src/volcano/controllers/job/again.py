"""Pods that are made again: only for a Job that the API server still has.

Watches lag apart. The pods of a deleted Job may be seen to go while its own deletion is not seen yet, and a pod made
then would be bound and run until the garbage collector removes it. The first pods of a Job cost no such look.
"""

from __future__ import annotations

from collections.abc import Hashable

from volcano.controllers.job.occurrences import PodGone
from volcano.controllers.job.view import JobView
from volcano.machinery.plan import Found


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
