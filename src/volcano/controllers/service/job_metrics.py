"""The controllers' metrics, under Volcano's names, computed from the changes of their Mirror.

Decisions stay pure this way. Counters keep their names, so they are gauges that only rise.
"""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Gauge, Histogram

from volcano.api.batch import Job
from volcano.api.core import Pod
from volcano.api.jobs.sources import JobFlowSource
from volcano.api.meta import Key
from volcano.api.scheduling import Queue
from volcano.controllers.job.measures import creation_latency, ended
from volcano.machinery.metric_families import SUBSYSTEM, exponential_buckets
from volcano.machinery.world import Change, Mirror

PHASES: Final = ("inqueue", "pending", "running", "unknown", "completed")
OF_JOB: Final = ("job_name", "queue_name")
LATENCY: Final = "controller_job_to_pod_creation_latency_milliseconds"

HELP: Final = {
    "job_completed_phase_count": "Jobs that have completed since the start.",
    "job_failed_phase_count": "Jobs that have failed since the start.",
    **{f"queue_pod_group_{phase}_count": f"PodGroups of the queue that are {phase}." for phase in PHASES},
    "jobflow_succeed_phase_count": "JobFlows that have succeeded since the start.",
    "jobflow_failed_phase_count": "JobFlows that have failed since the start.",
    LATENCY: "Time from a Job's creation to the creation of each of its pods.",
}


class ControllerMetrics:
    """Counts the changes of a Mirror from `follow` on; objects that exist already are not counted."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry if registry is not None else CollectorRegistry()
        self._completed = self._gauge("job_completed_phase_count", *OF_JOB)
        self._failed = self._gauge("job_failed_phase_count", *OF_JOB)
        self._groups = {phase: self._gauge(f"queue_pod_group_{phase}_count", "queue_name") for phase in PHASES}
        self._flows = {
            "Succeed": self._gauge("jobflow_succeed_phase_count", "jobflow_namespace"),
            "Failed": self._gauge("jobflow_failed_phase_count", "jobflow_namespace"),
        }
        self._latency = Histogram(
            LATENCY,
            HELP[LATENCY],
            subsystem=SUBSYSTEM,
            registry=self.registry,
            buckets=exponential_buckets(50, 60000, 30),
        )
        self._counted: dict[Key, set[tuple[Gauge, tuple[str, str]]]] = {}
        self._mirror: Mirror | None = None

    def _gauge(self, name: str, *labels: str) -> Gauge:
        return Gauge(name, HELP[name], labels, subsystem=SUBSYSTEM, registry=self.registry)

    def follow(self, mirror: Mirror) -> None:
        """Call once the Mirror is synced: its present objects come as additions, and those are not counted."""
        mirror.listen(Queue, self._queue)
        mirror.listen(Job, self._job)
        mirror.listen(JobFlowSource, self._flow)
        mirror.listen(Pod, self._pod)
        self._mirror = mirror

    def _queue(self, change: Change[Queue]) -> None:
        for phase, gauge in self._groups.items():
            if change.new is not None:
                gauge.labels(change.new.name).set(getattr(change.new.status, phase))
            elif change.old is not None:
                gauge.remove(change.old.name)

    def _job(self, change: Change[Job]) -> None:
        new = change.new
        if new is None:
            for gauge, labels in self._counted.pop(change.object.key, ()):
                gauge.remove(*labels)
            return
        end = ended(change)
        if end is None:
            return
        gauge, labels = self._completed if end.completed else self._failed, (end.job, end.queue)
        gauge.labels(*labels).inc()
        self._counted.setdefault(new.key, set()).add((gauge, labels))

    def _flow(self, change: Change[JobFlowSource]) -> None:
        old, new = change.old, change.new
        if old is None or new is None or old.status.state.phase == new.status.state.phase:
            return
        gauge = self._flows.get(new.status.state.phase)
        if gauge is not None:
            gauge.labels(new.namespace).inc()

    def _pod(self, change: Change[Pod]) -> None:
        """How long after its Job a pod was made."""
        pod, mirror = change.new, self._mirror
        if mirror is None or pod is None or change.old is not None:
            return
        owner = pod.controller
        job = mirror.get(Job, Key(pod.namespace, owner.name)) if owner is not None and owner.kind == "Job" else None
        if job is None or owner is None or job.uid != owner.uid:
            return
        latency = creation_latency(job, change)
        if latency is not None:
            self._latency.observe(latency.total_seconds() * 1000)
