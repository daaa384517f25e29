"""Whether `volcano up` holds a rate of pods: ten times 300,000 pods a day for ten minutes, unless told otherwise.

python benchmarks/pods_per_day.py [--pods-per-day 3000000] [--seconds 600] [--nodes 1000] [--run-time 20] [--json F]

Gangs of 1 to 32 pods are submitted at fixed times, however busy the system is, and are deleted when they have ended.
"""

from __future__ import annotations

import argparse
import http.client
import random
import resource
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.running_server import Client
from tests.system.real_system import JOBS, PODS, Up

SIZES = (1, 1, 2, 4, 8, 16, 32)
SECONDS_PER_DAY = 86_400
JOB_LABEL = "volcano.sh/job-name"
WATCH_SECONDS = 240
"""A watch is opened again after so long; what happened meanwhile is in its list."""


class PodState(msgspec.Struct, frozen=True):
    phase: str = ""


class PodMeta(msgspec.Struct, frozen=True):
    name: str = ""
    labels: dict[str, str] = {}


class PodSeen(msgspec.Struct, frozen=True):
    metadata: PodMeta = PodMeta()
    status: PodState = PodState()


class PodEvent(msgspec.Struct):
    type: str
    object: PodSeen


@dataclass
class SubmittedJob:
    pods: int
    submitted: float
    running: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)
    all_ran: float | None = None


class PodWatcher(threading.Thread):
    """Follows the pods and notes when each runs for the first time."""

    def __init__(self, api: Client, jobs: dict[str, SubmittedJob]) -> None:
        super().__init__(daemon=True)
        self._api, self._jobs = api, jobs
        self._decode = msgspec.json.Decoder(PodEvent)
        self.ran, self.ended = 0, 0
        self.stopping = False

    def run(self) -> None:
        while not self.stopping:
            try:
                self._follow()
            except (OSError, http.client.HTTPException):
                if not self.stopping:
                    raise

    def _follow(self) -> None:
        listed = self._api.get(PODS).body
        for item in listed["items"]:
            self._see(msgspec.convert(item, PodSeen))
        query = {
            "watch": "true",
            "resourceVersion": listed["metadata"]["resourceVersion"],
            "timeoutSeconds": WATCH_SECONDS,
        }
        connection = self._api.connect(timeout=WATCH_SECONDS + 30)
        answer = self._api._send(connection, "GET", PODS, None, query, None, "application/json")
        for line in iter(answer.readline, b""):
            event = self._decode.decode(line)
            if event.type == "ERROR":
                break
            self._see(event.object)
        connection.close()

    def _see(self, pod: PodSeen) -> None:
        job = self._jobs.get(pod.metadata.labels.get(JOB_LABEL, ""))
        if job is None or pod.status.phase not in ("Running", "Succeeded", "Failed"):
            return
        if pod.metadata.name not in job.running:
            job.running.add(pod.metadata.name)
            self.ran += 1
            if len(job.running) == job.pods:
                job.all_ran = time.monotonic()
        if pod.status.phase != "Running" and pod.metadata.name not in job.ended:
            job.ended.add(pod.metadata.name)
            self.ended += 1


