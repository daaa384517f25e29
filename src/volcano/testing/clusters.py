"""Declarative clusters for testing policies: say what is there, schedule once, look at the outcome.

    given = cluster(nodes={"n1": "cpu=2"}, jobs={"mpi": gang(size=3, each="cpu=1")})
    outcome = given.schedule(actions="enqueue, allocate", plugins="gang, predicates")
    assert outcome.binds == {}

Everything lives in namespace `default`; tasks are named after their job (`mpi-0`, `mpi-1` …).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import yaml

from volcano.api.meta import JSON
from volcano.scheduler.actions import ACTIONS
from volcano.scheduler.core.assemble import snapshot_from
from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.framework.config import SchedulerConfig, parse_config
from volcano.scheduler.framework.decisions import Decisions
from volcano.scheduler.framework.opening import open_session
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.framework.session import Session
from volcano.scheduler.loop import cycle
from volcano.scheduler.model import SeededChance, StoppedTimer
from volcano.scheduler.plugins import PLUGINS

START = "2026-01-01T00:00:00Z"


def amounts(text: str) -> dict[str, str]:
    """`cpu=2, memory=4Gi` as a ResourceList."""
    pairs = (pair.partition("=") for pair in text.split(",") if pair.strip())
    return {name.strip(): amount.strip() for name, _, amount in pairs}


# -- what is there ------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class MachineShape:
    has: str = "cpu=4, memory=8Gi"
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Mapping[str, str]] = ()
    unschedulable: bool = False
    pods: int = 110

    def build(self, name: str) -> JSON:
        has = {"pods": str(self.pods), **amounts(self.has)}
        return {
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **self.labels}},
            "spec": {"unschedulable": self.unschedulable, "taints": list(self.taints)},
            "status": {"allocatable": has, "capacity": has},
        }


@dataclass(frozen=True)
class GangShape:
    size: int
    each: str = "cpu=1"
    min: int | None = None
    queue: str = "default"
    phase: str = ""
    priority: int = 0
    min_resources: str = ""
    created: str = START
    on: Sequence[str] = ()  # nodes the first tasks run on
    ending: int = 0  # so many of them are being deleted, and still run
    roles: Sequence[str] = ()
    role_minimums: Mapping[str, int] = field(default_factory=dict)
    policies: Sequence[JSON] = ()
    topology: JSON | None = None
    annotations: Mapping[str, str] = field(default_factory=dict)  # of the group
    pod_labels: Mapping[str, str] = field(default_factory=dict)
    pod_annotations: Mapping[str, str] = field(default_factory=dict)
    spec: Mapping[str, Any] = field(default_factory=dict)  # more of each pod's spec
    status: Mapping[str, Any] = field(default_factory=dict)  # more of each pod's status
    task_priorities: Sequence[int] = ()

    def build_group(self, name: str) -> JSON:
        spec: JSON = {"minMember": self.size if self.min is None else self.min, "queue": self.queue}
        spec["minTaskMember"] = dict(self.role_minimums)
        spec["subGroupPolicy"] = list(self.policies)
        if self.priority:
            spec["priorityClassName"] = f"p{self.priority}"
        if self.min_resources:
            spec["minResources"] = amounts(self.min_resources)
        if self.topology is not None:
            spec["networkTopology"] = self.topology
        phase = self.phase or ("Running" if self.on else "Pending")
        return {"metadata": _meta(name, self.created, self.annotations), "spec": spec, "status": {"phase": phase}}

    def build_pods(self, name: str) -> Iterable[JSON]:
        for number in range(self.size):
            spec: JSON = {"schedulerName": "volcano", "priority": self._priority(number), **self.spec}
            spec["containers"] = [{"name": "main", "resources": {"requests": amounts(self.each)}}]
            annotations = {"scheduling.k8s.io/group-name": name, **self.pod_annotations}
            if self.roles:
                annotations["volcano.sh/task-spec"] = self.roles[number % len(self.roles)]
            phase = "Pending"
            if number < len(self.on):
                spec["nodeName"], phase = self.on[number], "Running"
            meta = _meta(f"{name}-{number}", self.created, annotations) | {"labels": dict(self.pod_labels)}
            if number < self.ending:
                meta["deletionTimestamp"] = self.created
            yield {"metadata": meta, "spec": spec, "status": {"phase": phase, **self.status}}

    def _priority(self, number: int) -> int:
        return self.task_priorities[number] if self.task_priorities else self.priority


@dataclass(frozen=True)
class Share:
    weight: int = 1
    capability: str = ""
    deserved: str = ""
    guarantee: str = ""
    parent: str = ""
    priority: int = 0
    reclaimable: bool = True
    state: str = "Open"
    annotations: Mapping[str, str] = field(default_factory=dict)

    def build(self, name: str) -> JSON:
        spec: JSON = {"weight": self.weight, "priority": self.priority, "reclaimable": self.reclaimable}
        spec["parent"] = self.parent
        for key in ("capability", "deserved"):
            if getattr(self, key):
                spec[key] = amounts(getattr(self, key))
        if self.guarantee:
            spec["guarantee"] = {"resource": amounts(self.guarantee)}
        return {"metadata": _meta(name, START, self.annotations), "spec": spec, "status": {"state": self.state}}


def gang(size: int = 1, each: str = "cpu=1", **more: Any) -> GangShape:
    """`size` tasks asking for `each`; all of them are needed unless `min` says otherwise."""
    return GangShape(size, each, **more)


def running(on: Sequence[str], each: str = "cpu=1", **more: Any) -> GangShape:
    """A job whose tasks run on these nodes; it can do without all but one of them unless `min` says otherwise."""
    return GangShape(more.pop("size", len(on)), each, on=on, min=more.pop("min", 1), **more)


def machine(has: str = "cpu=4, memory=8Gi", **more: Any) -> MachineShape:
    return MachineShape(has, **more)


def share(**more: Any) -> Share:
    """What a queue may have."""
    return Share(**more)


def _meta(name: str, created: str, annotations: Mapping[str, str]) -> JSON:
    return {
        "name": name,
        "namespace": "default",
        "uid": f"default-{name}",
        "creationTimestamp": created,
        "annotations": dict(annotations),
    }


# -- the cluster and what becomes of it -----------------------------------------------------------------------------
@dataclass(frozen=True)
class CycleOutcome:
    """What one cycle decided, by short names."""

    decisions: Decisions

    @property
    def binds(self) -> dict[str, str]:
        return {_short(bind.task): bind.node for bind in self.decisions.binds}

    @property
    def evicts(self) -> list[str]:
        return sorted(_short(eviction.task) for eviction in self.decisions.evictions)

    @property
    def pipelined(self) -> dict[str, str]:
        return {_short(task): node for task, node in self.decisions.pipelined.items()}

    @property
    def phases(self) -> dict[str, str]:
        return {_short(job): status.phase for job, status in self.decisions.groups.items()}

    @property
    def why(self) -> dict[str, str]:
        return {_short(job): str(why) for job, why in self.decisions.why.items()}

    @property
    def dropped(self) -> dict[str, str]:
        return {_short(task): reason for task, reason in self.decisions.dropped.items()}


@dataclass(frozen=True)
class Cluster:
    objects: Mapping[str, list[JSON]]
    extra: Mapping[str, Any]
    now: datetime | None = None

    def snapshot(self) -> Snapshot:
        return snapshot_from(self.objects, extra=self.extra, now=self.now)

    def schedule(
        self, actions: str = "enqueue, allocate", plugins: str | SchedulerConfig = "", *, seed: int = 0, **more: Any
    ) -> CycleOutcome:
        """One cycle. `plugins` is a list of names (`;` parts tiers) or a whole configuration.

        `knowing`: further plugin classes; `arguments`: plugin → its arguments; `switches`: plugin → its switches;
        `configurations`: action → its arguments.
        """
        config = plugins if isinstance(plugins, SchedulerConfig) else configuration(actions, plugins, **more)
        return CycleOutcome(cycle(self.snapshot(), config, SeededChance(seed), plugins=_known(more.get("knowing", ()))))

    def session(self, plugins: str = "", *, seed: int = 0, **more: Any) -> Session:
        """An open session, for asking single questions."""
        config = configuration("enqueue", plugins, **more)
        known = _known(more.get("knowing", ()))
        return open_session(self.snapshot(), config, known=known, chance=SeededChance(seed), timer=StoppedTimer())[0]


def cluster(
    *,
    nodes: Mapping[str, str | MachineShape] | None = None,
    jobs: Mapping[str, GangShape] | None = None,
    queues: Mapping[str, Share] | None = None,
    objects: Mapping[str, list[JSON]] | None = None,
    extra: Mapping[str, Any] | None = None,
    now: datetime | None = None,
) -> Cluster:
    """`objects`: further lists by plural name, as the API has them; `extra`: hypernodes, shards."""
    machines = {name: MachineShape(has) if isinstance(has, str) else has for name, has in (nodes or {}).items()}
    shares = {"default": Share(), **(queues or {})}
    groups = jobs or {}
    priorities = sorted({job.priority for job in groups.values() if job.priority})
    return Cluster(
        {
            "nodes": [item.build(name) for name, item in machines.items()],
            "queues": [item.build(name) for name, item in shares.items()],
            "podGroups": [item.build_group(name) for name, item in groups.items()],
            "pods": [pod for name, item in groups.items() for pod in item.build_pods(name)],
            "priorityClasses": [{"metadata": {"name": f"p{value}"}, "value": value} for value in priorities],
            **(objects or {}),
        },
        extra or {},
        now,
    )


def configuration(
    actions: str,
    plugins: str,
    *,
    arguments: Mapping[str, Mapping[str, Any]] | None = None,
    switches: Mapping[str, Mapping[str, bool]] | None = None,
    configurations: Mapping[str, Mapping[str, Any]] | None = None,
    **_: Any,
) -> SchedulerConfig:
    def option(name: str) -> JSON:
        return {"name": name, "arguments": dict((arguments or {}).get(name, {})), **(switches or {}).get(name, {})}

    tiers = [[name.strip() for name in tier.split(",") if name.strip()] for tier in plugins.split(";")]
    document = {
        "actions": actions,
        "tiers": [{"plugins": [option(name) for name in tier]} for tier in tiers],
        "configurations": [{"name": name, "arguments": dict(more)} for name, more in (configurations or {}).items()],
    }
    return parse_config(yaml.safe_dump(document), known_actions=ACTIONS, as_recorded=True)


def _known(more: Iterable[type[Plugin]]) -> dict[str, type[Plugin]]:
    return {**PLUGINS, **{plugin.name: plugin for plugin in more}}


def _short(key: str) -> str:
    return key.removeprefix("default/")
