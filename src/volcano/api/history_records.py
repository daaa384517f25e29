"""What is kept about jobs after their objects are gone: the records of the history, as stored and as sent to clients.

`volcano.history` fills and reads them; the command line and the dashboard show them. Times are UTC.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from volcano.api.batch import STOPPED_PHASES, Phase
from volcano.api.meta import Model

HISTORY_PATH: Final = "/volcano/history/v1"
"""Where the read API is: below the API server of the embedded system, or at the address of `volcano history`."""
HISTORY_SERVICE: Final = "volcano-history"
VOLCANO_JOB: Final = "Job"
"""`kind` of a Volcano Job. A PodGroup that no Volcano Job made has `PodGroup`, or the kind of what owns it."""
BATCH_JOB: Final = "batch/Job"
DELETED: Final = "Deleted"
"""The phase of a job that was deleted before it had finished."""
ENDED_PHASES: Final = (*STOPPED_PHASES, DELETED)
WAITING, RUNNING, ENDED = "waiting", "running", "ended"
"""The three states of a job that lists are filtered by."""
PHASES_OF_STATE: Final = {
    WAITING: ("", Phase.PENDING, "Inqueue"),
    RUNNING: (
        Phase.RUNNING,
        Phase.RESTARTING,
        Phase.COMPLETING,
        Phase.ABORTING,
        Phase.TERMINATING,
        "Unknown",
    ),
    ENDED: ENDED_PHASES,
}


class RoleRecord(Model, frozen=True):
    """One task of a job: how many pods, and what each requests."""

    name: str = ""
    count: int = 0
    requests: dict[str, str] = {}
    node_selector: dict[str, str] = {}


class JobRecord(Model, frozen=True, kw_only=True):
    """One run of a job: one object, from its creation to its end; a job created again under its name is another."""

    uid: str
    kind: str = VOLCANO_JOB
    namespace: str = ""
    name: str = ""
    queue: str = ""
    user: str = ""  # who submitted it; empty where that is not recorded
    priority_class: str = ""
    scheduler: str = ""
    owner: str = ""  # `JobFlow/name`, `CronJob/name`; empty for a job that somebody submitted
    labels: dict[str, str] = {}
    roles: list[RoleRecord] = []
    pods: int = 0
    min_available: int = 0
    requests: dict[str, str] = {}  # of all pods together
    cpu_milli: int = 0
    memory_bytes: int = 0
    gpu_milli: int = 0
    estimate_seconds: float | None = None
    phase: str = ""
    reason: str = ""
    message: str = ""
    retries: int = 0
    created: datetime
    started: datetime | None = None  # first entered Running
    ended: datetime | None = None
    gone: datetime | None = None  # its object was deleted
    end_is_known: bool = True  # False: it vanished while the recorder was away, and `ended` is when that was noticed

    @property
    def state(self) -> str:
        return next((state for state, phases in PHASES_OF_STATE.items() if self.phase in phases), RUNNING)

    def waited(self, now: datetime) -> timedelta:
        """From submission to the first start, or to now."""
        return max((self.started or self.ended or now) - self.created, timedelta(0))

    def ran(self, now: datetime) -> timedelta:
        """From the first start to the end, or to now."""
        return max((self.ended or now) - self.started, timedelta(0)) if self.started else timedelta(0)


class PastPod(Model, frozen=True, kw_only=True):
    """One pod of a job: an attempt of a role's index on one node. Its room is taken from `bound` to `ended`."""

    uid: str
    job_uid: str = ""
    group_name: str = ""  # its PodGroup, while the job that it belongs to is not known yet
    namespace: str = ""
    name: str = ""
    role: str = ""
    index: int = 0
    attempt: int = 0
    node: str = ""
    phase: str = ""
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    restarts: int = 0
    requests: dict[str, str] = {}
    cpu_milli: int = 0
    memory_bytes: int = 0
    gpu_milli: int = 0
    created: datetime
    bound: datetime | None = None
    started: datetime | None = None
    ended: datetime | None = None
    gone: datetime | None = None
    used_cpu_milli: int | None = None  # on average while it was measured
    used_memory_bytes: int | None = None
    measured_seconds: float = 0.0


