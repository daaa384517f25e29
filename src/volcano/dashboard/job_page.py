"""One job: its roles and their pods, its phases and attempts over time, what is written about it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

import msgspec

from volcano.api.batch import PHASES, TASK_INDEX_KEY, TASK_SPEC_KEY, Job
from volcano.api.core import FINISHED_POD_PHASES, Pod
from volcano.api.jobs.reservations import StartReservation, decode_reservation
from volcano.api.meta import Key
from volcano.api.pods.state import is_on_lost_node
from volcano.api.scheduling import PodGroup
from volcano.dashboard.job_rows import JobRow, job_row
from volcano.dashboard.view import CallerView

MAX_PODS_OF_ROLE: Final = 400
"""Drawn in the matrix; more are counted only, as a page has to stay small."""
MAX_BARS: Final = 60


class PodCell(msgspec.Struct, frozen=True, rename="camel"):
    """`state` is one word: Waiting, Starting, Running, Succeeded, Failed, Unknown, Ending."""

    name: str
    index: int
    state: str
    detail: str
    node: str
    restarts: int
    created: datetime | None
    started: datetime | None
    ended: datetime | None
    exit_code: int | None
    containers: list[str]


class JobRole(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    replicas: int
    min_available: int
    counts: dict[str, int]
    pods: list[PodCell]


class PhaseSpan(msgspec.Struct, frozen=True, rename="camel"):
    phase: str
    began: datetime
    ended: datetime | None


class JobDetails(msgspec.Struct, frozen=True, rename="camel"):
    at: datetime
    job: JobRow
    roles: list[JobRole]
    phases: list[PhaseSpan]
    group: str
    group_phase: str
    reservation: StartReservation | None
    plugins: list[str]
    version: int
    bars: list[PodCell]
    may_list_pods: bool
    uid: str


async def job_page(view: CallerView, key: Key) -> JobDetails:
    job = await view.get(Job, key)
    pods = await view.pods_of_job(key)
    may_list = await view.may_list_pods(key.namespace)
    group = await view.group_of(job)
    roles = [_role(job, task.name, task.replicas, task.min_available, pods) for task in job.spec.tasks]
    cells = sorted((cell for role in roles for cell in role.pods), key=lambda cell: (cell.index, cell.name))
    return JobDetails(
        view.now,
        job_row(job),
        roles,
        phase_spans(job),
        group.name if group is not None else "",
        group.status.phase if group is not None else "",
        decode_reservation(group.annotations) if isinstance(group, PodGroup) else None,
        sorted(job.spec.plugins),
        job.status.version,
        [cell for cell in cells if cell.started or cell.created][:MAX_BARS],
        may_list,
        job.uid,
    )


def _role(job: Job, name: str, replicas: int, least: int | None, pods: Iterable[Pod]) -> JobRole:
    mine = [pod_cell(pod) for pod in pods if pod.annotations.get(TASK_SPEC_KEY, pod.labels.get(TASK_SPEC_KEY)) == name]
    mine.sort(key=lambda cell: (cell.index, cell.name))
    counts: dict[str, int] = {}
    for cell in mine:
        counts[cell.state] = counts.get(cell.state, 0) + 1
    if replicas > len(mine) and not job.status.state.phase.startswith(("Compl", "Abort", "Termin", "Fail")):
        counts["Not created"] = replicas - len(mine)
    return JobRole(name, replicas, least if least is not None else replicas, counts, mine[:MAX_PODS_OF_ROLE])


def pod_cell(pod: Pod) -> PodCell:
    statuses = pod.status.container_statuses
    ends = [status.state.terminated for status in statuses if status.state.terminated is not None]
    waits = [status.state.waiting for status in statuses if status.state.waiting is not None]
    detail = next((each.reason for each in waits if each.reason), pod.status.reason)
    finished = [end.finished_at for end in ends if end.finished_at is not None]
    is_over = pod.status.phase in FINISHED_POD_PHASES
    code = next((end.exit_code for end in ends if end.exit_code), 0 if ends else None)
    index = pod.labels.get(TASK_INDEX_KEY, pod.name.rpartition("-")[2])
    return PodCell(
        pod.name,
        int(index) if index.isascii() and index.isdigit() else 0,
        _state(pod),
        detail,
        pod.spec.node_name,
        sum(status.restart_count for status in statuses),
        pod.metadata.creation_timestamp,
        pod.status.start_time,
        max(finished) if finished and is_over else None,
        code,
        [container.name for container in (*pod.spec.init_containers, *pod.spec.containers)],
    )


def _state(pod: Pod) -> str:
    if pod.is_deleting:
        return "Unknown" if is_on_lost_node(pod.status.reason) else "Ending"
    if pod.status.phase == "Pending":
        return "Starting" if pod.spec.node_name else "Waiting"
    return pod.status.phase or "Waiting"


def phase_spans(job: Job) -> list[PhaseSpan]:
    """From the conditions, in order; each phase lasts until the next begins."""
    found = [
        (each.status, each.last_transition_time)
        for each in job.status.conditions
        if each.last_transition_time is not None and each.status in PHASES
    ]
    found.sort(key=lambda each: each[1])
    created = job.metadata.creation_timestamp
    if found and found[0][0] == "Pending":  # its time is of the last change while it waited
        found.pop(0)
    if created is not None:
        found.insert(0, ("Pending", created))
    spans: list[PhaseSpan] = []
    for number, (phase, began) in enumerate(found):
        following = found[number + 1][1] if number + 1 < len(found) else None
        if spans and spans[-1].phase == phase:
            spans[-1] = msgspec.structs.replace(spans[-1], ended=following)
            continue
        spans.append(PhaseSpan(phase, began, following))
    return spans
