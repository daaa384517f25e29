"""The history recorder as a process of the simulation, and what its database must have when all is at rest."""

from __future__ import annotations

from pathlib import Path

import msgspec

from volcano.api.batch import Job
from volcano.api.history_records import DELETED, ENDED_PHASES
from volcano.api.scheme import resource_type
from volcano.history.database import Database
from volcano.history.recorder import HistoryRecorder
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock

JOBS = resource_type(Job).qualified


class PastJob(msgspec.Struct):
    """A job as the store last had it."""

    name: str
    phase: str
    is_gone: bool = False


class RecordingProcess:
    """A recorder with a connection of its own: the next life opens the same file again."""

    def __init__(self, client: Client, clock: Clock, path: Path) -> None:
        self._database = Database(f"sqlite:///{path}")
        self._recorder = HistoryRecorder(client, clock, self._database, measures=False)

    async def run(self) -> None:
        try:
            await self._recorder.run()
        finally:
            self._database.close()


def differences(path: Path, jobs: dict[str, PastJob]) -> list[str]:
    """Each job is recorded once, with its end; what came and went in a gap that the history tells of may be missing."""
    database = Database(f"sqlite:///{path}")
    try:
        rows = database.query('SELECT "uid", "name", "phase", "gone" FROM jobs WHERE "kind" = :kind', {"kind": "Job"})
        has_gap = bool(database.query('SELECT 1 FROM gaps WHERE "kind" = :kind', {"kind": JOBS}))
    finally:
        database.close()
    recorded = {uid: PastJob(name, phase, gone is not None) for uid, name, phase, gone in rows}
    found = [
        f"the history has job {row.name}, which was never there" for uid, row in recorded.items() if uid not in jobs
    ]
    if len(rows) != len(recorded):
        found.append("the history has a job twice")
    for uid, job in jobs.items():
        row = recorded.get(uid)
        if row is None:
            if not (has_gap and job.is_gone):
                found.append(f"job {job.name} is not in the history")
        elif row.is_gone != job.is_gone or (row.phase != _end(job) and not (has_gap and job.is_gone)):
            found.append(f"job {job.name} is {_shown(job)}, and {_shown(row)} in the history")
    return found


def _end(job: PastJob) -> str:
    return DELETED if job.is_gone and job.phase not in ENDED_PHASES else job.phase


def _shown(job: PastJob) -> str:
    return f"{job.phase or 'new'}{' and deleted' if job.is_gone else ''}"
