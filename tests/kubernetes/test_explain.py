"""Fifty questions on a real API server: jobs that wait for a known cause are explained by a scheduler that follows it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from tests.running_server import Client
from tests.stories.builders import a_job, a_task
from volcano.api.meta import Key
from volcano.api.scheme import find_resource_type
from volcano.cli.explain import ask_directly

from .components import Components, wait_for
from .control_plane import free_port
from .real_system import RealSystem

NODES, CPUS, SCHEDULER = 3, 8, "explaining"
JOBS, EVENTS = find_resource_type("batch.volcano.sh", "Job"), find_resource_type("", "Event")
HOST = "kubernetes.io/hostname"
ROUNDS = 4
ROUNDS_OF_WAITING = 15


@pytest.fixture(scope="module")
def address(running: Components, api: Client) -> Iterator[str]:
    """A scheduler of its own name with three nodes of its own; where it listens."""
    port = free_port()
    running.nodes("explain", NODES, cpu=str(CPUS))
    running.scheduler(
        "--node-selector",
        "pool:explain",
        "--scheduler-name",
        SCHEDULER,
        "--listen-address",
        f"127.0.0.1:{port}",
        "--enable-metrics=true",
    )
    url = f"http://127.0.0.1:{port}"
    wait_for(lambda: _listens(port), why="the scheduler listens")
    return url


def _listens(port: int) -> bool:
    import socket

    with socket.socket() as one:
        one.settimeout(1)
        return one.connect_ex(("127.0.0.1", port)) == 0


def with_spec(task: dict[str, Any], **spec: Any) -> dict[str, Any]:
    task["template"]["spec"] |= spec
    return task


def with_container(task: dict[str, Any], **more: Any) -> dict[str, Any]:
    task["template"]["spec"]["containers"][0] |= more
    return task


def asking(task: dict[str, Any], **requests: str) -> dict[str, Any]:
    """Devices need a limit that is equal to the request."""
    resources = {"requests": dict(requests), "limits": {k: v for k, v in requests.items() if "/" in k}}
    return with_container(task, resources=resources)


def apart(task: dict[str, Any], label: str) -> dict[str, Any]:
    task["template"]["metadata"]["labels"] = {"app": label}
    term = {"labelSelector": {"matchLabels": {"app": label}}, "topologyKey": HOST}
    return with_spec(task, affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})


def questions(number: int) -> dict[str, tuple[dict[str, Any], str]]:
    """Jobs by name, each with the reason that must be found."""
    n = number + 1
    near = {"labelSelector": {"matchLabels": {"app": "nowhere"}}, "topologyKey": HOST}
    terms = [{"matchExpressions": [{"key": "pool", "operator": "In", "values": [f"tape-{n}"]}]}]
    nodes = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    spread = {"maxSkew": n, "topologyKey": "example.org/rack", "whenUnsatisfiable": "DoNotSchedule",
              "labelSelector": {"matchLabels": {"app": "x"}}}  # fmt: skip
    pods_near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near]}}
    claim = [{"name": "v", "persistentVolumeClaim": {"claimName": f"data-{n}"}}]
    made: dict[str, tuple[list[dict[str, Any]], str]] = {
        "label-typo": ([with_spec(a_task(replicas=n), nodeSelector={"pool": "explian"})], "NoNodeHasLabel"),
        "label-none": ([with_spec(a_task(replicas=n), nodeSelector={"model": "qqq"})], "NoNodeHasLabel"),
        "affinity": ([with_spec(a_task(replicas=n), affinity=nodes)], "NoNodeInAffinity"),
        "resource-typo": ([asking(a_task(replicas=n), cpu="1", **{"nvidia.com/gpus": "1"})], "NoNodeHasResource"),
        "resource-none": ([asking(a_task(replicas=n), cpu="1", **{"example.org/q": "1"})], "NoNodeHasResource"),
        "large-cpu": ([a_task(replicas=n, cpu=str(CPUS + n))], "PodTooLarge"),
        "large-memory": ([asking(a_task(replicas=n), cpu="1", memory=f"{300 + n}Gi")], "PodTooLarge"),
        "gang": ([a_task(replicas=NODES * 4 + n, cpu="2")], "GangTooLarge"),
        "nodes": ([a_task(replicas=NODES + n, cpu="6")], "TooFewNodes"),
        "apart": ([apart(a_task(replicas=NODES + n), f"apart-{n}")], "AntiAffinityLimit"),
        "ports": (
            [with_container(a_task(replicas=NODES + n), ports=[{"containerPort": 80, "hostPort": 8000 + n}])],
            "HostPortLimit",
        ),
        "near": ([with_spec(a_task(replicas=n), affinity=pods_near)], "NoPodNear"),
        "spread": ([with_spec(a_task(replicas=n), topologySpreadConstraints=[spread])], "SpreadKeyMissing"),
        "claim": ([with_spec(a_task(replicas=n), volumes=claim)], "ClaimNotFound"),
        "gate": ([with_spec(a_task(replicas=n), schedulingGates=[{"name": "example.com/check"}])], "SchedulingGate"),
    }  # fmt: skip
    return {f"{name}-{number}": (a_job(f"{name}-{number}", *tasks, schedulerName=SCHEDULER), reason)
            for name, (tasks, reason) in made.items()}  # fmt: skip


async def test_fifty_jobs_that_wait_are_explained_rightly(system: RealSystem, address: str):
    asked = {name: case for number in range(ROUNDS) for name, case in questions(number).items()}
    assert len(asked) >= 50
    for body, _ in asked.values():
        await system.apply(body)
    await system.until(lambda: len(system.groups()) >= len(asked))

    async def wrong_ones(names: list[str]) -> dict[str, tuple[str, str, str]]:
        events = (await system.client.list_json(EVENTS, system.namespace))["items"]
        wrong = {}
        for name in names:
            body = await system.client.get_json(JOBS, Key(system.namespace, name))
            mine = [e for e in events if e["involvedObject"].get("name", "").startswith(name)][:200]
            question = {"kind": "vcjob", "name": name, "namespace": system.namespace, "object": body, "events": mine}
            found = await asyncio.to_thread(ask_directly, address, {**question, "changes": False})
            if found.reason != asked[name][1]:
                wrong[name] = (asked[name][1], found.reason, found.text)
        return wrong

    wrong = await wrong_ones(list(asked))
    for _ in range(ROUNDS_OF_WAITING):  # pods and events may still be on their way
        if not wrong:
            break
        await system.clock.sleep(timedelta(seconds=2))
        wrong = await wrong_ones(list(wrong))

    assert wrong == {}
