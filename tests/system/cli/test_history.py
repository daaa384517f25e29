"""vacct, vcctl usage and vcctl job history agree with each other and with the test's own ledger, on both databases."""

from __future__ import annotations

import asyncio
import csv
import io
import itertools
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import msgspec
import pytest

from tests.postgresql import BINARIES, MISSING, new_database, running_postgresql
from tests.system.real_system import wait_until
from volcano.api.history_records import HISTORY_PATH
from volcano.api.meta import Key
from volcano.api.times import timestamp
from volcano.app.local_history import ServerAccess
from volcano.history.database import Database
from volcano.history.history import History
from volcano.history.recorder import HistoryRecorder
from volcano.history.serving import HistoryPages
from volcano.machinery.clock import SystemClock
from volcano.simulator.workloads.history import read_history

NUMBERS = itertools.count()
BATCH = "batch.volcano.sh"
NOW = datetime.now(UTC).replace(microsecond=0)
LEDGER = {
    "alpha": SimpleNamespace(queue="default", cpu=2, pods=2, waited=30, ran=600, phase="Completed"),
    "beta": SimpleNamespace(queue="default", cpu=1, pods=1, waited=60, ran=1200, phase="Failed"),
    "gamma": SimpleNamespace(queue="research", cpu=4, pods=3, waited=0, ran=3600, phase="Completed"),
}
"""Each pod requests `cpu` CPUs and holds its node for `ran` seconds, after the job `waited` seconds."""


class Later(SystemClock):
    """Three hours on, when all that the ledger tells of has passed."""

    def now(self) -> datetime:
        return super().now() + timedelta(hours=3)


@pytest.fixture(scope="module")
def postgresql_server():
    if BINARIES is None:
        pytest.skip(MISSING)
    with running_postgresql() as found:
        yield found


@pytest.fixture(params=["sqlite", "postgresql"])
def recorded(request, server, tmp_path):
    """The server with a history of the ledger's jobs, all of which are deleted."""
    url = f"sqlite:///{tmp_path / 'history.db'}"
    if request.param == "postgresql":
        url = new_database(request.getfixturevalue("postgresql_server"), f"cli_{next(NUMBERS)}")
    database, clock = Database(url), SystemClock()
    pages = HistoryPages(History(database, Later()), ServerAccess(server.server), Later())
    server.server.backend.local_paths["volcano"] = pages.handler()

    async def start():
        recorder = HistoryRecorder(server.client, clock, database, measures=False)
        running = asyncio.ensure_future(recorder.run())
        await recorder.caught_up()
        return running

    running = server.do(start())
    for name, entry in LEDGER.items():
        run(server, name, entry)
    wait_until(lambda: all_gone(server), "the history has every job")
    yield server
    server.server.backend.local_paths.clear()
    server._loop.call_soon_threadsafe(running.cancel)
    database.close()


def all_gone(server) -> bool:
    from volcano.machinery.transport import Request

    response = server.do(server.client.raw(Request("GET", f"{HISTORY_PATH}/jobs")))
    jobs = msgspec.json.decode(response.body).get("jobs", [])
    return len(jobs) == len(LEDGER) and all(job.get("gone") for job in jobs)


def run(server, name, entry):
    """The life of a job, written as its controller, scheduler and kubelet would write it."""
    template = {
        "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": str(entry.cpu)}}}]}
    }
    tasks = [{"name": "w", "replicas": entry.pods, "template": template}]
    job = server.create(
        BATCH,
        "Job",
        {"metadata": {"name": name, "namespace": "default", "annotations": {"volcano.sh/submitted-by": f"{name}-user"}},
         "spec": {"queue": entry.queue, "tasks": tasks, "minAvailable": entry.pods}},
    )  # fmt: skip
    created = datetime.fromisoformat(job["metadata"]["creationTimestamp"])
    started, ended = created + timedelta(seconds=entry.waited), created + timedelta(seconds=entry.waited + entry.ran)
    owner = {"apiVersion": f"{BATCH}/v1alpha1", "kind": "Job", "name": name, "uid": job["metadata"]["uid"],
             "controller": True}  # fmt: skip
    for number in range(entry.pods):
        pod = f"{name}-w-{number}"
        metadata = {"name": pod, "namespace": "default", "ownerReferences": [owner],
                    "annotations": {"volcano.sh/task-spec": "w", "volcano.sh/task-index": str(number)}}  # fmt: skip
        server.create("", "Pod", {"metadata": metadata, "spec": {**template["spec"], "nodeName": "n1"}})
        ending = {"exitCode": 0, "startedAt": timestamp(started), "finishedAt": timestamp(ended)}
        bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": timestamp(started)}
        status = {"phase": "Succeeded", "conditions": [bound], "startTime": timestamp(started),
                  "containerStatuses": [{"name": "c", "state": {"terminated": ending}}]}  # fmt: skip
        server.set_status("", "Pod", Key("default", pod), status)
    conditions = [{"status": "Running", "lastTransitionTime": timestamp(started)},
                  {"status": entry.phase, "lastTransitionTime": timestamp(ended)}]  # fmt: skip
    state = {"phase": entry.phase, "lastTransitionTime": timestamp(ended)}
    server.set_status(BATCH, "Job", Key("default", name), {"state": state, "conditions": conditions})
    for number in range(entry.pods):
        server.do(_deleted(server, "", "Pod", f"{name}-w-{number}"))
    server.do(_deleted(server, BATCH, "Job", name))


