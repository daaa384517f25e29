"""vacct, vcctl usage, vcctl job history and the dashboard agree with the test's own ledger, on both databases."""

from __future__ import annotations

import asyncio
import csv
import io
import itertools
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode, urlsplit
from zoneinfo import ZoneInfo

import msgspec
import pytest

from tests.postgresql import BINARIES, MISSING, new_database, running_postgresql
from tests.system.real_system import wait_until
from volcano.api.history_records import HISTORY_PATH
from volcano.api.meta import Key
from volcano.api.scheme import find_resource_type
from volcano.api.times import timestamp
from volcano.app.local_history import ServerAccess
from volcano.dashboard.application import Dashboard, DashboardSettings
from volcano.dashboard.callers import Caller
from volcano.dashboard.logins import TokenLogin
from volcano.dashboard.sessions import OneTimeToken
from volcano.dashboard.watched import Watched
from volcano.dashboard.web import WebRequest, _pairs
from volcano.embedded.apiserver.server import ADMIN
from volcano.history.database import Database
from volcano.history.history import History
from volcano.history.recorder import HistoryRecorder
from volcano.history.serving import HistoryPages
from volcano.machinery.clock import SystemClock
from volcano.machinery.ids import SeededIds
from volcano.machinery.transport import Request

BATCH = "batch.volcano.sh"
NUMBERS = itertools.count()
HOUR = 3600
AFTER_ALL = timedelta(hours=30)
ZONES = ("UTC", "Asia/Kathmandu", "America/New_York", "Pacific/Kiritimati")


class LedgerPod(msgspec.Struct):
    """Seconds are after the job's creation; `ended` is None while it runs."""

    bound: int
    ended: int | None
    attempt: int = 0
    evicted: bool = False


class LedgerJob(msgspec.Struct):
    """`phases` are (seconds, phase) in their order; the last one is where the job is now."""

    user: str
    namespace: str
    queue: str
    phases: list[tuple[int, str]]
    pods: list[LedgerPod] = []
    replicas: int = 1
    cpu: int = 1
    memory_gib: int = 1
    gpus: int = 0
    retries: int = 0
    is_deleted: bool = False
    created: datetime = datetime.min
    uid: str = ""

    @property
    def started(self) -> int | None:
        return next((second for second, phase in self.phases if phase == "Running"), None)

    @property
    def ended(self) -> int | None:
        second, phase = self.phases[-1]
        return second if phase in ("Completed", "Failed", "Aborted", "Terminated") else None

    @property
    def phase(self) -> str:
        return self.phases[-1][1]

    def at(self, second: int) -> datetime:
        return self.created + timedelta(seconds=second)


def ledger() -> dict[str, LedgerJob]:
    """Users, queues and namespaces cross; the long one passes midnight in every zone of the world."""
    return {
        "overnight": LedgerJob(
            "ada", "team-a", "default", [(0, "Pending"), (30, "Running"), (26 * HOUR, "Completed")],
            [LedgerPod(30, 26 * HOUR), LedgerPod(30, 20 * HOUR)], replicas=2, cpu=2,
        ),
        "retried": LedgerJob(
            "bob", "team-b", "research",
            [(0, "Pending"), (60, "Running"), (660, "Restarting"), (700, "Pending"), (760, "Running"),
             (4360, "Failed")],
            [LedgerPod(60, 660), LedgerPod(60, 660), LedgerPod(760, 4360, attempt=1), LedgerPod(760, 4360, attempt=1)],
            replicas=2, cpu=4, gpus=2, retries=1, is_deleted=True,
        ),
        "evicted": LedgerJob(
            "ada", "team-a", "research", [(0, "Pending"), (5, "Running"), (3200, "Completed")],
            [LedgerPod(5, 1205, evicted=True), LedgerPod(1400, 3200)], cpu=3, is_deleted=True,
        ),
        "suspended": LedgerJob(
            "eve", "team-b", "default", [(0, "Pending"), (0, "Running"), (900, "Aborting"), (905, "Aborted")],
            [LedgerPod(0, 905)], cpu=2,
        ),
        "resumed": LedgerJob(
            "eve", "team-a", "default",
            [(0, "Pending"), (10, "Running"), (600, "Aborted"), (1200, "Pending"), (1215, "Running"),
             (9000, "Completed")],
            [LedgerPod(10, 600), LedgerPod(1215, 9000)], gpus=1,
        ),
        "running": LedgerJob("bob", "team-a", "default", [(0, "Pending"), (10, "Running")], [LedgerPod(10, None)]),
        "waiting": LedgerJob("eve", "team-b", "research", [(0, "Pending")], cpu=64),
    }  # fmt: skip


