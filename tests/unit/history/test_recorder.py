"""The recorder on a whole system under virtual time: what it writes, and that a restart neither loses nor doubles."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from volcano.api.batch import Job
from volcano.api.history_records import JobRecord
from volcano.api.meta import JSON, Key
from volcano.api.scheme import resource_type
from volcano.embedded.apiserver.server import ADMIN, ApiServer
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.history import queries
from volcano.history.database import MEMORY, Database, Values
from volcano.history.questions import JobQuestion, SampleQuestion, UsageQuestion
from volcano.history.recorder import FLUSH_INTERVAL, MAX_ROWS_PER_BATCH, HistoryRecorder
from volcano.history.usage import usage
from volcano.machinery.client import Client, Page
from volcano.machinery.clock import VirtualClock, run_virtually
from volcano.machinery.transport import InProcess
from volcano.testing.system import VirtualSystem, on_virtual_time

JOBS = resource_type(Job)
LONG_ENOUGH = FLUSH_INTERVAL * 10


def a_job(name: str, *, pods: int = 2, run_for: str = "10s", cpu: str = "1") -> JSON:
    container = {"name": "c", "image": "busybox", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
    template = {
        "metadata": {"annotations": {"simulation.volcano.sh/duration": run_for}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    task = {"name": "worker", "replicas": pods, "template": template}
    metadata = {"name": name, "namespace": "default", "labels": {"team": "a"}}
    return {"metadata": metadata, "spec": {"schedulerName": "volcano", "tasks": [task]}}


@contextlib.asynccontextmanager
async def recording(system: VirtualSystem, database: Database) -> AsyncIterator[HistoryRecorder]:
    recorder = HistoryRecorder(system.client, system.clock, database)
    running = asyncio.ensure_future(recorder.run())
    try:
        await recorder.caught_up()
        yield recorder
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def finished(system: VirtualSystem, name: str) -> None:
    await system.until(lambda: system.phase(name) == "Completed", within=timedelta(hours=2))
    await system.clock.sleep(LONG_ENOUGH)


def of_name(database: Database, name: str) -> list[JobRecord]:
    return queries.jobs(database, JobQuestion(name=name)).jobs


def test_a_job_is_told_from_submission_to_deletion(database: Database):
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        async with recording(system, database):
            await system.client.create(JOBS, a_job("train"))
            await finished(system, "train")
            await system.client.delete(JOBS, Key("default", "train"))
            await system.clock.sleep(LONG_ENOUGH)

        [job] = of_name(database, "train")
        found = queries.story(database, job.uid)
        assert found is not None
        assert (job.phase, job.pods, job.cpu_milli, job.labels) == ("Completed", 2, 2000, {"team": "a"})
        assert job.gone is not None
        assert [state.phase for state in found.states] == ["Pending", "Running", "Completed"]
        assert [(pod.name, pod.phase, pod.index) for pod in found.pods] == [
            ("train-worker-0", "Succeeded", 0),
            ("train-worker-1", "Succeeded", 1),
        ]
        assert all(pod.node and pod.bound and pod.ended and pod.gone for pod in found.pods)
        assert found.gaps == []


def test_a_recorder_that_was_away_resumes_without_a_gap(database: Database):
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        async with recording(system, database):
            await system.client.create(JOBS, a_job("first"))
            await finished(system, "first")
        await system.client.create(JOBS, a_job("meanwhile"))
        await system.until(lambda: system.phase("meanwhile") == "Completed")
        await system.client.delete(JOBS, Key("default", "meanwhile"))
        await system.clock.sleep(timedelta(hours=1))
        async with recording(system, database):
            await system.clock.sleep(LONG_ENOUGH)

        [job] = of_name(database, "meanwhile")
        assert job.phase == "Completed"
        assert job.end_is_known
        assert [gap.kind for gap in queries.gaps(database, since=job.created)] == ["samples"]
        assert queries.jobs(database, JobQuestion()).total == 2


def test_a_job_that_vanished_while_its_changes_were_lost_has_an_unknown_end(database: Database):
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        async with recording(system, database):
            await system.client.create(JOBS, a_job("lost", run_for="1h"))
            await system.until(lambda: system.phase("lost") == "Running")
            await system.clock.sleep(LONG_ENOUGH)
        await system.client.delete(JOBS, Key("default", "lost"))
        await system.clock.sleep(timedelta(hours=1))
        with database.transaction():  # as if the server had forgotten the revisions since
            database.execute("UPDATE positions SET cluster = 'another'")
        async with recording(system, database):
            await system.clock.sleep(LONG_ENOUGH)

        [job] = of_name(database, "lost")
        gaps = queries.gaps(database, since=job.created)
        assert (job.phase, job.end_is_known) == ("Deleted", False)
        assert {gap.kind for gap in gaps} >= {"jobs.batch.volcano.sh", "pods"}
        assert all(pod.ended is not None for pod in queries.pods(database, job_uid=job.uid))


def test_a_recorder_that_is_killed_before_it_has_written_anything_leaves_a_gap(database: Database):
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        recorder = HistoryRecorder(system.client, system.clock, database)
        running = asyncio.ensure_future(recorder.run())
        await system.clock.sleep(FLUSH_INTERVAL / 2)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        begin = system.clock.now()
        await system.client.create(JOBS, a_job("meanwhile"))
        await system.until(lambda: system.phase("meanwhile") == "Completed")
        await system.client.delete(JOBS, Key("default", "meanwhile"))
        async with recording(system, database):
            await system.clock.sleep(LONG_ENOUGH)

        assert of_name(database, "meanwhile") == []
        [gap] = [gap for gap in queries.gaps(database, since=begin) if gap.kind == JOBS.qualified]
        assert gap.begin < begin < gap.end


class RefusingClient(Client):
    """Its lists fail until `refuses` is over."""

    refuses = True

    async def list(self, *arguments: Any, **more: Any) -> Page[Any]:
        if self.refuses:
            raise ConnectionError("refused")
        return await super().list(*arguments, **more)


def test_the_time_until_a_first_list_that_fails_for_long_is_a_gap(database: Database):
    async def story() -> None:
        clock = VirtualClock()
        server = ApiServer(MemoryStore(), clock=clock)
        await server.start()
        client, begin = RefusingClient(InProcess(server.handle, ADMIN)), clock.now()
        recorder = HistoryRecorder(client, clock, database, measures=False)
        running = asyncio.ensure_future(recorder.run())
        await clock.sleep(timedelta(seconds=10))
        client.refuses = False
        await recorder.caught_up()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

        [gap] = [gap for gap in queries.gaps(database, since=begin) if gap.kind == JOBS.qualified]
        assert gap.end - gap.begin >= timedelta(seconds=10)

    run_virtually(story())


def test_usage_is_requests_times_the_time_on_nodes(database: Database):
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        begin = system.clock.now()
        async with recording(system, database):
            await system.client.create(JOBS, a_job("train", pods=3, run_for="1h", cpu="500m"))
            await finished(system, "train")
        rows = usage(database, UsageQuestion(since=begin, until=system.clock.now(), by=("queue",)), system.clock.now())

        ledger = sum(
            (pod.ended - pod.bound).total_seconds() * 0.5 / 3600
            for pod in queries.pods(database)
            if pod.ended is not None and pod.bound is not None
        )
        assert [(row.queue, row.jobs, row.pods) for row in rows] == [("default", 1, 3)]
        assert abs(rows[0].cpu_hours - ledger) < 1e-9
        assert abs(rows[0].cpu_hours - 1.5) < 0.01
        assert rows[0].cpu_efficiency == 0.5  # simulated pods use half of what they request


def test_samples_are_taken_of_queues_and_nodes(database: Database):
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        begin = system.clock.now()
        async with recording(system, database):
            await system.client.create(JOBS, a_job("train", pods=3, run_for="5m"))
            await finished(system, "train")
            await system.clock.sleep(timedelta(minutes=2))
        asked = SampleQuestion(since=begin, until=system.clock.now())

        held = [sample.requested.get("cpu", "0") for sample in queries.node_samples(database, asked)]
        assert "0" in held
        assert any(amount != "0" for amount in held)
        queues = queries.queue_samples(database, SampleQuestion(**{**_fields(asked), "name": "default"}))
        assert {sample.allocated.get("cpu", "0") for sample in queues} >= {"3", "0"}


def _fields(question: SampleQuestion) -> dict[str, object]:
    return {name: getattr(question, name) for name in question.__struct_fields__}


def test_a_recorder_that_is_killed_at_any_moment_loses_and_doubles_nothing(tmp_path: Path):
    """What is in memory at a kill is lost with it; the database goes on from its position."""
    database, chance = Database(f"sqlite:///{tmp_path / 'history.db'}"), random.Random(5)

    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        for number in range(20):
            recorder = asyncio.ensure_future(HistoryRecorder(system.client, system.clock, database).run())
            await system.client.create(JOBS, a_job(f"job-{number}", run_for=f"{chance.uniform(0.1, 5):.1f}s"))
            await system.clock.sleep(timedelta(seconds=chance.uniform(0, 3)))
            recorder.cancel()
            await asyncio.gather(recorder, return_exceptions=True)
            if number % 3 == 0 and system.phase(f"job-{number}") == "Completed":
                await system.client.delete(JOBS, Key("default", f"job-{number}"))
        await system.until(lambda: all(job.status.state.phase == "Completed" for job in system.mirror.all(Job)))
        async with recording(system, database):
            await system.clock.sleep(LONG_ENOUGH)

    jobs = queries.jobs(database, JobQuestion(limit=100)).jobs
    assert sorted(job.name for job in jobs) == sorted(f"job-{number}" for number in range(20))
    assert {job.phase for job in jobs} == {"Completed"}
    for job in jobs:
        found = queries.story(database, job.uid)
        assert found is not None
        assert [state.phase for state in found.states] == ["Pending", "Running", "Completed"]
        assert len(found.pods) == 2
        assert all(pod.ended is not None for pod in found.pods)
    assert [gap for gap in queries.gaps(database, since=jobs[-1].created) if gap.kind != "samples"] == []


def test_files_of_the_database_are_their_owners(tmp_path: Path):
    path = tmp_path / "history.db"
    database = Database(f"sqlite:///{path}")

    database.prepare()

    modes = {each.name: each.stat().st_mode & 0o777 for each in tmp_path.iterdir()}
    database.close()
    assert set(modes.values()) == {0o600}


class CountedDatabase(Database):
    """Counts transactions, and the rows of each."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.transactions: list[int] = []

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        self.transactions.append(0)
        with super().transaction():
            yield

    def execute_many(self, statement: str, many: Sequence[Values]) -> None:
        if self.transactions:
            self.transactions[-1] += len(many)
        super().execute_many(statement, many)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_burst_of_jobs_is_written_in_few_bounded_transactions():
    """5,000 jobs at once, each with three changes: at most a transaction in half a second, each of bounded size."""
    jobs, changes = 5000, ("Pending", "Running", "Completed")

    async def story() -> None:
        clock = VirtualClock()
        server = ApiServer(MemoryStore(), clock=clock)
        await server.start()
        client, database = Client(InProcess(server.handle, ADMIN)), CountedDatabase(MEMORY)
        recorder = HistoryRecorder(client, clock, database, measures=False)
        running = asyncio.ensure_future(recorder.run())
        await recorder.caught_up()
        before, begun = len(database.transactions), clock.now()
        for number in range(jobs):
            await client.create(JOBS, a_job(f"burst-{number}"))
        for phase in changes:
            state = {"status": {"state": {"phase": phase}}}
            for number in range(jobs):
                await client.patch(JOBS, Key("default", f"burst-{number}"), state, subresource="status")
        await clock.sleep(timedelta(seconds=30))
        written = database.transactions[before:]

        counts = queries.job_counts(database, JobQuestion(), "phase")
        assert [(each.group, each.count) for each in counts] == [("Completed", jobs)]
        assert len(written) <= (clock.now() - begun) / FLUSH_INTERVAL + 1
        assert max(written) <= 2 * MAX_ROWS_PER_BATCH
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await server.close()

    run_virtually(story())
