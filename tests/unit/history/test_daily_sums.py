"""Kept sums change no answer: the same records with and without them are reported alike, whatever is written between."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from volcano.api.history_records import JobRecord, PastPod, UsageRow
from volcano.api.meta import Key
from volcano.history.batch import Measured, RowBatch
from volcano.history.commit import commit
from volcano.history.daily_sums import kept_days, sum_days
from volcano.history.database import MEMORY, Database
from volcano.history.questions import UsageQuestion
from volcano.history.retention import RetentionSettings, remove_expired
from volcano.history.usage import usage

T0 = datetime(2026, 3, 20, 7, 30, tzinfo=UTC)
GIB = 2**30


def hours(count: float) -> datetime:
    return T0 + timedelta(hours=count)


def a_job(number: int, **more: object) -> JobRecord:
    fields: dict[str, object] = {
        "uid": f"job-{number}", "namespace": f"team-{number % 2}", "name": f"train-{number}",
        "queue": f"queue-{number % 3}", "user": f"user-{number % 4}", "phase": "Running", "created": T0, **more,
    }  # fmt: skip
    return JobRecord(**fields)


def a_pod(number: int, job: str, **more: object) -> PastPod:
    fields: dict[str, object] = {
        "uid": f"pod-{number}", "job_uid": job, "namespace": "team-0", "name": f"pod-{number}", "cpu_milli": 1000,
        "memory_bytes": GIB, "gpu_milli": 2000, "phase": "Running", "created": T0, **more,
    }  # fmt: skip
    return PastPod(**fields)


@pytest.fixture
def without() -> Database:
    """The same records, of which no sums are made."""
    found = Database(MEMORY)
    found.prepare()
    return found


QUESTIONS = (
    {"by": ("queue",)},
    {"by": ("user", "namespace")},
    {"by": ("day", "queue")},
    {"by": ("day",), "zone": "Europe/Berlin"},  # clocks change on the 29th of March
    {"by": ("user",), "namespace": "team-1"},
    {"by": ("day", "user"), "visible": frozenset({"team-0"}), "queue": "queue-0"},
)


def alike(one: list[UsageRow], other: list[UsageRow]) -> bool:
    """Amounts of memory are whole MiB-seconds of each part of a pod's time, so that the last digits differ."""
    rows = [[msgspec.structs.asdict(row) for row in rows] for rows in (one, other)]
    return len(one) == len(other) and all(
        mine[name] == pytest.approx(theirs[name], abs=1e-4) if isinstance(mine[name], float) else mine[name] == value
        for mine, theirs in zip(*rows, strict=True)
        for name, value in theirs.items()
    )


def check(database: Database, without: Database, now: datetime, since: datetime, until: datetime) -> None:
    for question in QUESTIONS:
        asked = UsageQuestion(since=since, until=until, **question)
        assert alike(usage(database, asked, now), usage(without, asked, now)), asked