class Later(SystemClock):
    """When all that the ledger tells of has passed."""

    def now(self) -> datetime:
        return super().now() + AFTER_ALL


# -- the workload -----------------------------------------------------------------------------------------------------
def submit(server: Any, name: str, entry: LedgerJob) -> None:
    """The life of a job, written as admission, controller, scheduler and kubelet would write it."""
    template = {"spec": {"containers": [container(entry)]}}
    metadata = {"name": name, "namespace": entry.namespace, "annotations": {"volcano.sh/submitted-by": entry.user}}
    tasks = [{"name": "w", "replicas": entry.replicas, "template": template}]
    spec = {"queue": entry.queue, "tasks": tasks, "minAvailable": entry.replicas}
    job = server.create(BATCH, "Job", {"metadata": metadata, "spec": spec})
    entry.uid, entry.created = job["metadata"]["uid"], datetime.fromisoformat(job["metadata"]["creationTimestamp"])
    conditions: list[dict[str, str]] = []
    for second, phase in entry.phases:
        conditions.append({"status": phase, "lastTransitionTime": timestamp(entry.at(second))})
        state = {"phase": phase, "lastTransitionTime": timestamp(entry.at(second))}
        retries = entry.retries if second > 660 else 0
        status = {"state": state, "conditions": conditions, "retryCount": retries}
        server.set_status(BATCH, "Job", Key(entry.namespace, name), status)
    for number, pod in enumerate(entry.pods):
        run_pod(server, f"{name}-w-{number}", name, entry, pod, number)
    if entry.is_deleted:
        for number in range(len(entry.pods)):
            remove(server, "", "Pod", Key(entry.namespace, f"{name}-w-{number}"))
        remove(server, BATCH, "Job", Key(entry.namespace, name))


def container(entry: LedgerJob) -> dict[str, Any]:
    amounts = {"cpu": str(entry.cpu), "memory": f"{entry.memory_gib}Gi"}
    amounts |= {"nvidia.com/gpu": str(entry.gpus)} if entry.gpus else {}
    return {"name": "c", "image": "i", "resources": {"requests": amounts, "limits": amounts}}


def run_pod(server: Any, name: str, job: str, entry: LedgerJob, pod: LedgerPod, number: int) -> None:
    owner = {"apiVersion": f"{BATCH}/v1alpha1", "kind": "Job", "name": job, "uid": entry.uid, "controller": True}
    annotations = {
        "volcano.sh/task-spec": "w", "volcano.sh/task-index": str(number), "volcano.sh/job-name": job,
        "volcano.sh/job-retry-count": str(pod.attempt),
    }  # fmt: skip
    metadata = {"name": name, "namespace": entry.namespace, "ownerReferences": [owner], "annotations": annotations}
    server.create("", "Pod", {"metadata": metadata, "spec": {"containers": [container(entry)], "nodeName": "n1"}})
    bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": timestamp(entry.at(pod.bound))}
    status: dict[str, Any] = {"phase": "Running", "conditions": [bound], "startTime": timestamp(entry.at(pod.bound))}
    server.set_status("", "Pod", Key(entry.namespace, name), status)
    if pod.ended is None:
        return
    if pod.evicted:
        status["conditions"].append(
            {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler",
             "message": "preempted by team-b/other", "lastTransitionTime": timestamp(entry.at(pod.ended))}
        )  # fmt: skip
    ending = {
        "exitCode": 143 if pod.evicted else 0,
        "startedAt": timestamp(entry.at(pod.bound)),
        "finishedAt": timestamp(entry.at(pod.ended)),
    }
    status |= {
        "phase": "Failed" if pod.evicted else "Succeeded",
        "containerStatuses": [{"name": "c", "state": {"terminated": ending}}],
    }
    server.set_status("", "Pod", Key(entry.namespace, name), status)


