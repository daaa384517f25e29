"""WaitingCase: a PodGroup in question, with the snapshot and the rules on which its explanation is tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import msgspec

from volcano.api.core import Pod
from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.explain.causes_preemption import EvictionObstacle
from volcano.scheduler.explain.empty_cluster import empty_cluster, unplaced
from volcano.scheduler.explain.trials import TrialRules, TriedJob
from volcano.scheduler.model import Job, Status


@dataclass(slots=True, frozen=True)
class Planned:
    """What the Job behind a PodGroup plans: replicas per task, and the tasks that start only after others."""

    replicas: Mapping[str, int] = field(default_factory=dict)
    after: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass
class WaitingCase:
    """A PodGroup in question: `subject` has its pods that are not placed, also those that do not exist yet."""

    snapshot: Snapshot
    rules: TrialRules
    subject: TriedJob
    planned: Planned = field(default_factory=Planned)
    obstacle: EvictionObstacle | None = None  # found while the room was looked at
    hopeless: Sequence[Job] = ()  # which were let in before it and can never run
    configuration: str = ""  # volcano-scheduler.conf as it is in force
    is_rest: bool = False  # its minimum runs; the question is what one more pod waits for
    is_eventual: bool = False  # the cluster is emptied: what ends by itself is no obstacle
    emptied_pods: int = 0  # of its pods that existed before the cluster was emptied

    @property
    def job(self) -> Job | None:
        return self.snapshot.jobs.get(self.subject.id)

    @property
    def placed(self) -> list[Pod]:
        job = self.job
        return [task.pod for task in job.tasks.values() if task.status != Status.PENDING] if job is not None else []

    @cached_property
    def empty(self) -> Snapshot:
        return empty_cluster(self.snapshot)

    @property
    def ready(self) -> int:
        job = self.job
        return job.counts.ready if job is not None else 0

    @property
    def existing(self) -> int:
        """How many of its pods have been created."""
        return sum(pod.uid in self.snapshot.tasks for pod in self.subject.pods) + len(self.placed) + self.emptied_pods

    def eventually(self) -> WaitingCase:
        """The same case when everything else has ended and its scheduling gates are lifted."""
        alone = without_gates(unplaced(self.subject, self.placed))
        return WaitingCase(
            self.empty,
            self.rules,
            alone,
            self.planned,
            configuration=self.configuration,
            is_eventual=True,
            emptied_pods=self.existing,
        )


def without_gates(subject: TriedJob) -> TriedJob:
    """Scheduling gates are lifted by those who set them, so they are no reason to change the job."""
    if not any(pod.spec.scheduling_gates for pod in subject.pods):
        return subject
    pods = [
        msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, scheduling_gates=[]))
        for pod in subject.pods
    ]
    return replace(subject, pods=tuple(pods))


def subject_of(job: Job) -> TriedJob:
    assert job.group is not None
    waiting = sorted(job.by_status[Status.PENDING].values(), key=lambda task: task.uid)
    return TriedJob(job.group, tuple(task.pod for task in waiting))
