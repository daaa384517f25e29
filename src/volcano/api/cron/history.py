"""Which finished runs of a cron job are deleted. Volcano's CronJobs and Kubernetes' own keep their history alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from volcano.api.meta import Resource, creation_order

R = TypeVar("R", bound=Resource)


def beyond_history(runs: Iterable[R], outcome: Callable[[R], str], limits: Mapping[str, int | None]) -> list[R]:
    """Per outcome, the oldest runs beyond its limit.

    Runs that are being deleted do not count. An outcome without a limit, or with the limit None, keeps all its runs.
    """
    present = sorted((run for run in runs if not run.is_deleting), key=creation_order)
    doomed: list[R] = []
    for kind, limit in limits.items():
        if limit is not None:
            ended = [run for run in present if outcome(run) == kind]
            doomed += ended[: max(0, len(ended) - max(0, limit))]
    return doomed