def remove(server: Any, group: str, kind: str, key: Key) -> None:
    server.do(server.client.delete(find_resource_type(group, kind), key, {"gracePeriodSeconds": 0}))


# -- the systems that answer ------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def postgresql_server() -> Iterator[str]:
    if BINARIES is None:
        pytest.skip(MISSING)
    with running_postgresql() as found:
        yield found


class Recorded:
    """A server with the history of the ledger's jobs, and its dashboard."""

    def __init__(self, server: Any, database: Database) -> None:
        self.server, self.database, self.jobs = server, database, ledger()
        self._cookie = ""

    async def start(self) -> None:
        clock, later = SystemClock(), Later()
        pages = HistoryPages(History(self.database, later), ServerAccess(self.server.server), later)
        self.server.server.backend.local_paths["volcano"] = pages.handler()
        self._recorder = HistoryRecorder(self.server.client, clock, self.database, measures=False)
        self._running = asyncio.ensure_future(self._recorder.run())
        await self._recorder.caught_up()
        client, link = self.server.client, OneTimeToken(SeededIds(7))
        settings = DashboardSettings(owner=lambda: Caller(ADMIN.name, ADMIN.groups, client, later))
        login = TokenLogin(client, later, lambda token, user: client)
        self._dashboard = Dashboard(Watched(client, later), login, later, SeededIds(8), settings, link=link)
        answer = await self._dashboard.answer(self._request(f"/login?token={link.current}"))
        self._cookie = answer.headers["set-cookie"].partition(";")[0]

    async def stop(self) -> None:
        await self._dashboard.close()
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)

    def _request(self, address: str) -> WebRequest:
        parts = urlsplit(address)
        headers = {"host": "localhost", "cookie": self._cookie}
        return WebRequest("GET", parts.path, _pairs(parts.query), {}, headers, "127.0.0.1")

    def page(self, path: str, **query: str) -> Any:
        """A page of the dashboard as JSON."""
        answer = self.server.do(self._dashboard.answer(self._request(f"/api/v1{path}?{urlencode(query)}")))
        assert answer.status == 200, answer.body
        return msgspec.json.decode(answer.body)

    def history(self, page: str) -> Any:
        response = self.server.do(self.server.client.raw(Request("GET", f"{HISTORY_PATH}/{page}")))
        return msgspec.json.decode(response.body)

    def has_all(self) -> bool:
        found = {job["name"]: job for job in self.history("jobs").get("jobs", [])}
        if set(found) != set(self.jobs):
            return False
        return all(
            found[name]["phase"] == entry.phase
            and bool(found[name].get("gone")) == entry.is_deleted
            and len(self.history(f"jobs/{entry.uid}").get("pods", [])) == len(entry.pods)
            for name, entry in self.jobs.items()
        )


@pytest.fixture(params=["sqlite", "postgresql"])
def recorded(request: pytest.FixtureRequest, server: Any, tmp_path: Any) -> Iterator[Recorded]:
    url = f"sqlite:///{tmp_path / 'history.db'}"
    if request.param == "postgresql":
        url = new_database(request.getfixturevalue("postgresql_server"), f"ledger_{next(NUMBERS)}")
    database = Database(url)
    found = Recorded(server, database)
    for name in ("team-a", "team-b"):
        if not any(each["metadata"]["name"] == name for each in server.items("", "Namespace")):
            server.create("", "Namespace", {"metadata": {"name": name}})
    server.do(found.start())
    for name, entry in found.jobs.items():
        submit(server, name, entry)
    wait_until(found.has_all, "the history has every job with its end and its pods")
    yield found
    server.do(found.stop())
    server.server.backend.local_paths.clear()
    database.close()


