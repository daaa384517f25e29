"""The Job with its pods, PodGroup, queue and Commands, as one reconcile reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cached_property
from typing import Final

from volcano.api.batch import (
    JOB_VERSION_KEY,
    OUT_OF_SYNC_KEY,
    PARTITION_KEY,
    TASK_SPEC_KEY,
    Job,
    Phase,
    TaskSpec,
)
from volcano.api.bus import Command, command_order
from volcano.api.core import FINISHED_POD_PHASES, Pod, Service
from volcano.api.meta import Key
from volcano.api.scheduling import PodGroup, Queue
from volcano.controllers.job.records import Records
from volcano.controllers.job.states import phase_from
from volcano.machinery.world import World

DEFAULT_TASK: Final = "default"
TARGET_INDEX: Final = "target"  # Commands by "namespace/job"


class JobPod:
    """A pod of the job, with what its annotations say read once."""

    __slots__ = ("is_deleting", "marked", "name", "partition", "phase", "pod", "task", "version")

    def __init__(self, pod: Pod) -> None:
        annotations = pod.metadata.annotations
        self.pod = pod
        self.name = pod.metadata.name
        self.task = annotations.get(TASK_SPEC_KEY) or DEFAULT_TASK
        self.version = version_of(pod)
        self.partition = pod.metadata.labels.get(PARTITION_KEY, "")
        self.marked = OUT_OF_SYNC_KEY in annotations
        self.is_deleting = pod.metadata.deletion_timestamp is not None
        self.phase = pod.status.phase or "Pending"

    @property
    def is_finished(self) -> bool:
        return self.phase in FINISHED_POD_PHASES


def version_of(pod: Pod) -> int:
    """The version of the job that made the pod; one without a number belongs to none."""
    text = pod.metadata.annotations.get(JOB_VERSION_KEY, "")
    return int(text) if text.isdecimal() and len(text) <= 10 else -1


def task_name(task: TaskSpec) -> str:
    return task.name or DEFAULT_TASK


def pod_name(job: Job, task: TaskSpec, index: int) -> str:
    return f"{job.name}-{task_name(task)}-{index}"


def partition_of(task: TaskSpec, index: int) -> str:
    """The partition of a pod; empty for a task that is not divided."""
    if task.partition_policy is None:
        return ""
    size = task.partition_policy.partition_size
    return str(index // size if size > 0 else 0)


def group_name(job: Job) -> str:
    return f"{job.name}-{job.uid}"


class JobView:
    """Everything a decision about one job reads."""

    def __init__(self, job: Job, world: World) -> None:
        self.job, self.world = job, world
        self.phase: Phase = phase_from(job.status.state.phase)
        self.records = Records(job.status.controlled_resources)

    @property
    def now(self) -> datetime:
        return self.world.now

    @property
    def moment(self) -> datetime:
        """Now as objects record it, in whole seconds."""
        return self.world.now.replace(microsecond=0)

    @cached_property
    def members(self) -> list[JobPod]:
        """Pods that this very Job made; those of an older job of the same name are not its own."""
        uid, pods = self.job.uid, self.world.where(Pod, "job", str(self.job.key))
        return [
            JobPod(pod) for pod in pods if any(o.controller and o.uid == uid for o in pod.metadata.owner_references)
        ]

    @cached_property
    def leftovers(self) -> list[str]:
        """Pods and Services of an older job of the same name, which are being deleted."""
        names = (f"{self.job.name}{suffix}" for suffix in ("", "-head-svc"))
        services = (self.world.get(Service, Key(self.job.namespace, name)) for name in names)
        objects = [*self.world.where(Pod, "job", str(self.job.key)), *(each for each in services if each is not None)]
        owners = ((each.name, each.controller) for each in objects)
        return [name for name, owner in owners if owner and owner.kind == "Job" and owner.uid != self.job.uid]

    @cached_property
    def by_name(self) -> Mapping[str, JobPod]:
        return {member.name: member for member in self.members}

    @cached_property
    def by_task(self) -> Mapping[str, list[JobPod]]:
        tasks: dict[str, list[JobPod]] = {task_name(task): [] for task in self.job.spec.tasks}
        for member in self.members:
            tasks.setdefault(member.task, []).append(member)
        return tasks

    @cached_property
    def group(self) -> PodGroup | None:
        """The job's PodGroup; older releases named it after the job alone."""
        found = self.world.get(PodGroup, Key(self.job.namespace, group_name(self.job)))
        if found is not None:
            return found
        old = self.world.get(PodGroup, self.job.key)
        return old if old is not None and any(o.uid == self.job.uid for o in old.metadata.owner_references) else None

    @cached_property
    def queue(self) -> Queue | None:
        return self.world.get(Queue, Key("", self.job.spec.queue))

    @cached_property
    def commands(self) -> list[Command]:
        """The Commands for the job, oldest first."""
        return sorted(self.world.where(Command, TARGET_INDEX, str(self.job.key)), key=command_order)

    @cached_property
    def total(self) -> int:
        return sum(task.replicas for task in self.job.spec.tasks)

    def is_old(self, member: JobPod) -> bool:
        """Made before the last kill of the whole job."""
        return member.version < self.job.status.version

    def name_is_taken(self, name: str) -> bool:
        """By a pod of this job, of an older job of the same name, or of another owner."""
        return name in self.by_name or self.world.get(Pod, Key(self.job.namespace, name)) is not None

    def slots(self) -> Iterator[tuple[TaskSpec, int, str]]:
        """Every pod that the spec asks for: its task, its index and its name."""
        for task in self.job.spec.tasks:
            for index in range(task.replicas):
                yield task, index, pod_name(self.job, task, index)

    @cached_property
    def wanted(self) -> frozenset[str]:
        return frozenset(name for _, _, name in self.slots())
