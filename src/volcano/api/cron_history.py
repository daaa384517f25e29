"""Which finished runs of a cron job are deleted. Volcano's CronJobs and Kubernetes' own keep their history alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Final, TypeVar

from volcano.api.meta import Resource

R = TypeVar("R", bound=Resource)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def beyond_history(runs: Iterable[R], outcome: Callable[[R], str], limits: Mapping[str, int | None]) -> list[R]:
    """Per outcome, the oldest runs beyond its limit.

    Runs that are being deleted do not count. An outcome without a limit, or with the limit None, keeps all its runs.
    """
    present = sorted((run for run in runs if not run.is_deleting), key=age_order)
    doomed: list[R] = []
    for kind, limit in limits.items():
        if limit is not None:
            ended = [run for run in present if outcome(run) == kind]
            doomed += ended[: max(0, len(ended) - max(0, limit))]
    return doomed


def age_order(run: Resource) -> tuple[datetime, str]:
    """Oldest first; of the same second by name."""
    return (run.metadata.creation_timestamp or _EPOCH, run.name)
