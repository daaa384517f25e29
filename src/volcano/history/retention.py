"""What is forgotten: ended jobs and samples older than the retention, and the oldest of them past the size limit.

Jobs whose objects are still there stay, however old they are.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Final

import msgspec

from volcano.api.durations import DurationError, parse_duration
from volcano.api.quantity import QuantityError, parse_quantity
from volcano.history.changed_days import days_of_jobs
from volcano.history.columns import milliseconds, moment_of
from volcano.history.daily_sums import drop_days
from volcano.history.database import Database

log = logging.getLogger(__name__)

JOBS_PER_ROUND: Final = 500
MAX_ROUNDS: Final = 200
"""The rest is removed at the next upkeep, so that writing does not wait for long."""
SAMPLES_DROPPED: Final = 10
"""One in so many of the samples is dropped in each round past the size limit, the oldest first."""
MIN_KEEP: Final = timedelta(minutes=1)
MIN_BYTES: Final = 2**20
_OF_JOBS: Final = (
    ('DELETE FROM measured WHERE "pod_uid" IN (SELECT "uid" FROM pods WHERE "job_uid" IN ({uids}))'),
    ('DELETE FROM evictions WHERE "job_uid" IN ({uids})'),
    ('DELETE FROM pods WHERE "job_uid" IN ({uids})'),
    ('DELETE FROM states WHERE "job_uid" IN ({uids})'),
    ('DELETE FROM jobs WHERE "uid" IN ({uids})'),
)


class RetentionSettings(msgspec.Struct, frozen=True):
    """How long ended jobs are kept, and how much room all of it may take."""

    keep: timedelta = timedelta(days=90)
    max_bytes: int = 2**30


def retention_from(keep: str, size: str) -> RetentionSettings:
    """From the texts of flags; ValueError says which is wrong and why."""
    try:
        duration = parse_duration(keep)
    except DurationError as error:
        raise ValueError(f"{keep!r} is not a duration such as 2160h: {error}") from error
    try:
        room = parse_quantity(size).value
    except QuantityError as error:
        raise ValueError(f"{size!r} is not an amount of bytes such as 1Gi: {error}") from error
    if duration < MIN_KEEP:
        raise ValueError(f"at least {MIN_KEEP // timedelta(minutes=1)} minutes must be kept")
    if room < MIN_BYTES:
        raise ValueError(f"the history needs at least {MIN_BYTES // 2**20}Mi")
    return RetentionSettings(duration, room)


def remove_expired(database: Database, now: datetime, settings: RetentionSettings) -> int:
    """How many jobs were removed."""
    before = milliseconds(now - settings.keep)
    removed = 0
    for _ in range(MAX_ROUNDS):
        count = _remove_oldest(database, before)
        removed += count
        if count < JOBS_PER_ROUND:
            break
    with database.transaction():
        for table, column in (("queue_samples", "at"), ("node_samples", "at"), ("gaps", "end")):
            database.execute(f'DELETE FROM {table} WHERE "{column}" < :before', {"before": before})
        _drop_orphans(database, before)
    return removed + _keep_to_size(database, now, settings)


def _keep_to_size(database: Database, now: datetime, settings: RetentionSettings) -> int:
    removed = 0
    for _ in range(MAX_ROUNDS):
        size = database.size_bytes()
        if size <= settings.max_bytes:
            break
        count = _remove_oldest(database, milliseconds(now))
        dropped = _drop_oldest_samples(database)
        if not count and not dropped:
            log.warning("history: %d bytes are kept, more than the limit, about objects that are still there", size)
            break
        removed += count
        database.give_back_space()
    if removed:
        log.warning("history: %d of the oldest jobs were removed, because of the size limit", removed)
    return removed


def _remove_oldest(database: Database, before: int) -> int:
    rows = database.query(
        'SELECT "uid" FROM jobs WHERE "gone" IS NOT NULL AND "ended" < :before ORDER BY "ended" LIMIT :most',
        {"before": before, "most": JOBS_PER_ROUND},
    )
    if not rows:
        return 0
    uids = {f"u{number}": row[0] for number, row in enumerate(rows)}
    names = ", ".join(f":{name}" for name in uids)
    with database.transaction():
        drop_days(database, days_of_jobs(database, uids.values()))
        for statement in _OF_JOBS:
            database.execute(statement.format(uids=names), uids)
    return len(rows)


def _drop_orphans(database: Database, before: int) -> None:
    """Pods whose PodGroup was never seen."""
    database.execute(
        'DELETE FROM pods WHERE "job_uid" = \'\' AND "gone" IS NOT NULL AND "gone" < :before', {"before": before}
    )


def _drop_oldest_samples(database: Database) -> int:
    dropped = 0
    for table in ("queue_samples", "node_samples"):
        first, last = database.query(f'SELECT MIN("at"), MAX("at") FROM {table}')[0]
        if first is None or last == first:
            continue
        until = first + max((last - first) // SAMPLES_DROPPED, 1)
        with database.transaction():
            dropped += database.execute(f'DELETE FROM {table} WHERE "at" < :until', {"until": until})
        log.info("history: samples of %s before %s were removed", table, moment_of(until).isoformat())
    return dropped
