"""Clusters to simulate: so many equal nodes, and what of a workload could never run on them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from volcano.api import core, scheduling
from volcano.api.meta import ObjectMeta
from volcano.api.quantity import parse_quantity
from volcano.simulator.jobs import Role, WorkloadJob

DEFAULT_QUEUE: Final = "default"
MIN_PODS_PER_NODE: Final = 110  # Kubernetes' own limit; a node with more cpus takes a pod for each
MEMORY_GIB_PER_CPU: Final = 4
MAX_NODES: Final = 100_000


class InvalidCluster(ValueError):
    """The cluster cannot be made; the message says why."""


def equal_nodes(count: int, cpu: str, memory: str = "", gpus: int = 0) -> list[core.Node]:
    """`count` nodes of that many cpus; memory defaults to 4 GiB for each cpu."""
    if not 1 <= count <= MAX_NODES:
        raise InvalidCluster(f"{count} nodes: at least 1 and at most {MAX_NODES} can be simulated")
    cpus = _positive("cpu", cpu)
    if memory:
        _positive("memory", memory)
    has = {"cpu": cpu, "memory": memory or f"{math.ceil(cpus * MEMORY_GIB_PER_CPU)}Gi", "pods": _pods(cpus)}
    if gpus:
        has["nvidia.com/gpu"] = str(gpus)
    width = len(str(count - 1))
    return [node(f"node-{index:0{width}d}", has) for index in range(count)]


def node(
    name: str,
    has: Mapping[str, str],
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> core.Node:
    named = {"kubernetes.io/hostname": name, **(labels or {})}
    return core.Node(
        metadata=ObjectMeta(name=name, labels=named, annotations=dict(annotations or {})),
        status=core.NodeStatus(allocatable=dict(has), capacity=dict(has)),
    )


def default_queues() -> list[scheduling.Queue]:
    return queues_named(())


def queues_named(names: Iterable[str]) -> list[scheduling.Queue]:
    """Open queues of equal weight, with the default one."""
    status = scheduling.QueueStatus(state="Open")
    every = sorted({DEFAULT_QUEUE, *names})
    return [scheduling.Queue(metadata=ObjectMeta(name=name), status=status) for name in every]


def capacity(nodes: Sequence[core.Node]) -> dict[str, float]:
    """What all nodes have together, in cores, bytes and pieces."""
    sums: dict[str, float] = {}
    for each in nodes:
        for name, text in _offered(each).items():
            sums[name] = sums.get(name, 0.0) + float(parse_quantity(text))
    return sums


class EmptyCluster:
    """The nodes without any pod: whether a job fits there, which is asked once for each shape of pod."""

    def __init__(self, nodes: Sequence[core.Node]) -> None:
        amounts: dict[tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]], int] = {}
        for each in nodes:
            key = (tuple(sorted(_offered(each).items())), tuple(sorted(each.metadata.labels.items())))
            key = (key[0], tuple(pair for pair in key[1] if pair[0] != "kubernetes.io/hostname"))
            amounts[key] = amounts.get(key, 0) + 1
        self._kinds = [
            ({name: float(parse_quantity(text)) for name, text in has}, dict(labels), count)
            for (has, labels), count in amounts.items()
        ]
        self._room: dict[tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]], int] = {}

    def why_never_runnable(self, job: WorkloadJob) -> str:
        """Why the job could not even start if it were alone; empty when it could, as far as amounts go."""
        wanted = job.min_available or job.pods
        for role in job.roles:
            count = min(role.count, wanted)
            wanted -= count
            room = self._copies(role)
            if count > room:
                asked = ", ".join(f"{name} {text}" for name, text in role.requests.items())
                selected = _selector(role)
                where = f" with {', '.join(f'{k}={v}' for k, v in selected)}" if selected else ""
                return f"needs {count} pods of {asked}; the empty cluster{where} has room for {room}"
        return ""

    def _copies(self, role: Role) -> int:
        selected = _selector(role)
        key = (tuple(sorted(role.requests.items())), selected)
        if key not in self._room:
            asked = {name: float(parse_quantity(text)) for name, text in role.requests.items()} | {"pods": 1.0}
            self._room[key] = sum(
                count * min(math.floor(has.get(name, 0.0) / amount + 1e-9) for name, amount in asked.items() if amount)
                for has, labels, count in self._kinds
                if all(labels.get(name) == value for name, value in selected)
            )
        return self._room[key]


def _offered(each: core.Node) -> dict[str, str]:
    return {name: str(text) for name, text in (each.status.allocatable or {}).items()}


def _selector(role: Role) -> tuple[tuple[str, str], ...]:
    selector = role.spec.get("nodeSelector")
    return tuple(sorted((str(k), str(v)) for k, v in selector.items())) if isinstance(selector, Mapping) else ()


def _positive(name: str, text: str) -> float:
    try:
        amount = float(parse_quantity(text))
    except ValueError as error:
        raise InvalidCluster(f"{name} of a node: {error}") from error
    if amount <= 0.0:
        raise InvalidCluster(f"{name} of a node: {text!r} is not above 0")
    return amount


def _pods(cpus: float) -> str:
    return str(max(MIN_PODS_PER_NODE, math.ceil(cpus)))