def _deleted(server, group, kind, name):
    from volcano.api.scheme import find_resource_type

    return server.client.delete(find_resource_type(group, kind), Key("default", name), {"gracePeriodSeconds": 0})


def test_the_command_lines_agree_with_the_ledger(recorded, call, tmp_path):
    jobs = {job["name"]: job for job in msgspec.json.decode(call("vacct -o json").out)}
    rows = list(csv.DictReader(io.StringIO(call("vacct -o csv").out)))
    later = timestamp(NOW + timedelta(hours=3))
    by_queue = msgspec.json.decode(call(f"vcctl usage --by queue --until {later} -o json").out)

    assert {name: (job["phase"], job["queue"], job["user"], job["pods"]) for name, job in jobs.items()} == {
        name: (entry.phase, entry.queue, f"{name}-user", entry.pods) for name, entry in LEDGER.items()
    }
    assert {row["NAME"]: (row["STATE"], row["PODS"], row["CPUS"]) for row in rows} == {
        name: (entry.phase, str(entry.pods), str(entry.pods * entry.cpu)) for name, entry in LEDGER.items()
    }
    assert [row["queue"] for row in by_queue] == ["default", "research"]
    for row in by_queue:
        mine = [entry for entry in LEDGER.values() if entry.queue == row["queue"]]
        assert row["jobs"] == len(mine)
        assert row["pods"] == sum(entry.pods for entry in mine)
        assert row.get("longestWaitSeconds", 0.0) == max(entry.waited for entry in mine)
        hours = sum(entry.pods * entry.cpu * entry.ran for entry in mine) / 3600
        assert abs(row["cpuHours"] - hours) < 1e-9


def test_users_and_days_add_up_to_the_same_hours(recorded, call):
    later = timestamp(NOW + timedelta(hours=3))
    rows = msgspec.json.decode(call(f"vcctl usage --by day,user --until {later} -o json").out)

    for name, entry in LEDGER.items():
        mine = [row for row in rows if row["user"] == f"{name}-user"]
        assert abs(sum(row.get("cpuHours", 0.0) for row in mine) - entry.pods * entry.cpu * entry.ran / 3600) < 1e-9


def test_filters_select(recorded, call):
    assert [line.split()[0] for line in call("vacct --state Failed").out.splitlines()] == ["NAME", "beta"]
    assert [line.split()[0] for line in call("vacct -q research").out.splitlines()] == ["NAME", "gamma"]
    assert [line.split()[0] for line in call("vacct -u alpha-user").out.splitlines()] == ["NAME", "alpha"]
    assert call("vacct --until 2020-01-01").out == "No resources found\n"


def test_a_job_that_is_gone_is_viewed_from_the_history(recorded, call):
    story, view = call("vcctl job history gamma").out, call("vcctl job view -N gamma").out

    assert story == view
    assert "gamma-user" in story
    assert story.count("Succeeded") == 3
    assert call("vcctl job view -N nothing").code == 255


def test_the_export_is_a_workload_of_the_simulator(recorded, call, tmp_path):
    path = tmp_path / "past.jsonl"
    path.write_text(call("vacct -o jsonl").out)
    trace = read_history(path)

    assert {job.name: job.run_time for job in trace.jobs} == {name: float(entry.ran) for name, entry in LEDGER.items()}
