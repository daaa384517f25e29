"""Which days' sums a batch of rows makes false: found before the rows are written, from what they replace.

Most batches are about today, whose sums are not kept, and cost one question.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from volcano.history.batch import RowBatch
from volcano.history.columns import milliseconds
from volcano.history.daily_sums import DayRange, drop_days, newest_kept
from volcano.history.database import Database, Row
from volcano.history.usage_sums import DAY_MILLISECONDS

ROWS_PER_QUESTION: Final = 400


class _PodFacts(NamedTuple):
    """What the sums of days take from a pod."""

    job_uid: str
    bound: int | None
    ended: int | None
    cpu_milli: int
    memory_bytes: int
    gpu_milli: int


class _JobFacts(NamedTuple):
    namespace: str
    queue: str
    user: str
    created: int
    started: int | None


def drop_changed(database: Database, batch: RowBatch) -> None:
    """Inside the transaction that writes the batch, before its rows."""
    newest = newest_kept(database)
    if newest < 0:
        return
    changed: set[int] = set()
    since = newest + 1  # all days from here on
    for days, onwards in (*_of_pods(database, batch, newest), *_of_jobs(database, batch, newest)):
        changed |= days
        since = min(since, onwards)
    for uid in (uid for table, uid, _ in batch.vanished if table == "pods"):
        rows = database.query('SELECT "bound" FROM pods WHERE "uid" = :uid AND "ended" IS NULL', {"uid": uid})
        changed |= {_day(bound) for (bound,) in rows if bound is not None}
    for group, _ in batch.groups:
        since = min(since, _first_of_group(database, group.namespace, group.name, newest))
    changed |= _ended_and_measured(database, [each.pod_uid for each in batch.measured])
    drop_days(database, sorted(day for day in changed if day < since and day <= newest))
    if since <= newest:
        drop_days(database, DayRange(since, newest + 1))


def _of_pods(database: Database, batch: RowBatch, newest: int) -> Iterator[tuple[set[int], int]]:
    """Single days, and the day from which on all are changed."""
    old = [
        pod for pod in batch.pods.values() if _day(milliseconds(min(pod.created, pod.bound or pod.created))) <= newest
    ]
    columns = '"uid", "job_uid", "bound", "ended", "cpu_milli", "memory_bytes", "gpu_milli"'
    before = {row[0]: _PodFacts(*row[1:]) for row in _rows(database, "pods", columns, [pod.uid for pod in old])}
    for pod in old:
        was = before.get(pod.uid)
        bound = milliseconds(pod.bound) if pod.bound is not None else None
        ended = milliseconds(pod.ended) if pod.ended is not None else None
        job_uid = pod.job_uid or (was.job_uid if was is not None else "")
        now = _PodFacts(job_uid, bound, ended, pod.cpu_milli, pod.memory_bytes, pod.gpu_milli)
        first = min((each for each in (bound, was and was.bound) if each is not None), default=None)
        if was == now or first is None:
            continue
        if was is None or was._replace(ended=None) != now._replace(ended=None):
            yield set(), _day(first)
        else:  # what it held until the earlier end stays; what it used is of the day on which it was bound
            yield {_day(first)}, _day(min(each for each in (was.ended, ended) if each is not None))


def _of_jobs(database: Database, batch: RowBatch, newest: int) -> Iterator[tuple[set[int], int]]:
    old = [job for job in batch.jobs.values() if _day(milliseconds(job.created)) <= newest]
    columns = '"uid", "namespace", "queue", "user", "created", "started"'
    before = {row[0]: _JobFacts(*row[1:]) for row in _rows(database, "jobs", columns, [job.uid for job in old])}
    for job in old:
        was = before.get(job.uid)
        started = milliseconds(job.started) if job.started is not None else None
        user = job.user or (was.user if was is not None else "")
        now = _JobFacts(job.namespace, job.queue, user, milliseconds(job.created), started)
        if was == now:
            continue
        if was is None or was._replace(started=None) != now._replace(started=None):
            first = database.query('SELECT MIN("bound") FROM pods WHERE "job_uid" = :uid', {"uid": job.uid})[0][0]
            yield set(), _day(min(each for each in (now.created, was and was.created, first) if each is not None))
        else:
            yield {_day(each) for each in (was.started, started) if each is not None}, newest + 1


def _first_of_group(database: Database, namespace: str, name: str, newest: int) -> int:
    """The day from which on pods are given to their PodGroup."""
    rows = database.query(
        'SELECT MIN("bound") FROM pods WHERE "namespace" = :namespace AND "group_name" = :name AND "job_uid" = \'\'',
        {"namespace": namespace, "name": name},
    )
    return newest + 1 if rows[0][0] is None else _day(rows[0][0])


def _ended_and_measured(database: Database, uids: Sequence[str]) -> set[int]:
    """The days whose sums have what these pods used: of those that have ended before they were measured."""
    rows = _rows(database, "pods", '"bound"', uids, ' AND "ended" IS NOT NULL')
    return {_day(bound) for (bound,) in rows if bound is not None}


def days_of_jobs(database: Database, uids: Iterable[str]) -> DayRange:
    """All days on which these jobs or their pods count."""
    first, last = None, None
    for table, key, columns in (
        ("jobs", "uid", '"created", COALESCE("started", "created")'),
        ("pods", "job_uid", '"bound", COALESCE("ended", "bound")'),
    ):
        for begin, end in _rows(database, table, columns, list(uids), key=key):
            first = begin if first is None or (begin is not None and begin < first) else first
            last = end if last is None or (end is not None and end > last) else last
    return DayRange(_day(first), _day(last) + 1) if first is not None and last is not None else DayRange(0, 0)


def _rows(
    database: Database, table: str, columns: str, uids: Sequence[str], more: str = "", key: str = "uid"
) -> Iterator[Row]:
    for begin in range(0, len(uids), ROWS_PER_QUESTION):
        values = {f"u{number}": uid for number, uid in enumerate(uids[begin : begin + ROWS_PER_QUESTION])}
        names = ", ".join(f":{name}" for name in values)
        yield from database.query(f'SELECT {columns} FROM {table} WHERE "{key}" IN ({names}){more}', values)


def _day(moment: int) -> int:
    return moment // DAY_MILLISECONDS
