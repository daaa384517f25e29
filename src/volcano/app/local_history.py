"""The history inside the embedded system: a database beside the store, a recorder, and pages of the API server."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from volcano.api.history_records import HISTORY_PATH
from volcano.api.jobs.run_times import RunTimes
from volcano.app.system import System
from volcano.embedded.apiserver.server import ApiServer
from volcano.history.database import MEMORY, Database
from volcano.history.history import History
from volcano.history.metrics import HistoryMetrics
from volcano.history.problems import DatabaseProblem
from volcano.history.questions import MAX_JOBS_PER_PAGE, JobQuestion
from volcano.history.recorder import HistoryRecorder
from volcano.history.retention import RetentionSettings
from volcano.history.serving import HistoryPages
from volcano.machinery.clock import Clock
from volcano.machinery.transport import User

log = logging.getLogger(__name__)

RECORDER: Final = "volcano-history"
MAX_RUNS_LEARNED: Final = 10_000


class ServerAccess:
    """Rights as the API server of this process knows them."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server

    async def may_list(self, user: User, group: str, resource: str, namespace: str = "") -> bool:
        return self._server.may_list(user, group, resource, namespace)


@contextlib.asynccontextmanager
async def local_history(
    system: System, clock: Clock, *, path: Path | None, retention: RetentionSettings | None = None
) -> AsyncIterator[History]:
    """Record and answer while the block runs; in memory where there is no path. Nothing waits for the database."""
    database = Database(f"sqlite:///{path}" if path is not None else MEMORY)
    history = system.history = History(database, clock)
    pages = HistoryPages(history, ServerAccess(system.server), clock)
    system.server.backend.local_paths[HISTORY_PATH.strip("/").split("/")[0]] = pages.handler()
    recorder = HistoryRecorder(system.client(RECORDER), clock, database, retention=retention)
    HistoryMetrics(recorder, system.metrics.registry)
    recording = asyncio.ensure_future(_recorded(recorder))
    learning = asyncio.ensure_future(_learned(recorder, history, system.run_times))
    try:
        yield history
    finally:
        system.history = None
        recording.cancel()
        learning.cancel()
        await asyncio.gather(recording, learning, return_exceptions=True)
        database.close()


async def _learned(recorder: HistoryRecorder, history: History, run_times: RunTimes) -> None:
    """Let the job controller know how long past jobs ran, also those whose objects are gone."""
    await recorder.caught_up()
    for offset in range(0, MAX_RUNS_LEARNED, MAX_JOBS_PER_PAGE):
        question = JobQuestion(phases=("Completed",), sort="ended", offset=offset, limit=MAX_JOBS_PER_PAGE)
        page = await history.jobs(question)
        for job in page.jobs:
            run_times.add_past(job)
        if offset + len(page.jobs) >= page.total:
            return


async def _recorded(recorder: HistoryRecorder) -> None:
    """A history that cannot be kept does not end the system; it is said once."""
    try:
        await recorder.run()
    except* DatabaseProblem as group:
        log.error("the history is not recorded: %s", group.exceptions[0])
