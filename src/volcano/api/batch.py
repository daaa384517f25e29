"""batch.volcano.sh/v1alpha1: Job and CronJob, with the words of their lifecycle."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final

from volcano.api.meta import Model, ObjectReference, Resource
from volcano.api.scheduling import NetworkTopology
from volcano.api.schema_annotations import (
    ClaimSpec,
    Count,
    DnsLabel,
    Duration,
    Int32,
    Name253,
    PodTemplate,
    Subdomain,
    TemplateMetadata,
    wire,
)

JOB_NAME_KEY: Final = "volcano.sh/job-name"
JOB_NAMESPACE_KEY: Final = "volcano.sh/job-namespace"
JOB_VERSION_KEY: Final = "volcano.sh/job-version"
JOB_RETRY_KEY: Final = "volcano.sh/job-retry-count"
QUEUE_KEY: Final = "volcano.sh/queue-name"
TASK_SPEC_KEY: Final = "volcano.sh/task-spec"
TASK_INDEX_KEY: Final = "volcano.sh/task-index"
PARTITION_KEY: Final = "volcano.sh/partition-id"
TEMPLATE_UID_KEY: Final = "volcano.sh/template-uid"
OUT_OF_SYNC_KEY: Final = "volcano.sh/controller-out-of-sync"


class Phase(StrEnum):
    """The phases of a Job."""

    NONE = ""
    PENDING = "Pending"
    ABORTING = "Aborting"
    ABORTED = "Aborted"
    RUNNING = "Running"
    RESTARTING = "Restarting"
    COMPLETING = "Completing"
    COMPLETED = "Completed"
    TERMINATING = "Terminating"
    TERMINATED = "Terminated"
    FAILED = "Failed"


PHASES: Final = tuple(phase for phase in Phase if phase)
FINISHED_PHASES: Final = (Phase.COMPLETED, Phase.FAILED, Phase.TERMINATED)
"""A Job stays in these for good: its time to live runs, and no command changes it."""
STOPPED_PHASES: Final = (*FINISHED_PHASES, Phase.ABORTED)
"""A Job makes no progress in these by itself; an aborted one goes on when it is resumed."""


MAX_PODS_PER_JOB: Final = 100_000
"""Of all tasks together. Every decision about a Job looks at each of its pods, so that one with billions of them would
stop its controller; Kubernetes itself is made for 150,000 pods in a whole cluster."""


class BusEvent(StrEnum):
    """What happened to a job, as policies name it."""

    ANY = "*"
    POD_PENDING = "PodPending"
    POD_RUNNING = "PodRunning"
    POD_FAILED = "PodFailed"
    POD_EVICTED = "PodEvicted"
    JOB_UNKNOWN = "Unknown"
    TASK_COMPLETED = "TaskCompleted"
    OUT_OF_SYNC = "OutOfSync"
    COMMAND_ISSUED = "CommandIssued"
    JOB_UPDATED = "JobUpdated"
    TASK_FAILED = "TaskFailed"


class Action(StrEnum):
    """What is done about it."""

    ABORT_JOB = "AbortJob"
    RESTART_JOB = "RestartJob"
    RESTART_TASK = "RestartTask"
    RESTART_POD = "RestartPod"
    RESTART_PARTITION = "RestartPartition"
    TERMINATE_JOB = "TerminateJob"
    COMPLETE_JOB = "CompleteJob"
    RESUME_JOB = "ResumeJob"
    SYNC_JOB = "SyncJob"
    ENQUEUE_JOB = "EnqueueJob"
    SYNC_QUEUE = "SyncQueue"
    OPEN_QUEUE = "OpenQueue"
    CLOSE_QUEUE = "CloseQueue"


class LifecyclePolicy(Model, frozen=True):
    action: str = ""
    event: Annotated[str, wire(enum=tuple(BusEvent))] = ""
    events: list[Annotated[str, wire(enum=tuple(BusEvent))]] = []
    exit_code: Int32 | None = None
    timeout: Duration | None = None


class JobVolume(Model, frozen=True):
    mount_path: Annotated[str, wire(minLength=1, pattern="^[^:]*$", required=True)] = ""
    volume_claim_name: Name253 = ""
    volume_claim: ClaimSpec | None = None


class DependsOn(Model, frozen=True):
    name: list[str] = []
    iteration: str = ""


class PartitionPolicy(Model, frozen=True):
    total_partitions: Annotated[int, wire(minimum=1, format="int32", required=True)] = 0
    partition_size: Annotated[int, wire(minimum=1, format="int32", required=True)] = 0
    min_partitions: Annotated[int, wire(minimum=0, format="int32", default=0)] = 0
    network_topology: NetworkTopology | None = None


class TaskSpec(Model, frozen=True):
    name: DnsLabel = ""
    replicas: Count = 0
    min_available: Count | None = None
    template: PodTemplate = {}
    policies: list[LifecyclePolicy] = []
    topology_policy: Annotated[str, wire(enum=("none", "best-effort", "restricted", "single-numa-node"))] = ""
    max_retry: Count = 0
    depends_on: DependsOn | None = None
    partition_policy: PartitionPolicy | None = None


class JobSpec(Model, frozen=True):
    scheduler_name: Annotated[str, wire(maxLength=63)] = ""
    min_available: Count = 0
    volumes: list[JobVolume] = []
    tasks: Annotated[list[TaskSpec], wire(minItems=1)] = []
    policies: list[LifecyclePolicy] = []
    plugins: dict[str, list[str]] = {}
    running_estimate: Duration | None = None
    queue: Annotated[Subdomain, wire(default="default")] = "default"
    max_retry: Annotated[int, wire(minimum=0, format="int32", default=3)] = 3
    ttl_seconds_after_finished: Count | None = None
    priority_class_name: Subdomain = ""
    min_success: Annotated[int, wire(minimum=1, format="int32")] | None = None
    network_topology: NetworkTopology | None = None


class JobState(Model, frozen=True):
    phase: Annotated[str, wire(enum=PHASES)] = ""
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


class TaskState(Model, frozen=True):
    phase: dict[str, Int32] = {}


class JobCondition(Model, frozen=True):
    status: Annotated[str, wire(enum=PHASES, required=True)] = ""
    last_transition_time: datetime | None = None


class JobStatus(Model, frozen=True):
    state: JobState = JobState()
    min_available: Count = 0
    task_status_count: dict[str, TaskState] = {}
    pending: Count = 0
    running: Count = 0
    succeeded: Count = 0
    failed: Count = 0
    terminating: Count = 0
    unknown: Count = 0
    version: Count = 0
    retry_count: Count = 0
    running_duration: Duration | None = None
    controlled_resources: dict[str, str] = {}
    conditions: list[JobCondition] = []


class Job(Resource, frozen=True):
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class JobTemplateObject(Model, frozen=True):
    """The template inside a CronJob: metadata of which labels and annotations are copied, and a JobSpec."""

    metadata: TemplateMetadata | None = None
    spec: JobSpec = JobSpec()


class CronJobSpec(Model, frozen=True):
    schedule: Annotated[str, wire(required=True)] = ""
    time_zone: str | None = None
    starting_deadline_seconds: Annotated[int, wire(minimum=0, format="int64")] | None = None
    concurrency_policy: Annotated[str, wire(enum=("Allow", "Forbid", "Replace"), default="Allow")] = "Allow"
    suspend: Annotated[bool, wire(default=False)] | None = None
    job_template: Annotated[JobTemplateObject, wire(required=True)] = JobTemplateObject()
    successful_jobs_history_limit: Annotated[int, wire(minimum=0, format="int32", default=3)] | None = None
    failed_jobs_history_limit: Annotated[int, wire(minimum=0, format="int32", default=1)] | None = None


class CronJobStatus(Model, frozen=True):
    active: Annotated[list[ObjectReference], wire(**{"x-kubernetes-list-type": "atomic"})] = []
    last_schedule_time: datetime | None = None
    last_successful_time: datetime | None = None


class CronJob(Resource, frozen=True):
    spec: CronJobSpec = CronJobSpec()
    status: CronJobStatus = CronJobStatus()
