"""What dashboard and history cost: page times and sizes, 50 open pages, the start and memory of `volcano up`.

    python benchmarks/dashboard.py [pages] [streams] [start] [--jobs 5000] [--nodes 1000] [--past 50000]

`pages`: a system in memory on virtual time, with a history on disk that is filled through the recorder's own writer;
the time of a page is that of the processor, from request to answer; what the scheduler computes beside it for later
pages is shown apart. `streams` and `start` measure real processes.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import http.client
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.running_server import Client as ApiClient
from volcano.api.batch import Job, Phase
from volcano.api.history_records import JobRecord, NodeSample, PastPod, QueueSample, RoleRecord, StateRecord
from volcano.api.scheme import resource_type
from volcano.app.local_history import local_history
from volcano.dashboard.application import Dashboard, DashboardSettings
from volcano.dashboard.callers import Caller
from volcano.dashboard.logins import TokenLogin
from volcano.dashboard.sessions import OneTimeToken
from volcano.dashboard.watched import Watched
from volcano.dashboard.web import WebRequest
from volcano.history.batch import Measured, RowBatch
from volcano.history.commit import commit
from volcano.history.database import Database
from volcano.machinery.clock import run_virtually
from volcano.machinery.ids import SeededIds
from volcano.machinery.transport import User
from volcano.scheduler.cache import FOLLOWED
from volcano.testing.system import VirtualSystem, virtual_system

JOBS = resource_type(Job)
JOBS_PATH = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
ADMIN = User("admin", ("system:masters", "system:authenticated"))
ROUNDS = 5
PAST_DAYS = 30
JOBS_PER_COMMIT = 2_000
SAMPLES_PER_NODE = 24
OPEN_PAGES = 50
STREAM_SECONDS = 60.0
STREAM_ROUNDS = 2
CHANGE_EVERY_SECONDS = 10.0
MAX_WAIT_SECONDS = 120.0
QUIET_SHARE = 0.25


def job(number: int) -> dict[str, Any]:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    task = {"name": "worker", "replicas": 2, "template": {"spec": {"containers": [container]}}}
    metadata = {"name": f"job-{number:05}", "namespace": "default", "labels": {"team": f"team-{number % 20}"}}
    return {"metadata": metadata, "spec": {"minAvailable": 2, "queue": "default", "tasks": [task]}}


# -- pages -----------------------------------------------------------------------------------------------------------
def fill(path: Path, jobs: int, nodes: int, now: datetime) -> None:
    """The month before now: jobs of two pods that have ended, and samples of every node and queue."""
    database = Database(f"sqlite:///{path}")
    database.prepare()
    for first in range(0, jobs, JOBS_PER_COMMIT):
        batch = RowBatch()
        for number in range(first, min(first + JOBS_PER_COMMIT, jobs)):
            add_past(batch, number, nodes, now - timedelta(days=PAST_DAYS) * (1 - number / jobs))
        commit(database, batch)
    batch = RowBatch()
    for hour in range(SAMPLES_PER_NODE):
        at = now - timedelta(hours=SAMPLES_PER_NODE - hour)
        amounts = {"cpu": f"{hour % 8}", "memory": f"{hour % 8}Gi"}
        room = {"cpu": "8", "memory": "16Gi", "pods": "110"}
        batch.nodes += [NodeSample(at, f"sim-{n}", room, amounts, pods=hour % 8) for n in range(nodes)]
        batch.queues += [QueueSample(at, name, allocated=amounts, running=hour) for name in ("root", "default")]
    commit(database, batch)
    database.close()


def add_past(batch: RowBatch, number: int, nodes: int, created: datetime) -> None:
    uid, started, ended = f"past-{number}", created + timedelta(minutes=number % 60), created + timedelta(hours=2)
    phase = "Failed" if number % 10 == 0 else "Completed"
    request = {"cpu": "1", "memory": "1Gi"}
    batch.jobs[uid] = JobRecord(
        uid=uid, namespace="default", name=f"past-{number:05}", queue="default", user=f"user-{number % 50}",
        labels={"team": f"team-{number % 20}"}, roles=[RoleRecord("worker", 2, request)], pods=2, min_available=2,
        requests={"cpu": "2", "memory": "2Gi"}, cpu_milli=2000, memory_bytes=2 << 30, phase=phase, created=created,
        started=started, ended=ended, gone=ended + timedelta(hours=1),
    )  # fmt: skip
    for at, name in ((created, "Pending"), (started, "Running"), (ended, phase)):
        batch.states.append(StateRecord(uid, at, name))
    for index in range(2):
        batch.pods[f"{uid}-{index}"] = PastPod(
            uid=f"{uid}-{index}", job_uid=uid, namespace="default", name=f"past-{number:05}-worker-{index}",
            role="worker", index=index, node=f"sim-{(number + index) % nodes}", phase="Succeeded", requests=request,
            cpu_milli=1000, memory_bytes=1 << 30, created=created, bound=started, started=started, ended=ended,
            gone=ended + timedelta(hours=1),
        )  # fmt: skip
        batch.measured.append(Measured(f"{uid}-{index}", 3_600_000, 1_800_000, 512 * 3600))


async def settled(system: VirtualSystem) -> Counter[str]:
    """Returns when no more jobs start: the phases of all."""
    before: Counter[str] = Counter()
    while True:
        await asyncio.sleep(2)
        found = Counter(job.status.state.phase for job in system.mirror.all(Job))
        if found == before and found[Phase.RUNNING]:
            return found
        before = found


async def measure_pages(jobs: int, nodes: int, past: int) -> None:
    with tempfile.TemporaryDirectory(prefix="volcano-bench-") as folder:
        async with virtual_system(nodes=nodes, capacity={"cpu": "8", "memory": "16Gi", "pods": "110"}) as system:
            path = Path(folder) / "history.db"
            fill(path, past, nodes, system.clock.now())
            async with local_history(system.system, system.clock, path=path):
                calibrate()
                for number in range(jobs):
                    await system.client.create(JOBS, job(number))
                phases = await settled(system)
                print(f"{jobs} jobs ({dict(phases)}), {nodes} nodes, {past} jobs in the history", flush=True)
                await ask_for_pages(system, jobs)


def calibrate() -> None:
    """How fast this machine is at the moment: its cores are shared, and their speed changes with what others do."""
    began, wall = time.process_time(), time.perf_counter()
    for _ in range(3_000_000):
        pass
    spent, took = time.process_time() - began, time.perf_counter() - wall
    print(
        f"calibration: 3,000,000 steps of an empty loop take {spent:.3f} s of processor time, {took:.3f} s", flush=True
    )


class Beside:
    """Counts the processor time of an answer that pages do not wait for."""

    def __init__(self, work: Any) -> None:
        self._work = work
        self.seconds = 0.0

    async def __call__(self) -> Any:
        began = time.process_time()
        try:
            return await self._work()
        finally:
            self.seconds += time.process_time() - began


async def ask_for_pages(system: VirtualSystem, jobs: int) -> None:
    whole, clock = system.system, system.clock
    own, link = whole.client("dashboard"), OneTimeToken(SeededIds(1))
    owner = DashboardSettings(owner=lambda: Caller("admin", (), whole.client_of(ADMIN, "dashboard"), clock))
    watched = Watched(own, clock, dict.fromkeys(FOLLOWED, whole.scheduler.mirror))
    login = TokenLogin(own, clock, lambda token, user: whole.client_of(user, "dashboard"))
    dashboard = Dashboard(watched, login, clock, SeededIds(2), owner, link=link)
    beside = whole.scheduler.expected_starts = Beside(whole.scheduler.expected_starts)  # type: ignore[method-assign]
    began = time.process_time()
    await dashboard.prepare()
    print(f"made before the first page: {1000 * (time.process_time() - began):.1f} ms", flush=True)
    answer = await dashboard.answer(WebRequest("GET", "/login", {"token": link.current}))
    cookie = answer.headers["set-cookie"].partition(";")[0]
    first_waiting = min(
        (each.name for each in system.mirror.all(Job) if each.status.state.phase == Phase.PENDING), default=""
    )
    then = f"{clock.now() - timedelta(hours=5):%Y-%m-%dT%H:%M:%SZ}"
    slow: list[str] = []
    for path, query in addresses(first_waiting, then):
        times, walls, size, elsewhere = [], [], 0, beside.seconds
        for number in range(ROUNDS):
            request = WebRequest("GET", path, {**query, "round": str(number)}, headers={"cookie": cookie})
            began, wall, apart = time.process_time(), time.perf_counter(), beside.seconds
            answer = await dashboard.answer(request)
            times.append(time.process_time() - began - (beside.seconds - apart))
            walls.append(time.perf_counter() - wall)
            assert answer.status == 200, (path, answer.status, answer.body[:300])
            size = len(answer.body)
        text = "&".join(f"{name}={value}" for name, value in query.items())
        shown, took = f"{path}?{text}" if text else path, statistics.median(times) * 1000
        apart = 1000 * (beside.seconds - elsewhere)
        print(
            f"{shown:<58} {took:7.1f} ms (first {times[0] * 1000:7.1f}, wall {statistics.median(walls) * 1000:7.1f}) "
            f"{size / 1000:7.1f} kB{f', {apart:.0f} ms beside' if apart else ''}",
            flush=True,
        )
        if max(took, times[0] * 1000) > 200 or size > 300_000:
            slow.append(shown)
    print("all pages within 200 ms and 300 kB" if not slow else f"beyond 200 ms or 300 kB: {', '.join(slow)}")
    await dashboard.close()


def addresses(waiting: str, then: str) -> list[tuple[str, dict[str, str]]]:
    live: list[tuple[str, dict[str, str]]] = [
        ("/", {}),
        ("/jobs", {}),
        ("/jobs", {"size": "100"}),
        ("/jobs", {"q": "job-0001", "sort": "-cpu", "state": "waiting"}),
        ("/jobs", {"group": "label:team", "page": "60"}),
        ("/jobs/default/job-00001", {}),
        *([(f"/jobs/default/{waiting}/why", dict[str, str]())] if waiting else []),
        ("/jobs/default/job-00001/events", {}),
        ("/jobs/default/past-00001", {}),
        ("/queues", {}),
        ("/queues/default", {}),
        ("/queues/default/chart", {}),
        ("/nodes", {}),
        ("/nodes/sim-0", {}),
        ("/flows", {}),
        ("/topology", {}),
        ("/decisions", {}),
        ("/usage", {"period": "30d", "by": "user"}),
        ("/usage", {"period": "30d", "by": "day,queue"}),
        ("/usage/chart", {"period": "30d"}),
        ("/settings", {}),
    ]
    past = [
        ("/", {}),
        ("/jobs", {}),
        ("/jobs", {"group": "label:team", "sort": "-cpu"}),
        ("/queues", {}),
        ("/queues/default", {}),
        ("/nodes", {}),
        ("/nodes/sim-0", {}),
        ("/flows", {}),
        ("/topology", {}),
        ("/decisions", {}),
        ("/settings", {}),
    ]
    return live + [(path, {**query, "at": then}) for path, query in past]


# -- real processes --------------------------------------------------------------------------------------------------
@contextlib.contextmanager
def running_up(*options: str) -> Iterator[tuple[Path, subprocess.Popen[str], float]]:
    """The data directory, the process, and the seconds until it was ready."""
    with tempfile.TemporaryDirectory(prefix="volcano-bench-") as folder:
        command = [sys.executable, "-m", "volcano", "up", "--data-dir", folder, "--port", "0", *options]
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            assert process.stdout is not None
            next(line for line in process.stdout if "volcano is up" in line)
            took = time.perf_counter() - began
            threading.Thread(target=process.stdout.read, daemon=True).start()
            yield Path(folder), process, took
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def memory_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no VmRSS")


class OpenPage(threading.Thread):
    """What a browser does with an open page: it follows the stream, and asks for the page again when told to."""

    def __init__(self, address: str, cookie: str, path: str, topics: str) -> None:
        super().__init__(daemon=True)
        self._address, self._cookie, self._path, self._topics = address, cookie, path, topics
        self._stream: http.client.HTTPConnection | None = None
        self.redraws = 0

    def close(self) -> None:
        if self._stream is not None and self._stream.sock is not None:
            self._stream.sock.shutdown(socket.SHUT_RDWR)

    def run(self) -> None:
        stream = self._stream = http.client.HTTPConnection(self._address)
        pages = http.client.HTTPConnection(self._address)
        stream.request("GET", f"/live?topics={self._topics}", headers={"cookie": self._cookie})
        answer, tag = stream.getresponse(), ""
        with contextlib.suppress(OSError, http.client.HTTPException):
            while line := answer.readline():
                if line.startswith(b"event: change"):
                    headers = {"cookie": self._cookie, "x-part": "main", **({"if-none-match": tag} if tag else {})}
                    pages.request("GET", self._path, headers=headers)
                    page = pages.getresponse()
                    page.read()
                    tag = page.headers.get("etag", "")
                    self.redraws += 1


OPEN = (("/", "jobs,pods,nodes"), ("/jobs", "jobs"), ("/queues", "queues,nodes"), ("/nodes", "nodes,pods"))


def measure_streams(jobs: int, nodes: int) -> None:
    """Every page is of a session of its own: nothing is shared between them but what the server shares by itself.

    With and without pages alternately, because others use the machine too.
    """
    with running_up("--ephemeral", "--simulated-nodes", str(nodes), "--dashboard", "0") as (folder, process, _):
        api = ApiClient(folder / "kubeconfig")
        for number in range(jobs):
            assert api.create(JOBS_PATH, job(number)).status == 201
        wait_for_quiet(process.pid)
        shares: dict[bool, list[float]] = {False: [], True: []}
        redraws = []
        for _ in range(STREAM_ROUNDS):
            shares[False].append(spent(process.pid, STREAM_SECONDS, api))
            pages = open_pages(folder)
            wait_for_quiet(process.pid)
            before = sum(page.redraws for page in pages)
            shares[True].append(spent(process.pid, STREAM_SECONDS, api))
            redraws.append(sum(page.redraws for page in pages) - before)
            for page in pages:
                page.close()
            wait_for_quiet(process.pid)
        idle, busy = statistics.mean(shares[False]), statistics.mean(shares[True])
        texts = {key: ", ".join(f"{100 * each:.1f}" for each in found) for key, found in shares.items()}
        print(
            f"{jobs} jobs, {nodes} nodes, a job is submitted every {CHANGE_EVERY_SECONDS:.0f} s: "
            f"{100 * idle:.1f} % of a core without pages ({texts[False]}), {100 * busy:.1f} % with {OPEN_PAGES} open "
            f"pages ({texts[True]}); {statistics.mean(redraws):.0f} redraws in {STREAM_SECONDS:.0f} s; "
            f"the pages cost {100 * (busy - idle):.1f} %",
            flush=True,
        )


def open_pages(folder: Path) -> list[OpenPage]:
    pages = []
    for number in range(OPEN_PAGES):
        address, cookie = sign_in(folder)
        path, topics = OPEN[number % len(OPEN)]
        pages.append(OpenPage(address, cookie, path, topics))
        pages[-1].start()
    return pages


submitted = iter(range(90_000, 100_000))


def spent(pid: int, seconds: float, api: ApiClient) -> float:
    """The share of a core that the process uses while little happens."""
    before, began = processor_seconds(pid), time.monotonic()
    while (left := began + seconds - time.monotonic()) > 0:
        assert api.create(JOBS_PATH, job(next(submitted))).status == 201
        time.sleep(min(CHANGE_EVERY_SECONDS, left))
    return (processor_seconds(pid) - before) / (time.monotonic() - began)


def wait_for_quiet(pid: int) -> None:
    end = time.monotonic() + MAX_WAIT_SECONDS
    while time.monotonic() < end:
        before = processor_seconds(pid)
        time.sleep(5)
        if processor_seconds(pid) - before < QUIET_SHARE * 5:
            return


def sign_in(folder: Path) -> tuple[str, str]:
    link = (folder / "dashboard-link").read_text().strip()
    address, _, path = link.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(address)
    connection.request("GET", f"/{path}")
    answer = connection.getresponse()
    answer.read()
    return address, (answer.headers["set-cookie"] or "").partition(";")[0]


def measure_start(repeat: int) -> None:
    """Alternately, so that a machine that grows slower is slower for both; memory after five quiet seconds."""
    without = ("--dashboard", "off", "--history", "off")
    times: dict[bool, list[float]] = {False: [], True: []}
    memory: dict[bool, list[float]] = {False: [], True: []}
    processor: dict[bool, list[float]] = {False: [], True: []}
    opened: list[float] = []
    for _ in range(repeat):
        for has_both in (False, True):
            options = ("--dashboard", "0") if has_both else without
            with running_up("--ephemeral", "--simulated-nodes", "10", *options) as (folder, process, took):
                processor[has_both].append(processor_seconds(process.pid))
                time.sleep(5)
                times[has_both].append(took)
                memory[has_both].append(memory_mib(process.pid))
                if has_both:
                    address, cookie = sign_in(folder)
                    for path, _topics in OPEN:
                        connection = http.client.HTTPConnection(address)
                        connection.request("GET", path, headers={"cookie": cookie})
                        connection.getresponse().read()
                    opened.append(memory_mib(process.pid))
    for has_both in (False, True):
        print(
            f"volcano up {'with' if has_both else 'without'} dashboard and history: ready after "
            f"{statistics.median(times[has_both]):.2f} s ({statistics.median(processor[has_both]):.2f} s of processor "
            f"time), {statistics.median(memory[has_both]):.1f} MiB",
            flush=True,
        )
    print(f"after the first pages were opened: {statistics.median(opened):.1f} MiB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=["pages", "streams", "start"])
    parser.add_argument("--jobs", type=int, default=5000)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--past", type=int, default=50_000)
    parser.add_argument("--repeat", type=int, default=5)
    given = parser.parse_args()
    if "pages" in given.parts:
        run_virtually(measure_pages(given.jobs, given.nodes, given.past))
    if "streams" in given.parts:
        measure_streams(given.jobs, given.nodes)
    if "start" in given.parts:
        measure_start(given.repeat)