# -- what the ledger says ---------------------------------------------------------------------------------------------
SLICE = 60
"""Seconds: days of every zone begin on whole minutes."""


def used(
    jobs: dict[str, LedgerJob], by: tuple[str, ...], since: datetime, until: datetime, zone: str = "UTC"
) -> dict[tuple[str, ...], dict[str, float]]:
    """Hours by group: each pod's time in slices, each slice on the day of its zone on which it begins."""
    here, found = ZoneInfo(zone), {}

    def row(entry: LedgerJob, moment: datetime) -> dict[str, float]:
        day = moment.astimezone(here).date().isoformat()
        key = tuple(day if name == "day" else getattr(entry, name) for name in by)
        return found.setdefault(key, {"cpuHours": 0.0, "memoryGibHours": 0.0, "gpuHours": 0.0, "jobs": 0})

    for entry in jobs.values():
        if since <= entry.created < until:
            row(entry, entry.created)["jobs"] += 1
        for pod in entry.pods:
            begin = max(entry.at(pod.bound), since)
            end = min(entry.at(pod.ended) if pod.ended is not None else until, until)
            while begin < end:
                minute = begin.replace(second=0, microsecond=0) + timedelta(seconds=SLICE)
                hours = (min(minute, end) - begin).total_seconds() / HOUR
                sums = row(entry, begin)
                sums["cpuHours"] += hours * entry.cpu
                sums["memoryGibHours"] += hours * entry.memory_gib
                sums["gpuHours"] += hours * entry.gpus
                begin = min(minute, end)
    return found


def same_hours(
    rows: list[dict[str, Any]], by: tuple[str, ...], expected: dict[tuple[str, ...], dict[str, float]]
) -> None:
    found = {tuple(row.get(name, "") for name in by): row for row in rows if any(row.get(each) for each in (
        "cpuHours", "memoryGibHours", "gpuHours", "jobs"))}  # fmt: skip
    assert set(found) == {key for key, sums in expected.items() if any(sums.values())}
    for key, row in found.items():
        figures = {name: row.get(name, 0) for name in expected[key]}
        assert figures == pytest.approx(expected[key], rel=1e-6, abs=1e-6), key


# -- agreement --------------------------------------------------------------------------------------------------------
def windows(jobs: dict[str, LedgerJob]) -> list[tuple[datetime, datetime]]:
    """All of it; from within jobs that run into jobs that run; a time in which only two pods hold a node."""
    begin = min(entry.created for entry in jobs.values())
    second = timedelta(seconds=1)
    return [
        (begin - second, begin + timedelta(hours=29)),
        (begin + timedelta(seconds=700), begin + timedelta(hours=2, seconds=7)),
        (begin + timedelta(hours=21), begin + timedelta(hours=25)),
    ]