class RecordedLife:
    """Random changes as a recorder writes them: jobs and pods begin, are measured, end late, vanish and are adopted."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._jobs: dict[str, JobRecord] = {}
        self._pods: dict[str, PastPod] = {}
        self._number = 0

    def batch(self, now: datetime) -> RowBatch:
        batch, chance = RowBatch(), self._random
        for _ in range(chance.randrange(1, 4)):
            self._begin(batch, now)
        for uid, job in list(self._jobs.items()):
            if chance.random() < 0.3:
                later = {"started": job.started or now, "user": job.user or chance.choice(["", "late"])}
                ended = {"ended": now, "gone": now, "phase": "Completed"} if chance.random() < 0.3 else {}
                queue = {"queue": "moved"} if chance.random() < 0.1 else {}
                self._jobs[uid] = batch.jobs[uid] = msgspec.structs.replace(job, **later, **ended, **queue)
        for uid, pod in list(self._pods.items()):
            if pod.ended is not None:
                continue
            if chance.random() < 0.3:
                batch.measured.append(Measured(uid, 60_000, 500 * 60, 64 * 60))
            if pod.bound is None and chance.random() < 0.7:
                pod = msgspec.structs.replace(pod, bound=now - timedelta(hours=chance.choice([0, 0, 30])))
            elif chance.random() < 0.1:
                batch.vanished.append(("pods", uid, now))
                self._pods[uid] = msgspec.structs.replace(pod, ended=now)
                continue
            elif pod.bound is not None and chance.random() < 0.3:
                late = max(pod.bound, now - timedelta(hours=chance.choice([0, 1, 26])))
                pod = msgspec.structs.replace(pod, ended=late)
            self._pods[uid] = batch.pods[uid] = pod
        if chance.random() < 0.2:  # measured while its end was being written
            ended = [uid for uid, pod in self._pods.items() if pod.ended is not None]
            batch.measured += [Measured(uid, 60_000, 60, 60) for uid in ended[:1]]
        return batch

    def _begin(self, batch: RowBatch, now: datetime) -> None:
        self._number += 1
        created = now - timedelta(hours=self._random.choice([0, 0, 0, 40]))
        job = a_job(self._number, created=created, user=self._random.choice(["", "ada", "bob"]))
        is_group = self._random.random() < 0.3
        name = "" if is_group else job.uid
        pod = a_pod(self._number, name, created=created, group_name=f"group-{self._number}" if is_group else "")
        self._pods[pod.uid] = batch.pods[pod.uid] = pod
        if not is_group or self._random.random() < 0.5:
            self._jobs[job.uid] = batch.jobs[job.uid] = job
        if is_group and self._number % 2:
            earlier = max(1, self._number - 2)
            batch.groups.append((Key("team-0", f"group-{earlier}"), f"job-{earlier}"))


@pytest.mark.parametrize("seed", range(4))
def test_reports_are_the_same_with_and_without_kept_sums(database: Database, without: Database, seed: int):
    life, chance = RecordedLife(seed), random.Random(seed)
    for step in range(30):
        now = hours(10 * step)
        batch = life.batch(now)
        commit(database, batch)
        commit(without, batch)
        if chance.random() < 0.6:
            sum_days(database, now)
        if chance.random() < 0.1:
            kept = RetentionSettings(keep=timedelta(hours=chance.choice([60, 200])))
            for each in (database, without):
                remove_expired(each, now, kept)
        if step % 3 == 2:
            check(database, without, now, hours(chance.randrange(-20, 5 * step)), now)
    check(database, without, now, T0 - timedelta(days=3), now + timedelta(days=1))
    without.close()


def test_whole_days_of_the_past_are_kept_once_they_are_over_for_an_hour(database: Database):
    batch = RowBatch()
    batch.jobs["job-1"] = a_job(1)
    commit(database, batch)

    assert sum_days(database, T0 + timedelta(hours=17)) == 0  # half an hour after midnight
    assert sum_days(database, T0 + timedelta(days=3)) == 3
    assert sum_days(database, T0 + timedelta(days=3)) == 0
    (days,) = kept_days(database, T0 - timedelta(days=9), T0 + timedelta(days=9))
    assert (days.begin, days.end) == (datetime(2026, 3, 20, tzinfo=UTC), datetime(2026, 3, 23, tzinfo=UTC))


def test_what_changes_today_leaves_the_sums_of_past_days(database: Database):
    batch, now = RowBatch(), hours(100)
    batch.jobs["job-1"], batch.pods["pod-1"] = a_job(1), a_pod(1, "job-1", bound=hours(1))
    commit(database, batch)
    sum_days(database, now)
    ends = RowBatch()
    ends.jobs["job-1"] = a_job(1, phase="Completed", ended=now)
    ends.pods["pod-1"] = a_pod(1, "job-1", bound=hours(1), ended=now)

    commit(database, ends)

    (days,) = kept_days(database, T0 - timedelta(days=9), now)
    assert days.begin == datetime(2026, 3, 21, tzinfo=UTC)  # what it used counts on the day on which it was bound
