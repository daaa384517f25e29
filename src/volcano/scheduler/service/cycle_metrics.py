"""What a cycle measured and decided, as Volcano's metrics."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from volcano.api.core import Pod
from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.framework.decisions import Decisions
from volcano.scheduler.service.metrics import Metrics

MILLISECONDS_PER_SECOND: Final = 1000.0


class SchedulerMetrics(Metrics):
    def __init__(self) -> None:
        super().__init__()
        self._jobs: set[str] = set()
        self._extensions: dict[str, int] = {}  # job → how many were counted

    def report(self, decisions: Decisions, snapshot: Snapshot, now: datetime) -> None:
        seconds = decisions.seconds
        self.observe("e2e_scheduling_latency_milliseconds", seconds.get("cycle", 0.0) * MILLISECONDS_PER_SECOND)
        self.observe("open_session_duration_milliseconds", seconds.get("open", 0.0) * MILLISECONDS_PER_SECOND)
        for name, spent in seconds.items():
            part, _, plugin = name.partition(" ")
            if plugin:
                stage = "OnSessionOpen" if part == "open" else "OnSessionClose"
                self.observe("plugin_scheduling_latency_milliseconds", spent * MILLISECONDS_PER_SECOND, plugin, stage)
            elif name not in ("open", "cycle", "close"):
                self.observe("action_scheduling_latency_milliseconds", spent * MILLISECONDS_PER_SECOND, name)
        self.set_queues(decisions.gauges, snapshot.queues)
        for (name, labels), by in decisions.counters.items():
            self.count(name, by, *labels)
        self._count_extensions(decisions, snapshot)
        self._report_jobs(decisions, snapshot, now)

    def _count_extensions(self, decisions: Decisions, snapshot: Snapshot) -> None:
        """Every cycle states how often an estimate has been doubled so far; only what is new is counted."""
        for id, times in decisions.estimate_extensions.items():
            job, known = snapshot.jobs.get(id), self._extensions.get(id, 0)
            if job is not None and times > known:
                self.count("estimate_extensions_total", times - known, job.queue)
                self._extensions[id] = times
        if len(self._extensions) > 2 * len(snapshot.jobs) + 64:
            self._extensions = {id: times for id, times in self._extensions.items() if id in snapshot.jobs}

    def _report_jobs(self, decisions: Decisions, snapshot: Snapshot, now: datetime) -> None:
        for bind in decisions.binds:
            job = snapshot.jobs.get(bind.job)
            if job is None:
                continue
            waited = (now - job.created).total_seconds() * MILLISECONDS_PER_SECOND
            labels = (job.name, job.queue, job.namespace)
            self.observe("e2e_job_scheduling_latency_milliseconds", waited)
            self.set("e2e_job_scheduling_duration", waited, *labels)
            self.set("e2e_job_scheduling_start_time", job.created.timestamp(), *labels)
            self.set("e2e_job_scheduling_last_time", now.timestamp(), *labels)
            task = snapshot.tasks.get(bind.uid)
            if task is not None:
                since = (now - task.created).total_seconds() * MILLISECONDS_PER_SECOND
                self.observe("task_scheduling_latency_milliseconds", since, "Assumed")
        gone = self._jobs - snapshot.jobs.keys()
        if gone:
            self.forget_jobs([(job.partition("/")[0], job.partition("/")[2]) for job in gone])
        self._jobs = set(snapshot.jobs)

    def bound(self, pod: Pod, now: datetime, spent: float) -> None:
        self.observe("scheduling_stage_duration_milliseconds", spent * MILLISECONDS_PER_SECOND, "Bind")
        if pod.metadata.creation_timestamp is not None:
            waited = (now - pod.metadata.creation_timestamp).total_seconds() * MILLISECONDS_PER_SECOND
            self.observe("task_scheduling_latency_milliseconds", waited, "Bound")