def a_job(name: str, pods: int, run_time: float) -> dict[str, Any]:
    container = {"name": "main", "image": "any", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    metadata = {"annotations": {"simulation.volcano.sh/duration": f"{run_time}s"}}
    template = {"metadata": metadata, "spec": {"restartPolicy": "Never", "containers": [container]}}
    task = {"name": "worker", "replicas": pods, "template": template}
    spec = {"minAvailable": pods, "schedulerName": "volcano", "ttlSecondsAfterFinished": 5, "tasks": [task]}
    return {"metadata": {"name": name}, "spec": spec}


class RateCampaign:
    def __init__(self, up: Up, pods_per_day: float, run_time: float) -> None:
        self.rate, self.run_time = pods_per_day / SECONDS_PER_DAY, run_time
        self.up, self.api = up, up.api
        self.jobs: dict[str, SubmittedJob] = {}
        self.watcher = PodWatcher(self.api, self.jobs)
        self.submits: list[float] = []
        self.backlog: list[int] = []
        self.late = 0.0
        self.submitted = 0
        self.figures: dict[str, Any] = {}

    def run(self, seconds: float) -> None:
        self.watcher.start()
        draws, connection = random.Random(1), self.api.connect()
        began, sampled = time.monotonic(), 0
        while (passed := time.monotonic() - began) < seconds:
            due = self.submitted / self.rate
            if passed < due:
                time.sleep(min(due - passed, 0.2))
            else:
                self.late = max(self.late, passed - due)
                self._submit(connection, draws.choice(SIZES))
            if int(passed) > sampled:
                sampled = int(passed)
                self.backlog.append(self.submitted - self.watcher.ran)
                if sampled % 30 == 0:
                    print(f"{sampled} s: {self.submitted} pods submitted, {self.watcher.ran} ran, "
                          f"{self.watcher.ended} ended, memory {self._memory():.0f} MiB", flush=True)  # fmt: skip
        self._tell(seconds, began)

    def _submit(self, connection: Any, pods: int) -> None:
        name = f"job-{len(self.jobs)}"
        began = time.monotonic()
        self.jobs[name] = SubmittedJob(pods, began)
        answer = self.api._send(
            connection, "POST", JOBS, a_job(name, pods, self.run_time), None, None, "application/json"
        )
        text = answer.read()
        assert answer.status == 201, text
        self.submits.append(time.monotonic() - began)
        self.submitted += pods

    def _tell(self, seconds: float, began: float) -> None:
        ran, ended = self.watcher.ran, self.watcher.ended
        end = time.monotonic() + 60
        while self.watcher.ran < self.submitted and time.monotonic() < end:
            time.sleep(0.1)
        self.watcher.stopping = True
        caught_up = time.monotonic() - began - seconds
        starts = sorted(job.all_ran - job.submitted for job in self.jobs.values() if job.all_ran is not None)
        process = self.up.process
        assert process is not None
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        cpu = (int(fields[11]) + int(fields[12])) / 100
        own = resource.getrusage(resource.RUSAGE_SELF)
        print(f"{seconds:g} s at {self.rate:.1f} pods/s ({self.rate * SECONDS_PER_DAY:,.0f} a day): "
              f"{len(self.jobs)} jobs, {self.submitted} pods, {ran} ran and {ended} ended in that time")  # fmt: skip
        print(f"rate held: {ran / seconds:.1f} pods/s; the last of them ran {caught_up:.1f} s after the end; "
              f"{self.submitted - self.watcher.ran} never ran")  # fmt: skip
        print(f"submit to answer: {quantiles(sorted(self.submits))}; the submitter was at most {self.late:.2f} s late")
        print(f"submit to all pods of the job Running: {quantiles(starts)}")
        print(f"backlog (submitted, not yet run), each second: median {sorted(self.backlog)[len(self.backlog) // 2]}, "
              f"largest {max(self.backlog)}, last {self.backlog[-1]} pods")  # fmt: skip
        print(f"volcano up: {cpu:.0f} s of processor time ({cpu / seconds:.0%} of one core), {self._memory():.0f} MiB; "
              f"this program: {own.ru_utime + own.ru_stime:.0f} s")  # fmt: skip
        self.figures = {
            "asked": self.rate,
            "held": ran / seconds,
            "starts": [at_share(starts, share) for share in (0.5, 0.95, 0.99)],
            "largest_backlog": max(self.backlog),
            "cores": cpu / seconds,
        }

    def _memory(self) -> float:
        assert self.up.process is not None
        status = Path(f"/proc/{self.up.process.pid}/status").read_text()
        return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))) / 1024


def at_share(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def quantiles(ordered: list[float]) -> str:
    at = [at_share(ordered, share) * 1e3 for share in (0.5, 0.95, 0.99)]
    return f"p50 {at[0]:.0f} ms, p95 {at[1]:.0f} ms, p99 {at[2]:.0f} ms, max {ordered[-1] * 1e3:.0f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods-per-day", type=float, default=3_000_000)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--run-time", type=float, default=20.0, help="of each pod, in seconds")
    parser.add_argument("--json", type=Path, help="also write the figures there")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="volcano-rate-") as folder:
        Path(folder).chmod(0o755)
        up = Up(Path(folder), "--simulated-nodes", str(asked.nodes))
        try:
            up.start()
            campaign = RateCampaign(up, asked.pods_per_day, asked.run_time)
            campaign.run(asked.seconds)
            if asked.json is not None:
                asked.json.write_bytes(msgspec.json.encode(campaign.figures))
        finally:
            up.clean_up()


if __name__ == "__main__":
    main()
