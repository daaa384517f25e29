"""What a live system is doing now, as the beginning of a simulation: nodes, queues, running and waiting jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import click
import msgspec

from volcano.api import core, scheduling, topology
from volcano.api.decode import Unreadable, decode_object
from volcano.api.jobs.estimates import stated_estimate
from volcano.api.meta import Resource
from volcano.api.pods.amounts import to_wire
from volcano.api.pods.requests import pod_requests
from volcano.api.quantity import parse_quantity
from volcano.api.scheduling import GROUP_NAME_ANNOTATION, TASK_SPEC_KEY
from volcano.api.scheme import resource_type
from volcano.cli.command_line import Called
from volcano.cli.connection import ApiConnection, connect
from volcano.cli.failures import Failed
from volcano.machinery.clock import SystemClock
from volcano.simulator.comparison import PolicyComparison
from volcano.simulator.jobs import Role, WorkloadJob
from volcano.simulator.scenarios.cluster import schedulable_node


def live_comparison(kubeconfig: str, assumed_seconds: float, seed: int) -> PolicyComparison:
    """Jobs without an estimate are taken to run for the assumed time."""
    try:
        connection = connect(Called((), {"kubeconfig": kubeconfig}))
        nodes, queues = _listed(connection, core.Node), _listed(connection, scheduling.Queue)
        classes, hypernodes = _listed(connection, core.PriorityClass), _listed(connection, topology.HyperNode)
        groups, pods = _listed(connection, scheduling.PodGroup), _listed(connection, core.Pod)
    except Failed as error:
        raise click.ClickException(str(error)) from error
    now = SystemClock().now()
    waiting, running = live_jobs(groups, pods, now, assumed_seconds)
    if not waiting and not running:
        raise click.ClickException("no job runs or waits in this system: there is nothing to simulate")
    return PolicyComparison(
        [schedulable_node(node) for node in nodes],
        waiting,
        seed=seed,
        queues=[msgspec.structs.replace(each, status=scheduling.QueueStatus(state="Open")) for each in queues],
        priority_classes=classes,
        hypernodes=hypernodes,
        running=running,
    )


def _listed(connection: ApiConnection, kind: type[Any]) -> list[Any]:
    found: list[Resource] = []
    for item in connection.list(resource_type(kind)):
        try:
            found.append(decode_object(kind, item))
        except Unreadable as error:
            name = (item.get("metadata") or {}).get("name", "")
            click.echo(f"{kind.__name__} {name} is left out: {error}", err=True)
    return found


def live_jobs(
    groups: Sequence[scheduling.PodGroup], pods: Sequence[core.Pod], now: datetime, assumed: float
) -> tuple[list[WorkloadJob], list[tuple[WorkloadJob, Mapping[str, Sequence[str]]]]]:
    """Jobs that wait, and jobs that run with the nodes of their pods by role. Each PodGroup is a job."""
    members: dict[tuple[str, str], list[core.Pod]] = {}
    for pod in pods:
        named = pod.metadata.annotations.get(GROUP_NAME_ANNOTATION)
        if named and pod.status.phase not in core.FINISHED_POD_PHASES:
            members.setdefault((pod.namespace, named), []).append(pod)
    waiting: list[WorkloadJob] = []
    running: list[tuple[WorkloadJob, Mapping[str, Sequence[str]]]] = []
    for group in sorted(groups, key=lambda each: (str(each.metadata.creation_timestamp), each.namespace, each.name)):
        of_group = members.get((group.namespace, group.name), [])
        if group.status.phase in ("Completed", "Unknown"):
            continue
        placed: dict[str, list[str]] = {}
        for pod in of_group:
            if pod.spec.node_name:
                placed.setdefault(_role_of(pod), []).append(pod.spec.node_name)
        job = _job(group, of_group, now, assumed)
        if placed:
            running.append((job, placed))
        elif job.roles:
            waiting.append(job)
    return waiting, running


def _job(group: scheduling.PodGroup, pods: Sequence[core.Pod], now: datetime, assumed: float) -> WorkloadJob:
    estimate = stated_estimate(group.metadata.annotations)
    whole = estimate.total_seconds() if estimate is not None else assumed
    starts = [pod.status.start_time for pod in pods if pod.status.start_time is not None and pod.spec.node_name]
    ran = max((now - min(starts)).total_seconds(), 0.0) if starts else 0.0
    created = group.metadata.creation_timestamp or now
    return WorkloadJob(
        name=f"{group.namespace}.{group.name}" if group.namespace != "default" else group.name,
        submit=0.0,
        run_time=max(whole - ran, 1.0),
        roles=tuple(_roles(group, pods)),
        estimate=None if estimate is None else whole,
        queue=group.spec.queue or "default",
        priority_class=group.spec.priority_class_name,
        min_available=group.spec.min_member,
        waited=max((now - created.astimezone(UTC)).total_seconds(), 0.0),
    )


def _roles(group: scheduling.PodGroup, pods: Sequence[core.Pod]) -> list[Role]:
    """As its pods are; a group whose pods are not made yet is one pod for each of its minimum, in equal parts."""
    shapes: dict[str, list[core.Pod]] = {}
    for pod in pods:
        shapes.setdefault(_role_of(pod), []).append(pod)
    if shapes:
        return [
            Role(role, len(of_role), to_wire(pod_requests(of_role[0].spec)), spec=_constraints(of_role[0]))
            for role, of_role in sorted(shapes.items())
        ]
    count = max(group.spec.min_member, 1)
    asked = {name: text for name, text in (group.spec.min_resources or {}).items() if _is_requested(name)}
    return [Role("task", count, _divided(asked, count))]


def _is_requested(name: str) -> bool:
    """A minimum also counts objects and repeats requests and limits under names of quotas."""
    return name in ("cpu", "memory") or ("/" in name and not name.startswith(("count/", "requests.", "limits.")))


def _divided(amounts: Mapping[str, Any], count: int) -> dict[str, str]:

    return {name: f"{float(parse_quantity(str(text))) * 1000 / count:.0f}m" for name, text in amounts.items()}


def _constraints(pod: core.Pod) -> dict[str, object]:
    spec = msgspec.to_builtins(pod.spec)
    return {key: spec[key] for key in ("nodeSelector", "affinity", "tolerations") if spec.get(key)}


def _role_of(pod: core.Pod) -> str:
    return pod.metadata.annotations.get(TASK_SPEC_KEY) or "task"
