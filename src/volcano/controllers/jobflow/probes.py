"""A step's probes: what must answer before it starts, although what it waits for still runs.

HTTP and TCP probes go to every pod of a task of the Jobs waited for; task status is read from those Jobs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from volcano.api.batch import TASK_INDEX_KEY, TASK_SPEC_KEY, Job, TaskSpec
from volcano.api.core import Pod
from volcano.api.flow import FlowProbe, HttpGet, TaskStatusProbe, TcpSocket
from volcano.controllers.jobflow.steps import FlowStep
from volcano.machinery.plan import NetworkProbe
from volcano.machinery.world import World

PROBE_TIMEOUT: Final = timedelta(seconds=1)
MAX_PROBED_PODS: Final = 64
"""Of a larger task only the first so many pods are probed."""


@dataclass(frozen=True, slots=True)
class ProbeVerdict:
    """Whether a step may start now, and what must be asked to know."""

    starts: bool = False
    questions: tuple[NetworkProbe, ...] = ()
    asks_again: bool = False


WAITS: Final = ProbeVerdict()
STARTS: Final = ProbeVerdict(starts=True)
LATER: Final = ProbeVerdict(asks_again=True)


def verdict_on(step: FlowStep, world: World, answers: Mapping[str, bool]) -> ProbeVerdict:
    """A step starts when all it waits for is completed, or, if it has probes, runs and answers."""
    depends_on = step.flow.depends_on
    if depends_on is None or not depends_on.targets:
        return STARTS
    if len(step.targets) != len(depends_on.targets):
        return WAITS  # a target that is no step of the flow is never completed
    if all(target.is_completed for target in step.targets):
        return STARTS
    probe = depends_on.probe
    if probe is None or not (probe.http_get_list or probe.tcp_socket_list or probe.task_status_list):
        return WAITS
    if any(target.job is None and not target.is_completed for target in step.targets):
        return WAITS
    if not tasks_are_in_phase(step, probe):
        return WAITS
    asked = questions(step, probe, world)
    if asked is None:
        return LATER
    if not any(question.name in answers for question in asked):
        return ProbeVerdict(questions=tuple(asked), asks_again=True) if asked else STARTS
    return STARTS if all(answers.get(question.name) for question in asked) else LATER


def tasks_are_in_phase(step: FlowStep, probe: FlowProbe) -> bool:
    """Whether enough pods of each task have come to the phase asked for."""
    return all(_is_in_phase(step, each) for each in probe.task_status_list)


def _is_in_phase(step: FlowStep, wanted: TaskStatusProbe) -> bool:
    found = _tasks(step, wanted.task_name)
    if not found:
        return _some_completed(step)
    return all(_reached(job, task, wanted.phase) for job, task in found)


def _tasks(step: FlowStep, name: str) -> list[tuple[Job, TaskSpec]]:
    """The tasks of that name, or all if it is empty, of the Jobs that are waited for and not completed."""
    jobs = [target.job for target in step.targets if target.job is not None and not target.is_completed]
    return [(job, task) for job in jobs for task in job.spec.tasks if name in ("", task.name)]


def _some_completed(step: FlowStep) -> bool:
    """A task that no running Job has may belong to a completed Job; then there is nothing to wait for."""
    return any(target.is_completed for target in step.targets)


def _reached(job: Job, task: TaskSpec, phase: str) -> bool:
    counts = job.status.task_status_count.get(task.name)
    phases = dict(counts.phase) if counts is not None else {}
    reached = phases.get(phase, 0)
    if phase == "Running":
        reached += phases.get("Succeeded", 0)  # a short task may have run between two reconciles
    needed = task.min_available if task.min_available is not None else task.replicas
    return reached >= max(1, needed)


def questions(step: FlowStep, probe: FlowProbe, world: World) -> list[NetworkProbe] | None:
    """What to ask the pods; None while a pod that must answer is not running."""
    asked: list[NetworkProbe] = []
    for index, http in enumerate(probe.http_get_list):
        pods = _pods(step, http.task_name, world)
        if pods is None:
            return None
        asked += [_http(f"{step.name}/http/{index}/{pod.uid}", http, pod) for pod in pods]
    for index, tcp in enumerate(probe.tcp_socket_list):
        pods = _pods(step, tcp.task_name, world)
        if pods is None:
            return None
        asked += [_tcp(f"{step.name}/tcp/{index}/{pod.uid}", tcp, pod) for pod in pods]
    return asked


def _pods(step: FlowStep, name: str, world: World) -> list[Pod] | None:
    """The pods of a task, all of them running; None if they are not."""
    tasks = _tasks(step, name)
    if not tasks:
        return [] if _some_completed(step) else None
    found: list[Pod] = []
    for job, task in tasks:
        pods = [pod for pod in world.where(Pod, "job", str(job.key)) if _task_of(pod) == task.name]
        running = [pod for pod in pods if pod.status.phase == "Running" and pod.status.pod_ip and not pod.is_deleting]
        if len(running) < max(1, task.replicas):
            return None
        found += sorted(running, key=_order)
    return found[:MAX_PROBED_PODS]


def _task_of(pod: Pod) -> str:
    return pod.annotations.get(TASK_SPEC_KEY) or pod.labels.get(TASK_SPEC_KEY, "")


def _order(pod: Pod) -> tuple[int, str]:
    index = pod.annotations.get(TASK_INDEX_KEY, "")
    return (int(index) if index.isdecimal() else 0, pod.name)


def _http(name: str, http: HttpGet, pod: Pod) -> NetworkProbe:
    headers: Mapping[str, str] = {http.http_header.name: http.http_header.value} if http.http_header else {}
    path = http.path if http.path.startswith("/") else f"/{http.path}"
    return NetworkProbe(
        name,
        "http",
        pod.status.pod_ip,
        http.port or 80,
        path=path,
        headers=tuple(headers.items()),
        timeout=PROBE_TIMEOUT,
    )


def _tcp(name: str, tcp: TcpSocket, pod: Pod) -> NetworkProbe:
    return NetworkProbe(name, "tcp", pod.status.pod_ip, tcp.port, timeout=PROBE_TIMEOUT)
