"""What users do in a run, by seed: jobs of several kinds, flows, crons, edits of queues, nodes that are cordoned.

Every job is of a kind whose end is known beforehand, whatever happens on the way: with or without faults it must be
reached. Everything fits on the nodes, so that nothing waits for ever.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import msgspec

from volcano.api.batch import Action, BusEvent, Phase
from volcano.api.meta import JSON
from volcano.api.times import timestamp
from volcano.embedded.agent.runtime.simulated_runtime import DURATION, EXIT_CODE
from volcano.machinery.clock import EPOCH
from volcano.testing.faults.chance import Chance, chance_of
from volcano.testing.faults.plan import FAULT_SECONDS
from volcano.testing.faults.promises import NodesKeptInTime

NODE_CPUS: Final = 4
GONE: Final = "gone"
"""The end of a job that is deleted."""
CONFIGURATION: Final = """\
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: {shares}
  - name: nodeorder
"""

FIRST_TIMED_SEED: Final = 1_000_000
"""From this seed on jobs state how long they run, the plugin `easy` promises starts, and some nodes are kept."""
TIMED_CONFIGURATION: Final = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: easy
    arguments:
      easy.order: {order}
      easy.scope: {scope}
      easy.reservations: {reservations}
  - name: gang
- plugins:
  - name: predicates
  - name: capacity
  - name: nodeorder
"""
ESTIMATE_SLACK_SECONDS: Final = 10
LATE_JOBS: Final = 6
LATE_JOBS_BEGIN_SECONDS: Final = 155.0
LATE_JOBS_END_SECONDS: Final = 200.0
"""When the faults have been over for half a minute, so that starts are promised while nothing goes wrong."""
WINDOW_BEGIN_SECONDS: Final = 210.0
WINDOW_SECONDS: Final = 75.0


class JobCase(msgspec.Struct, frozen=True):
    """A job, and the ends that it may have."""

    name: str
    ends: frozenset[str]
    max_retry: int = 3


class UserRequest(msgspec.Struct, frozen=True):
    """One request of a user, repeated until it is answered."""

    at: float
    verb: str  # create, patch, delete or command
    kind: str
    name: str
    body: JSON = {}


class Workload(msgspec.Struct, frozen=True):
    nodes: int
    replicas: int  # of the scheduler and of the controllers: with two, leaders are elected
    configuration: str
    max_changes: int  # of the server's window: a small one makes watches start over
    acts: list[UserRequest]
    jobs: dict[str, JobCase]
    flows: dict[str, list[str]]
    crons: list[str]
    estimates: dict[str, float] = {}  # by job, in seconds; only those of timed seeds state them
    window: NodesKeptInTime | None = None

    @property
    def is_timed(self) -> bool:
        return bool(self.estimates)


def workload_of(seed: int) -> Workload:
    plain = plain_workload_of(seed)
    return timed(plain, chance_of("time", seed)) if seed >= FIRST_TIMED_SEED else plain


def timed(workload: Workload, chance: Chance) -> Workload:
    """With estimates that are not exceeded, promised starts, later jobs and, in some seeds, nodes that are kept."""
    acts, estimates = list[UserRequest](), dict[str, float]()
    late = _Builder(chance)
    for number in range(LATE_JOBS):
        late.late_job(f"late{number}")
    for act in (*workload.acts, *late.acts):
        if (act.verb, act.kind) == ("create", "Job"):
            lasts = max(_lasts(task) for task in act.body["spec"]["tasks"])
            estimates[act.name] = float(lasts + ESTIMATE_SLACK_SECONDS)
            spec = {**act.body["spec"], "runningEstimate": f"{lasts + ESTIMATE_SLACK_SECONDS}s"}
            act = msgspec.structs.replace(act, body={**act.body, "spec": spec})
        acts.append(act)
    window = None
    if chance.random() < 0.5:
        nodes = tuple(sorted(f"node{n}" for n in chance.sample(range(workload.nodes), k=chance.randint(1, 2))))
        window = NodesKeptInTime("red", nodes, WINDOW_BEGIN_SECONDS, WINDOW_BEGIN_SECONDS + WINDOW_SECONDS)
        acts.append(UserRequest(0.5, "create", "Reservation", "kept", _reservation(window)))
    configuration = TIMED_CONFIGURATION.format(
        order=chance.choice(("submit", "shortest")),
        scope=chance.choice(("queue", "cluster")),
        reservations=chance.randint(1, 3),
    )
    acts.sort(key=lambda act: act.at)
    jobs = workload.jobs | late.jobs
    return msgspec.structs.replace(
        workload, acts=acts, jobs=jobs, configuration=configuration, estimates=estimates, window=window
    )


