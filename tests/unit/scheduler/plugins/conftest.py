"""Clusters told in a few words, and a session opened on them with chosen plugins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from volcano.scheduler.core.assemble import put_usage, snapshot_from
from volcano.scheduler.framework.arguments import Arguments
from volcano.scheduler.framework.config import PluginOption, SchedulerConfig
from volcano.scheduler.framework.opening import close_plugins, open_session
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import SeededChance, Status, StoppedTimer, Task
from volcano.scheduler.plugins import PLUGINS

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
JSON = dict[str, Any]


def node(name: str, cpu: str = "10", memory: str = "10Gi", pods: str = "20", **more: Any) -> JSON:
    amounts = {"cpu": cpu, "memory": memory, "pods": pods, **more.pop("extra", {})}
    labels = {"kubernetes.io/hostname": name, **more.pop("labels", {})}
    status = {"allocatable": amounts, "capacity": amounts, **more.pop("status", {})}
    return {"metadata": {"name": name, "labels": labels}, "spec": more, "status": status}


def pod(name: str, on: str = "", cpu: str = "1", memory: str = "1Gi", **more: Any) -> JSON:
    requests = {"cpu": cpu, "memory": memory, **more.pop("extra", {})}
    requests = {resource: amount for resource, amount in requests.items() if amount}
    container = {"image": more.pop("image", ""), "resources": {"requests": requests}, "ports": more.pop("ports", [])}
    container["resources"]["limits"] = more.pop("limits", {})
    annotations = {"scheduling.k8s.io/group-name": more.pop("group", "g"), **more.pop("annotations", {})}
    metadata = {
        "name": name,
        "namespace": more.pop("namespace", "ns"),
        "uid": f"uid-{name}",
        "labels": more.pop("labels", {}),
        "annotations": annotations,
        "ownerReferences": more.pop("owners", []),
    }
    if more.pop("deleting", False):
        metadata["deletionTimestamp"] = "2026-01-01T11:00:00Z"
    status = more.pop("status", {"phase": "Running" if on else "Pending"})
    return {"metadata": metadata, "spec": {"containers": [container], "nodeName": on, **more}, "status": status}


@dataclass
class Asked:
    """A session with its plugins, and what they answer."""

    session: Session
    plugins: list[Any]

    def task(self, name: str) -> Task:
        return next(task for task in self.session.snapshot.tasks.values() if task.name == name)

    def fits(self, name: str) -> list[str]:
        passing = self.session.nodes.filtered(self.task(name)).ok
        return [node.name for node, ok in zip(self.session.table.nodes, passing, strict=True) if ok]

    def reasons(self, name: str) -> dict[str, int]:
        return dict(self.session.nodes.filtered(self.task(name)).histogram())

    def refusal(self, name: str) -> str:
        refused = self.session.ask.pre_filter(self.task(name))
        return refused.message if refused else ""

    def scores(self, name: str, among: list[str] | None = None) -> dict[str, float]:
        nodes = self.session.table.nodes
        chosen = np.array([among is None or node.name in among for node in nodes])
        task = self.task(name)
        total = self.session.nodes.scored(task).total(chosen, task)
        return {node.name: float(score) for node, score, ok in zip(nodes, total, chosen, strict=True) if ok}

    def place(self, name: str, on: str, status: Status = Status.ALLOCATED) -> str | None:
        table = self.session.table
        return self.session.moves.place(self.task(name), table.nodes[table.index[on]], status)

    def lift(self, name: str) -> None:
        self.session.moves.lift(self.task(name))

    def evict(self, name: str) -> None:
        self.session.moves.evict(self.task(name))

    def close(self) -> None:
        close_plugins(self.session, self.plugins)


def ask(*plugins: str, arguments: JSON | None = None, switches: JSON | None = None, **objects: Any) -> Asked:
    """A session on these objects; the arguments are the last plugin's."""
    groups = objects.pop("groups", {"g": "q"})
    queues = objects.pop("queues", None) or [
        {"metadata": {"name": queue}, "spec": {"weight": 1}, "status": {"state": "Open"}}
        for queue in sorted(set(groups.values()))
    ]
    usage = objects.pop("usage", {})
    lists = {
        "queues": queues,
        "podGroups": [
            {
                "metadata": {"name": g, "namespace": "ns"},
                "spec": {"queue": q, "minMember": 1},
                "status": {"phase": "Inqueue"},
            }
            for g, q in groups.items()
        ],
        **objects,
    }
    snapshot = snapshot_from(lists, now=NOW)
    put_usage(snapshot, usage)
    options = tuple(
        PluginOption(name, Arguments(arguments if name == plugins[-1] else {}), switches or {}) for name in plugins
    )
    config = SchedulerConfig(("allocate",), (options,), {}, objects.get("metrics", {}))
    session, opened = open_session(snapshot, config, known=PLUGINS, chance=SeededChance(), timer=StoppedTimer())
    return Asked(session, opened)


@pytest.fixture
def a_node() -> Callable[..., JSON]:
    return node


@pytest.fixture
def a_pod() -> Callable[..., JSON]:
    return pod


@pytest.fixture
def asked() -> Callable[..., Asked]:
    return ask
