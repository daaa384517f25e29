"""`python -m tests.campaigns.history_kills --kills 50`: kill -9 under load; the history has every job once, with its end.

`volcano up`, or with `--recorder` a `volcano history` beside it, is killed at random moments while jobs are submitted,
run and are deleted. In the end every job that the API server acknowledged must be recorded exactly once.
"""

from __future__ import annotations

import random
import subprocess
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import click

from tests.system.real_system import JOBS, VOLCANO, Up, environment, wait_until
from volcano.history import queries
from volcano.history.database import Database
from volcano.history.problems import DatabaseProblem
from volcano.history.questions import MAX_JOBS_PER_PAGE, JobQuestion
from volcano.history.recorder import FOLLOWED

ANSWER_SECONDS = 300.0
ENDED = ("Completed", "Failed", "Terminated", "Aborted")


def a_job(name: str, seconds: float) -> dict[str, Any]:
    container = {"name": "c", "image": "busybox", "resources": {"requests": {"cpu": "100m"}}}
    annotations = {"simulation.volcano.sh/duration": f"{seconds:.1f}s"}
    template = {"metadata": {"annotations": annotations}, "spec": {"restartPolicy": "Never", "containers": [container]}}
    return {"metadata": {"name": name}, "spec": {"tasks": [{"name": "w", "replicas": 2, "template": template}]}}


class Load(threading.Thread):
    """Submits and deletes, and keeps a ledger: UID to the ends that are right."""

    def __init__(self, up: Up, chance: random.Random) -> None:
        super().__init__(daemon=True)
        self.up, self.chance = up, chance
        self.names: dict[str, str] = {}  # UID → name, of acknowledged jobs
        self.ends: dict[str, set[str]] = {}  # UID → the ends that are right, of jobs that were deleted
        self.stopping = threading.Event()

    def run(self) -> None:
        number = 0
        while not self.stopping.is_set():
            number += 1
            try:
                self._submit(number)
                if self.names and self.chance.random() < 0.3:
                    self._remove(self.chance.choice(list(self.names)))
            except (OSError, ValueError):
                time.sleep(0.1)  # it was just killed
            time.sleep(self.chance.uniform(0.02, 0.2))

    def _submit(self, number: int) -> None:
        answer = self.up.api.create(JOBS, a_job(f"job-{number}", self.chance.uniform(0.1, 4)))
        if answer.status == 201:
            self.names[answer.body["metadata"]["uid"]] = f"job-{number}"

    def _remove(self, uid: str) -> None:
        if uid in self.ends:
            return
        found = self.up.api.get(f"{JOBS}/{self.names[uid]}")
        if found.status != 200:
            return
        phase = ((found.body.get("status") or {}).get("state") or {}).get("phase", "")
        self.ends[uid] = {phase} if phase in ENDED else {"Deleted", "Completed"}
        self.up.api("DELETE", f"{JOBS}/{self.names[uid]}")


class Recorder:
    """A `volcano history` of its own, beside a system without one."""

    def __init__(self, up: Up, path: Path) -> None:
        self._up, self._path = up, path
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        words = [*VOLCANO, "history", "--kubeconfig", str(self._up.data / "kubeconfig"), "--leader-elect=false"]
        words += ["--database", f"sqlite:///{self._path}", "--listen-address", "127.0.0.1:0"]
        self._process = subprocess.Popen(
            words, env=environment(self._up.folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait(ANSWER_SECONDS)


def campaign(folder: Path, kills: int, chance: random.Random, *, recorder: bool = False) -> tuple[list[str], int]:
    """What is wrong in the end, and how many jobs there were."""
    options = ["--nodes", "0", "--simulated-nodes", "20", "--dashboard", "off"]
    up = Up(folder, *options, *(["--history=off"] if recorder else []))
    up.start_seconds = ANSWER_SECONDS
    path = folder / "history.db" if recorder else up.data / "history.db"
    beside = Recorder(up, path)
    up.start()
    try:
        if recorder:
            beside.start()
        wait_until(
            lambda: has_begun(path), "the recorder follows every kind", ANSWER_SECONDS
        )  # before that it knows none
        victim = beside if recorder else up
        load = Load(up, random.Random(chance.random()))
        load.start()
        for _ in range(kills):
            time.sleep(chance.uniform(0.1, 6))
            victim.kill()
            victim.start()
        load.stopping.set()
        load.join(60)
        wait_until(lambda: _all_ended(up), "all jobs ended", ANSWER_SECONDS)
        expected = {job["metadata"]["uid"]: {_phase(job)} for job in up.api.get(JOBS).body["items"]}
        expected |= {uid: load.ends[uid] for uid in load.names if uid not in expected and uid in load.ends}
        lost = [name for uid, name in load.names.items() if uid not in expected]
        problems = [f"{name} is gone, and was not deleted" for name in lost]
        try:
            wait_until(lambda: not differences(path, expected), "the history has it", 60)
        except AssertionError:
            problems += differences(path, expected)
        return problems, len(expected)
    finally:
        if recorder:
            beside.kill()
        up.clean_up()


def has_begun(path: Path) -> bool:
    if not path.exists():
        return False
    database = Database(f"sqlite:///{path}")
    try:
        return int(database.query("SELECT COUNT(*) FROM positions WHERE revision <> ''")[0][0]) >= len(FOLLOWED)
    except DatabaseProblem:
        return False  # the tables are being made
    finally:
        database.close()


def _all_ended(up: Up) -> bool:
    answer = up.api.get(JOBS)
    return answer.status == 200 and all(_phase(job) in ENDED for job in answer.body["items"])


def _phase(job: dict[str, Any]) -> str:
    return str(((job.get("status") or {}).get("state") or {}).get("phase", ""))


def differences(path: Path, expected: dict[str, set[str]]) -> list[str]:
    """Between the ledger and a copy of the database as it is."""
    database = Database(f"sqlite:///{path}")
    try:
        found: list[Any] = []
        while True:
            page = queries.jobs(database, JobQuestion(offset=len(found), limit=MAX_JOBS_PER_PAGE, sort="name"))
            found += page.jobs
            if not page.jobs or len(found) >= page.total:
                break
        times = Counter(job.uid for job in found)
        phases = {job.uid: job.phase for job in found}
        problems = [f"{uid} is recorded {times[uid]} times" for uid in expected if times[uid] != 1]
        problems += [
            f"{uid} ended {phases[uid] or 'not'}, and should have: {' or '.join(sorted(ends))}"
            for uid, ends in expected.items()
            if uid in phases and phases[uid] not in ends
        ]
        open_pods = database.query(
            'SELECT COUNT(*) FROM pods p JOIN jobs j ON j."uid" = p."job_uid" '
            'WHERE p."ended" IS NULL AND j."gone" IS NOT NULL'
        )[0][0]
        return problems + ([f"{open_pods} pods of deleted jobs have no end"] if open_pods else [])
    finally:
        database.close()


@click.command()
@click.option("--kills", default=50, show_default=True)
@click.option("--seed", default=1, show_default=True)
@click.option("--recorder", is_flag=True, help="Kill a `volcano history` instead of `volcano up`.")
def main(kills: int, seed: int, recorder: bool) -> None:
    with tempfile.TemporaryDirectory(prefix="volcano-history-kills-") as folder:
        problems, jobs = campaign(Path(folder), kills, random.Random(seed), recorder=recorder)
    for problem in problems:
        click.echo(problem)
    click.echo(
        f"{kills} kills of {'volcano history' if recorder else 'volcano up'}, {jobs} jobs, {len(problems)} wrong"
    )
    raise SystemExit(1 if problems else 0)


if __name__ == "__main__":
    main()