def plain_workload_of(seed: int) -> Workload:
    chance = chance_of("workload", seed)
    builder = _Builder(chance)
    builder.classes_and_queues()
    for number in range(chance.randint(2, 8)):
        builder.job(f"job{number}")
    if chance.random() < 0.35:
        builder.flow("flow0")
    if chance.random() < 0.25:
        builder.cron("cron0")
    if chance.random() < 0.5:
        builder.queue_edits()
    if chance.random() < 0.3:
        builder.cordon()
    shares = chance.choice(("proportion", "capacity"))
    return Workload(
        builder.nodes,
        chance.choice((1, 1, 2)),
        CONFIGURATION.format(shares=shares),
        chance.choice((60, 50_000, 50_000)),
        sorted(builder.acts, key=lambda act: act.at),
        builder.jobs,
        builder.flows,
        builder.crons,
    )


class _Builder:
    def __init__(self, chance: Chance) -> None:
        self._chance = chance
        self.nodes = chance.randint(2, 3)
        self.acts: list[UserRequest] = []
        self.jobs: dict[str, JobCase] = {}
        self.flows: dict[str, list[str]] = {}
        self.crons: list[str] = []
        self._cpus = self.nodes * NODE_CPUS
        self._queues = ["default", "red", "blue"]

    def _time(self, latest: float = FAULT_SECONDS * 0.75) -> float:
        return round(self._chance.uniform(1, latest), 3)

    def classes_and_queues(self) -> None:
        for name, value in (("high", 1000), ("low", 10)):
            body = {"apiVersion": "scheduling.k8s.io/v1", "metadata": {"name": name}, "value": value}
            self.acts.append(UserRequest(0.1, "create", "PriorityClass", name, body))
        for name in self._queues[1:]:
            spec: JSON = {"weight": self._chance.randint(1, 3), "reclaimable": self._chance.random() < 0.7}
            if self._chance.random() < 0.6:
                spec["capability"] = {"cpu": str(self._chance.randint(8, self._cpus))}
            if self._chance.random() < 0.4:
                spec["deserved"] = {"cpu": str(self._chance.randint(2, 6))}
            self.acts.append(UserRequest(0.2, "create", "Queue", name, _queue(name, spec)))

    # -- jobs ----------------------------------------------------------------------------------------------------
    def job(self, name: str) -> None:
        makers = (self._plain, self._failing, self._retrying, self._restarting, self._completing, self._suspended,
                  self._deleted, self._expiring, self._elastic)  # fmt: skip
        self._chance.choice(makers)(name, self._time())

    def _tasks(self, *, exits: int = 0, name: str = "w", replicas: int = 0, cpus: int = 0) -> JSON:
        """At most eight CPUs, which the smallest cluster and the smallest queue have."""
        replicas = replicas or self._chance.randint(1, 4)
        cpus = cpus or self._chance.randint(1, 2 if replicas > 2 else 3)
        lasts = self._chance.choice((0, 3, 10, 25, 60))
        return _task(name, replicas, cpus, lasts, exits)

    def _submit(self, name: str, at: float, tasks: list[JSON], ends: frozenset[str], **spec: object) -> None:
        total = sum(task["replicas"] for task in tasks)
        body: JSON = {"schedulerName": "volcano", "minAvailable": total, "tasks": tasks, "maxRetry": 3, **spec}
        body["queue"] = self._chance.choice(self._queues)
        if self._chance.random() < 0.6:
            body["priorityClassName"] = self._chance.choice(("high", "low"))
        if self._chance.random() < 0.3:
            body["plugins"] = {"svc": [], "env": []}
        self.acts.append(UserRequest(at, "create", "Job", name, _job(name, body)))
        self.jobs[name] = JobCase(name, ends, int(body["maxRetry"]))

    def _plain(self, name: str, at: float) -> None:
        self._submit(name, at, [self._tasks()], frozenset({Phase.COMPLETED}))

    def late_job(self, name: str) -> None:
        self._plain(name, round(self._chance.uniform(LATE_JOBS_BEGIN_SECONDS, LATE_JOBS_END_SECONDS), 3))

    def _elastic(self, name: str, at: float) -> None:
        self._submit(name, at, [self._tasks(replicas=3)], frozenset({Phase.COMPLETED}), minAvailable=1)

    def _failing(self, name: str, at: float) -> None:
        self._submit(name, at, [self._tasks(exits=3)], frozenset({Phase.FAILED}))

    def _retrying(self, name: str, at: float) -> None:
        policies = [{"event": BusEvent.POD_FAILED, "action": Action.RESTART_JOB}]
        tries = self._chance.randint(1, 3)
        tasks = [self._tasks(cpus=1), self._tasks(name="bad", exits=1, replicas=1)]
        tasks[0]["template"]["metadata"]["annotations"][DURATION] = "300s"
        self._submit(name, at, tasks, frozenset({Phase.FAILED}), policies=policies, maxRetry=tries)

    def _restarting(self, name: str, at: float) -> None:
        """Evictions use up its retries, so that it may end either way."""
        policies = [{"event": BusEvent.POD_EVICTED, "action": Action.RESTART_JOB}]
        self._submit(name, at, [self._tasks()], frozenset({Phase.COMPLETED, Phase.FAILED}), policies=policies)

    def _completing(self, name: str, at: float) -> None:
        tasks = [self._tasks(name="main", replicas=1), self._tasks(name="side", replicas=2, cpus=1)]
        tasks[0]["policies"] = [{"event": BusEvent.TASK_COMPLETED, "action": Action.COMPLETE_JOB}]
        tasks[1]["template"]["metadata"]["annotations"][DURATION] = "3000s"
        self._submit(name, at, tasks, frozenset({Phase.COMPLETED}))

    def _suspended(self, name: str, at: float) -> None:
        """Aborted and resumed; a job that had finished by then stays finished."""
        self._submit(name, at, [self._tasks()], frozenset({Phase.COMPLETED}))
        pause = self._chance.uniform(1, 20)
        self.acts.append(UserRequest(at + pause, "command", "Job", name, {"action": Action.ABORT_JOB}))
        self.acts.append(UserRequest(at + pause + 10, "command", "Job", name, {"action": Action.RESUME_JOB}))

    def _deleted(self, name: str, at: float) -> None:
        self._submit(name, at, [self._tasks()], frozenset({GONE}))
        self.acts.append(UserRequest(at + self._chance.uniform(0, 20), "delete", "Job", name))

    def _expiring(self, name: str, at: float) -> None:
        ttl = self._chance.choice((0, 5, 30))
        self._submit(name, at, [self._tasks()], frozenset({GONE}), ttlSecondsAfterFinished=ttl)

    # -- what makes jobs -----------------------------------------------------------------------------------------
    def flow(self, name: str) -> None:
        steps = self._chance.randint(2, 3)
        entries: list[JSON] = []
        for number in range(steps):
            template = f"{name}-step{number}"
            tasks = [self._tasks()]
            spec: JSON = {"schedulerName": "volcano", "minAvailable": 1, "tasks": tasks, "queue": "default"}
            body = {"apiVersion": "flow.volcano.sh/v1alpha1", "metadata": {"name": template}, "spec": spec}
            self.acts.append(UserRequest(0.3, "create", "JobTemplate", template, body))
            entry: JSON = {"name": template}
            if number:
                entry["dependsOn"] = {"targets": [entries[self._chance.randrange(number)]["name"]]}
            entries.append(entry)
        spec = {"flows": entries, "jobRetainPolicy": "retain"}
        body = {"apiVersion": "flow.volcano.sh/v1alpha1", "metadata": {"name": name}, "spec": spec}
        self.acts.append(UserRequest(self._time(60), "create", "JobFlow", name, body))
        self.flows[name] = [f"{name}-{entry['name']}" for entry in entries]
        for job in self.flows[name]:
            self.jobs[job] = JobCase(job, frozenset({Phase.COMPLETED}))

    def cron(self, name: str) -> None:
        spec: JSON = {"schedulerName": "volcano", "minAvailable": 1, "tasks": [self._tasks(replicas=1)]}
        policy = self._chance.choice(("Allow", "Forbid", "Replace"))
        cron = {"schedule": "* * * * *", "concurrencyPolicy": policy, "jobTemplate": {"spec": spec}}
        body = {"apiVersion": "batch.volcano.sh/v1alpha1", "metadata": {"name": name}, "spec": cron}
        self.acts.append(UserRequest(self._time(30), "create", "CronJob", name, body))
        self.acts.append(UserRequest(FAULT_SECONDS + 1, "patch", "CronJob", name, {"spec": {"suspend": True}}))
        self.crons.append(name)

    # -- edits ---------------------------------------------------------------------------------------------------
    def queue_edits(self) -> None:
        name = self._chance.choice(self._queues[1:])
        for _ in range(self._chance.randint(1, 3)):
            capability = {"cpu": str(self._chance.randint(8, self._cpus))}
            spec: JSON = {"weight": self._chance.randint(1, 5), "capability": capability}
            self.acts.append(UserRequest(self._time(), "patch", "Queue", name, {"spec": spec}))

    def cordon(self) -> None:
        node, at = f"node{self._chance.randrange(self.nodes)}", self._time()
        self.acts.append(UserRequest(at, "patch", "Node", node, {"spec": {"unschedulable": True}}))
        self.acts.append(UserRequest(at + 40, "patch", "Node", node, {"spec": {"unschedulable": None}}))


def _task(name: str, replicas: int, cpus: int, lasts: int, exits: int) -> JSON:
    annotations = {DURATION: f"{lasts}s", EXIT_CODE: str(exits)}
    container = {"name": "main", "image": "any", "resources": {"requests": {"cpu": str(cpus), "memory": "64Mi"}}}
    template = {"metadata": {"annotations": annotations}, "spec": {"restartPolicy": "Never", "containers": [container]}}
    return {"name": name, "replicas": replicas, "template": template, "policies": []}


def _job(name: str, spec: JSON) -> JSON:
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "metadata": {"name": name}, "spec": spec}


def _queue(name: str, spec: JSON) -> JSON:
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "metadata": {"name": name}, "spec": spec}


def _reservation(window: NodesKeptInTime) -> JSON:
    start = timestamp(EPOCH + timedelta(seconds=window.begin))
    spec = {"queue": window.queue, "nodes": list(window.nodes), "start": start}
    spec["duration"] = f"{window.end - window.begin:.0f}s"
    return {"apiVersion": "reservation.volcano.sh/v1alpha1", "metadata": {"name": "kept"}, "spec": spec}


def _lasts(task: JSON) -> int:
    return int(task["template"]["metadata"]["annotations"][DURATION].removesuffix("s"))
