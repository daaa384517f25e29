"""A cluster as plain objects, for explanations: jobs are expanded as their controller would, changes are applied to the
objects, and cycles are run until nothing more happens."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from volcano.api import core, scheduling, topology
from volcano.api.decode import decode_object
from volcano.api.why.answers import ProposedChange, WhyAnswer
from volcano.app.job_expansion import expand_job
from volcano.machinery.patch import json_patch
from volcano.scheduler.actions import ACTIONS
from volcano.scheduler.cache import Batch, Cache, CacheSettings
from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.explain.questions_asked import read_question
from volcano.scheduler.explain.trials import TrialRules
from volcano.scheduler.framework.config import DEFAULT_CONFIG, parse_config
from volcano.scheduler.loop import cycle
from volcano.scheduler.model import SeededChance
from volcano.scheduler.service.explaining import Expander, answered

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
READERS: dict[str, Any] = {
    "Node": core.Node, "Pod": core.Pod, "Queue": scheduling.Queue, "PodGroup": scheduling.PodGroup,
    "PriorityClass": core.PriorityClass, "ResourceQuota": core.ResourceQuota, "HyperNode": topology.HyperNode,
    "PersistentVolumeClaim": core.PersistentVolumeClaim, "StorageClass": core.StorageClass,
    "PersistentVolume": core.PersistentVolume, "Service": core.Service,
}  # fmt: skip
GROUP = "scheduling.k8s.io/group-name"
ROLE = "volcano.sh/task-spec"
MAX_CYCLES = 6


@dataclass
class PlainCluster:
    objects: dict[tuple[str, str, str], dict[str, Any]] = field(default_factory=dict)  # kind, namespace, name
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    config_text: str = DEFAULT_CONFIG
    events: list[dict[str, Any]] = field(default_factory=list)
    logs: dict[str, str] = field(default_factory=dict)
    known: dict[str, list[str]] = field(default_factory=dict)
    created: set[tuple[str, str]] = field(default_factory=set)  # objects of other kinds, made by changes

    # -- building ----------------------------------------------------------------------------------------------------
    def put(self, kind: str, body: dict[str, Any]) -> dict[str, Any]:
        metadata = body["metadata"]
        metadata.setdefault("uid", f"{kind}-{metadata['name']}")
        metadata.setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
        self.objects[kind, metadata.get("namespace", ""), metadata["name"]] = body
        return body

    def get(self, kind: str, name: str, namespace: str = "") -> dict[str, Any]:
        return self.objects[kind, namespace, name]

    def every(self, kind: str) -> list[dict[str, Any]]:
        return [body for (each, _, _), body in self.objects.items() if each == kind]

    def node(self, name: str, cpu: int = 8, memory: int = 32, pods: int = 110, **more: Any) -> dict[str, Any]:
        amounts = {"cpu": str(cpu), "memory": f"{memory}Gi", "pods": str(pods), **more.get("devices", {})}
        labels = {"kubernetes.io/hostname": name, **more.get("labels", {})}
        return self.put("Node", {
            "metadata": {"name": name, "labels": labels},
            "spec": {"taints": list(more.get("taints", ())), "unschedulable": more.get("cordoned", False)},
            "status": {"allocatable": amounts, "capacity": amounts},
        })  # fmt: skip

    def queue(self, name: str, state: str = "Open", **spec: Any) -> dict[str, Any]:
        return self.put(
            "Queue", {"metadata": {"name": name}, "spec": {"weight": 1, **spec}, "status": {"state": state}}
        )

    def running(
        self, name: str, nodes: list[str], requests: dict[str, str], *, queue: str = "default", priority: int = 0,
        least: int = 1, leaving: bool = False, annotations: dict[str, str] | None = None, **spec: Any,
    ) -> None:  # fmt: skip
        """A job of others, one pod on each of these nodes."""
        owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": name, "uid": f"job-{name}"}
        self.put("PodGroup", {
            "metadata": {"name": f"{name}-group", "namespace": "default", "ownerReferences": [owner]},
            "spec": {"minMember": least, "queue": queue, "priorityClassName": f"p{priority}" if priority else ""},
            "status": {"phase": "Running"},
        })  # fmt: skip
        for number, node in enumerate(nodes):
            metadata: dict[str, Any] = {
                "name": f"{name}-worker-{number}", "namespace": "default", "ownerReferences": [owner],
                "annotations": {GROUP: f"{name}-group", ROLE: "worker", **(annotations or {})},
                "labels": spec.get("labels", {}),
            }  # fmt: skip
            if leaving:
                metadata["deletionTimestamp"] = "2026-01-01T11:00:00Z"
            container = {
                "name": "c",
                "image": "busybox",
                "resources": {"requests": requests},
                **spec.get("container", {}),
            }
            pod = {"schedulerName": "volcano", "nodeName": node, "containers": [container], "priority": priority}
            self.put("Pod", {"metadata": metadata, "spec": pod, "status": {"phase": "Running"}})

    def submit(
        self, body: dict[str, Any], *, pods: bool = True, phase: str = "Inqueue", only: int | None = None
    ) -> None:
        """A Volcano Job with its PodGroup; and its pods, unless they are not made yet (`only`: how many of them)."""
        metadata = body["metadata"]
        metadata.setdefault("namespace", "default")
        metadata.setdefault("uid", f"job-{metadata['name']}")
        body.setdefault("status", {"state": {"phase": "Pending"}})
        self.jobs[metadata["name"]] = body
        self._make(body, pods=pods, phase=phase, only=only)

    def _make(self, body: dict[str, Any], *, pods: bool, phase: str, only: int | None = None) -> None:
        name = body["metadata"]["name"]
        expanded = expand_job(
            body, [decode_object(core.PriorityClass, each) for each in self.every("PriorityClass")],
            default_queue="default", scheduler_name="volcano", now=NOW, max_pods=1000,
        )  # fmt: skip
        group = copy.deepcopy(expanded.groups[0])
        owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": name, "uid": f"job-{name}"}
        group["metadata"] = {
            **group["metadata"], "name": f"{name}-group", "namespace": "default", "ownerReferences": [owner],
            "uid": f"group-{name}",
        }  # fmt: skip
        group["status"] = {"phase": phase}
        self.put("PodGroup", group)
        made = 0
        for number, (_, pod) in enumerate(expanded.pods):
            role = pod["metadata"]["annotations"][ROLE]
            if not pods or role in expanded.after or (only is not None and made >= only):
                continue
            made += 1
            one = copy.deepcopy(pod)
            one["metadata"].setdefault("name", f"{name}-{role}-{number}")
            one["metadata"]["namespace"] = "default"
            one["metadata"]["annotations"][GROUP] = f"{name}-group"
            one["metadata"]["ownerReferences"] = [owner]
            one["metadata"]["uid"] = f"pod-{one['metadata']['name']}"
            self.put("Pod", one)

    # -- asking ------------------------------------------------------------------------------------------------------
    @property
    def rules(self) -> TrialRules:
        return TrialRules(parse_config(self.config_text, known_actions=ACTIONS))

    def snapshot(self) -> Snapshot:
        decoded = [(READERS[kind], decode_object(READERS[kind], body)) for (kind, _, _), body in self.objects.items()]
        batch = Batch({(reader, each.key): each for reader, each in decoded})
        return Cache(CacheSettings()).refresh(batch, NOW, "test")

    def explain(self, name: str = "demo", kind: str = "vcjob", **more: Any) -> WhyAnswer:
        body = self.jobs.get(name) if kind == "vcjob" else more.pop("object", None)
        question = read_question({
            "kind": kind, "name": name, "namespace": more.pop("namespace", "default"), "object": body,
            "events": self.events, "logs": self.logs, "known": self.known, **more,
        })  # fmt: skip
        pods = [decode_object(core.Pod, pod) for pod in self.every("Pod")]
        around = [decode_object(core.PriorityClass, each) for each in self.every("PriorityClass")]
        expander = Expander(expand_job, around, CacheSettings(), NOW)
        return answered(question, self.snapshot(), self.rules, pods, expander, NOW, self.config_text)

    # -- what happens ------------------------------------------------------------------------------------------------
    def apply(self, change: ProposedChange) -> None:
        """Do what `--apply` does."""
        for target in (change.object, *change.others):
            self._apply_to(change, target.kind, target.namespace, target.name)

    def _apply_to(self, change: ProposedChange, kind: str, namespace: str, name: str) -> None:
        if change.action == "create":
            if kind in READERS:
                self.put(kind, copy.deepcopy(change.body) | ({"status": {"state": "Open"}} if kind == "Queue" else {}))
                if kind == "PersistentVolumeClaim":
                    self._bind_claim(name)
            self.created.add((kind, name))
        elif change.action == "command":
            action = change.body["action"]
            if action == "OpenQueue":
                self.get("Queue", name)["status"]["state"] = "Open"
            elif action == "AbortJob":
                self._abort(name)
            elif action == "ResumeJob":
                self.jobs[name]["status"] = {"state": {"phase": "Pending"}}
                self._remake(name)
        elif kind == "Job" and name in self.jobs:
            self.jobs[name] = json_patch(self.jobs[name], change.patch)
            self._remake(name)
        elif kind == "ConfigMap":
            self.config_text = change.patch[0]["value"]
        else:
            self.objects[kind, namespace, name] = json_patch(self.get(kind, name, namespace), change.patch)
            if kind == "ResourceQuota":
                quota = self.get(kind, name, namespace)
                quota["status"]["hard"] = dict(quota["spec"]["hard"])

    def _abort(self, name: str) -> None:
        """Its pods go, and its PodGroup no longer counts."""
        for key in [k for k, body in self.objects.items() if k[0] == "Pod" and _job_of(body) == name]:
            del self.objects[key]
        del self.objects["PodGroup", "default", f"{name}-group"]

    def _bind_claim(self, name: str) -> None:
        claim = self.get("PersistentVolumeClaim", name, "default")
        claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        claim["spec"]["volumeName"] = f"pv-{name}"
        claim["status"] = {"phase": "Bound"}
        self.put("PersistentVolume", {"metadata": {"name": f"pv-{name}"}, "spec": {"capacity": {"storage": "1Gi"}},
                                      "status": {"phase": "Bound"}})  # fmt: skip

    def _remake(self, name: str) -> None:
        for key in [k for k, body in self.objects.items() if k[0] == "Pod" and _job_of(body) == name]:
            if not self.objects[key]["spec"].get("nodeName"):
                del self.objects[key]
        kept = {k for k in self.objects if k[0] == "Pod"}
        before = {key: self.objects[key] for key in kept}
        self._make(self.jobs[name], pods=True, phase="Pending")
        self.objects.update(before)

    def run_cycles(self, name: str = "demo") -> int:
        """Pods of the job that have a node after some cycles; what is evicted leaves."""
        if (name in self.jobs and not any(_job_of(body) == name for body in self.every("Pod"))) or name in self.jobs:
            self._remake(name)
        for number in range(MAX_CYCLES):
            rules = self.rules
            decisions = cycle(self.snapshot(), rules.config, SeededChance(number), plugins=rules.plugins)
            for bind in decisions.binds:
                namespace, _, pod = bind.task.partition("/")
                body = self.get("Pod", pod, namespace)
                body["spec"]["nodeName"], body["status"] = bind.node, {"phase": "Running"}
            for eviction in decisions.evictions:
                if eviction.task not in decisions.dropped:
                    namespace, _, pod = eviction.task.partition("/")
                    self.objects.pop(("Pod", namespace, pod), None)
            for job, status in decisions.groups.items():
                namespace, _, group = job.partition("/")
                if ("PodGroup", namespace, group) in self.objects:
                    self.get("PodGroup", group, namespace)["status"]["phase"] = status.phase
        return sum(_job_of(pod) == name and bool(pod["spec"].get("nodeName")) for pod in self.every("Pod"))


def _job_of(pod: dict[str, Any]) -> str:
    return str((pod["metadata"].get("annotations") or {}).get("volcano.sh/job-name") or "")


def a_job(
    replicas: int = 2, requests: dict[str, str] | None = None, spec: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    container = {"name": "c", "image": "busybox", "resources": {"requests": requests or {"cpu": "1"}}}
    container |= more.pop("container", {})
    template: dict[str, Any] = {"metadata": {"labels": more.pop("labels", {"app": "demo"})}}
    template["spec"] = {"containers": [container], **(spec or {})}
    task = {"name": "worker", "replicas": replicas, "template": template, **more.pop("task", {})}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": more.pop("name", "demo"), "namespace": "default"},
        "spec": {"minAvailable": more.pop("least", replicas), "schedulerName": "volcano", "queue": "default",
                 "tasks": [task], **more},
    }  # fmt: skip