class StateRecord(Model, frozen=True):
    """From `at` on, a job was in this phase, for this reason."""

    job_uid: str
    at: datetime
    phase: str = ""
    reason: str = ""
    message: str = ""


class EvictionRecord(Model, frozen=True, kw_only=True):
    """A pod that was evicted: by whom (scheduler, taint, node, user, cluster, other), why, and for whom."""

    pod_uid: str
    job_uid: str = ""
    at: datetime
    namespace: str = ""
    pod: str = ""
    node: str = ""
    by: str = ""
    reason: str = ""
    message: str = ""
    preemptor: str = ""


class QueueSample(Model, frozen=True):
    """A queue from `at` until its next sample."""

    at: datetime
    queue: str
    parent: str = ""
    state: str = ""
    weight: int = 1
    allocated: dict[str, str] = {}
    deserved: dict[str, str] = {}
    guarantee: dict[str, str] = {}
    capability: dict[str, str] = {}
    pending: int = 0
    inqueue: int = 0
    running: int = 0
    gone: bool = False


class NodeSample(Model, frozen=True):
    """A node from `at` until its next sample; `requested` is of all pods that were bound to it and had not ended."""

    at: datetime
    node: str
    allocatable: dict[str, str] = {}
    requested: dict[str, str] = {}
    pods: int = 0
    ready: bool = True
    schedulable: bool = True
    gone: bool = False


class GapRecord(Model, frozen=True):
    """A time in which this kind was not watched, and changes may be missing."""

    kind: str
    begin: datetime
    end: datetime
    why: str = ""


class JobPage(Model, frozen=True):
    """Part of a list, and how many there are in all."""

    jobs: list[JobRecord] = []
    total: int = 0
    offset: int = 0


class JobCount(Model, frozen=True):
    """How many jobs of a group are in a phase."""

    group: str
    phase: str
    count: int


class JobStory(Model, frozen=True):
    """One job with all that is known of it."""

    job: JobRecord
    states: list[StateRecord] = []
    pods: list[PastPod] = []
    evictions: list[EvictionRecord] = []
    gaps: list[GapRecord] = []  # that overlap its life


class UsageRow(Model, frozen=True):
    """What a group used: requested amounts times the time in which pods held their nodes.

    `used_…` and `measured_…` cover the time in which use was measured; their quotient is the efficiency.
    """

    day: str = ""  # `2026-01-31`, where the report is by day
    queue: str = ""
    user: str = ""
    namespace: str = ""
    jobs: int = 0  # submitted in this time
    pods: int = 0  # that held a node in this time
    cpu_hours: float = 0.0
    memory_gib_hours: float = 0.0
    gpu_hours: float = 0.0
    started_jobs: int = 0  # started in this time; the waits are theirs
    mean_wait_seconds: float = 0.0
    longest_wait_seconds: float = 0.0
    used_cpu_hours: float = 0.0
    measured_cpu_hours: float = 0.0
    used_memory_gib_hours: float = 0.0
    measured_memory_gib_hours: float = 0.0

    @property
    def cpu_efficiency(self) -> float | None:
        return self.used_cpu_hours / self.measured_cpu_hours if self.measured_cpu_hours else None

    @property
    def memory_efficiency(self) -> float | None:
        return self.used_memory_gib_hours / self.measured_memory_gib_hours if self.measured_memory_gib_hours else None


class PastMoment(Model, frozen=True):
    """Everything at a moment: counts of jobs by phase, queues and nodes, and the gaps at that moment."""

    at: datetime
    jobs: list[JobCount] = []
    queues: list[QueueSample] = []
    nodes: list[NodeSample] = []
    gaps: list[GapRecord] = []