@pytest.mark.timeout(240)
def test_all_that_answer_about_the_past_agree_with_the_ledger(recorded: Recorded, call: Callable[..., Any]):
    jobs = recorded.jobs
    accounts = msgspec.json.decode(call("vacct -o json").out)
    rows = {row["NAME"]: row for row in csv.DictReader(io.StringIO(call("vacct -o csv").out))}

    # Jobs: who, where, how they ended, when
    assert {
        job["name"]: (job["user"], job["namespace"], job["queue"], job["phase"], job.get("retries", 0), job["pods"])
        for job in accounts
    } == {
        name: (entry.user, entry.namespace, entry.queue, entry.phase, entry.retries, entry.replicas)
        for name, entry in jobs.items()
    }
    for job in accounts:
        entry = jobs[job["name"]]
        for field, second in (("created", 0), ("started", entry.started), ("ended", entry.ended)):
            found = datetime.fromisoformat(job[field]) if job.get(field) else None
            assert found == (entry.at(second) if second is not None else None), (job["name"], field)
        assert float(rows[job["name"]]["GPUS"]) == entry.gpus * entry.replicas
        assert float(rows[job["name"]]["CPUS"]) == entry.cpu * entry.replicas

    # Usage: the command line and the dashboard, in every zone and window
    for since, until in windows(jobs):
        for by, zone in [(("queue",), "UTC"), (("user", "namespace"), "UTC"), *((("day", "user"), z) for z in ZONES)]:
            expected = used(jobs, by, since, until, zone)
            asked = {"by": ",".join(by), "since": timestamp(since), "until": timestamp(until), "zone": zone}
            said = call("vcctl usage -o json", *(word for name, text in asked.items() for word in (f"--{name}", text)))
            same_hours(msgspec.json.decode(said.out), by, expected)
            same_hours(recorded.page("/usage", **asked)["rows"], by, expected)

    # One job: phases, pods and attempts, evictions
    for name, entry in jobs.items():
        story = msgspec.json.decode(call(f"vcctl job history {name} -n {entry.namespace} -o json").out)
        assert [each["phase"] for each in story["states"]] == [phase for _, phase in entry.phases], name
        assert sorted((pod.get("attempt", 0), pod["bound"]) for pod in story.get("pods", [])) == sorted(
            (pod.attempt, timestamp(entry.at(pod.bound))) for pod in entry.pods
        )
        assert len(story.get("evictions", [])) == sum(pod.evicted for pod in entry.pods)

    # The dashboard now, and at moments of the past: jobs that were there, in their phases of then
    there = {name: entry for name, entry in jobs.items() if not entry.is_deleted}
    now = recorded.page("/jobs")
    assert {row["name"]: row["phase"] for row in now["rows"]} == {name: entry.phase for name, entry in there.items()}
    newest = max(entry.created for entry in jobs.values())
    for later in (20, 650, 950, 1210, 5000, 27 * HOUR):
        moment = newest + timedelta(seconds=later)
        then = recorded.page("/jobs", at=timestamp(moment))
        assert {row["name"]: row["phase"] for row in then["rows"]} == {
            name: phase_at(entry, moment) for name, entry in there.items()
        }, later
        assert then["total"] == len(there)


def phase_at(entry: LedgerJob, moment: datetime) -> str:
    return [phase for second, phase in entry.phases if entry.at(second) <= moment][-1]


def test_days_begin_at_midnight_of_the_zone(recorded: Recorded, call: Callable[..., Any]):
    """A job over midnight is on both days, with the hours of each."""
    entry = recorded.jobs["overnight"]
    for zone in ZONES:
        since, until = entry.created - timedelta(seconds=1), entry.created + timedelta(hours=29)
        said = call(
            f"vcctl usage --by day --user ada --queue default --zone {zone} -o json "
            f"--since {timestamp(since)} --until {timestamp(until)}"
        )
        days = {row["day"]: row["cpuHours"] for row in msgspec.json.decode(said.out)}
        first, last = (entry.at(second).astimezone(ZoneInfo(zone)).date() for second in (30, 26 * HOUR - 1))
        assert sorted(days) == [
            (first + timedelta(days=number)).isoformat() for number in range((last - first).days + 1)
        ]
        assert sum(days.values()) == pytest.approx(2 * (26 * HOUR - 30 + 20 * HOUR - 30) / HOUR)


def test_times_of_the_command_line_are_of_this_machines_zone(recorded: Recorded, call: Callable[..., Any], monkeypatch):
    entry = recorded.jobs["overnight"]
    local = datetime.fromtimestamp(entry.created.timestamp()).astimezone()
    line = next(line for line in call("vacct").out.splitlines() if line.startswith("overnight "))

    assert local.strftime("%Y-%m-%dT%H:%M:%S") in line
    assert entry.created.tzinfo is not None and entry.created.astimezone(UTC) == entry.created
