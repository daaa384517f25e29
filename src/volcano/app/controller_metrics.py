"""What the controllers are measured by, under Volcano's names: read off the changes that their Mirror sees.

Decisions stay pure this way. Counters keep their names, so they are gauges that only rise.
"""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Gauge, Histogram

from volcano.api.batch import Job, Phase
from volcano.api.core import Pod
from volcano.api.meta import Key
from volcano.api.scheduling import Queue
from volcano.api.sources import JobFlowSource
from volcano.machinery.metrics import SUBSYSTEM, exponential
from volcano.machinery.world import Change, Mirror

PHASES: Final = ("inqueue", "pending", "running", "unknown", "completed")
OF_JOB: Final = ("job_name", "queue_name")
LATENCY: Final = "controller_job_to_pod_creation_latency_milliseconds"


class ControllerMetrics:
    """Follows a Mirror from the moment it is told to; what is there already is not counted."""

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
            LATENCY.replace("_", " "),
            subsystem=SUBSYSTEM,
            registry=self.registry,
            buckets=exponential(50, 60000, 30),
        )
        self._counted: dict[Key, set[tuple[Gauge, tuple[str, str]]]] = {}
        self._mirror: Mirror | None = None

    def _gauge(self, name: str, *labels: str) -> Gauge:
        return Gauge(name, name.replace("_", " "), labels, subsystem=SUBSYSTEM, registry=self.registry)

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
        old, new = change.old, change.new
        if new is None:
            for gauge, labels in self._counted.pop(change.object.key, ()):
                gauge.remove(*labels)
            return
        phase = new.status.state.phase
        if old is None or old.status.state.phase == phase or phase not in (Phase.COMPLETED, Phase.FAILED):
            return
        gauge = self._completed if phase == Phase.COMPLETED else self._failed
        labels = (str(new.key), new.spec.queue)
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
        begun, made = job.metadata.creation_timestamp, pod.metadata.creation_timestamp
        if begun is not None and made is not None:
            self._latency.observe(max(0.0, (made - begun).total_seconds() * 1000))
