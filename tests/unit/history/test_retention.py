"""What is removed: by age, by size; and never what is still there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from volcano.api.history_records import JobRecord, NodeSample, PastPod, StateRecord
from volcano.history import queries
from volcano.history.batch import RowBatch
from volcano.history.commit import commit
from volcano.history.database import Database
from volcano.history.questions import JobQuestion
from volcano.history.retention import RetentionSettings, remove_expired, retention_from

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def fill(database: Database, count: int, *, ended: datetime, gone: bool = True, message: str = "") -> None:
    batch = RowBatch()
    for number in range(count):
        uid = f"{ended:%j}-{number}"
        batch.jobs[uid] = JobRecord(
            uid=uid, name=uid, created=ended - timedelta(hours=1), ended=ended, gone=ended if gone else None,
            phase="Completed", message=message,
        )  # fmt: skip
        batch.pods[uid] = PastPod(uid=uid, job_uid=uid, created=ended)
        batch.states.append(StateRecord(job_uid=uid, at=ended, phase="Completed"))
    batch.nodes.append(NodeSample(at=ended, node="n"))
    commit(database, batch)


def left(database: Database) -> list[int]:
    return [int(database.query(f"SELECT COUNT(*) FROM {table}")[0][0]) for table in ("jobs", "pods", "states")]


def test_jobs_older_than_the_retention_are_removed_with_all_that_belongs_to_them(database: Database):
    fill(database, 3, ended=NOW - timedelta(days=100))
    fill(database, 2, ended=NOW - timedelta(days=10))

    removed = remove_expired(database, NOW, RetentionSettings(keep=timedelta(days=90)))

    assert removed == 3
    assert left(database) == [2, 2, 2]
    assert database.query("SELECT COUNT(*) FROM node_samples")[0][0] == 1


def test_a_job_whose_object_is_there_stays(database: Database):
    fill(database, 1, ended=NOW - timedelta(days=100), gone=False)

    assert remove_expired(database, NOW, RetentionSettings()) == 0
    assert left(database) == [1, 1, 1]


def test_past_the_size_limit_the_oldest_are_removed(tmp_path):
    database = Database(f"sqlite:///{tmp_path / 'h.db'}")
    database.prepare()
    fill(database, 600, ended=NOW - timedelta(days=2), message="x" * 1000)
    fill(database, 600, ended=NOW - timedelta(days=1), message="x" * 1000)
    full = database.size_bytes()

    remove_expired(database, NOW, RetentionSettings(max_bytes=int(full * 0.7)))

    kept = queries.jobs(database, JobQuestion(limit=1000)).jobs
    assert database.size_bytes() <= full * 0.7
    assert 0 < len(kept) <= 700
    assert sum(job.ended == NOW - timedelta(days=1) for job in kept) == 600
    database.close()


@pytest.mark.parametrize(
    ("keep", "size", "problem"),
    [
        ("soon", "1Gi", "'soon' is not a duration"),
        ("1h", "much", "'much' is not an amount"),
        ("1h", "1", "at least 1Mi"),
    ],
)
def test_limits_that_make_no_sense_are_refused(keep: str, size: str, problem: str):
    with pytest.raises(ValueError, match=problem):
        retention_from(keep, size)
