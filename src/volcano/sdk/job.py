"""A job as a Python value, and the manifest that is made of it. It is submitted by sdk.cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from volcano.api.durations import parse_duration
from volcano.api.meta import JSON
from volcano.api.names import dns_label_problems
from volcano.api.quantity import parse_quantity

if TYPE_CHECKING:
    from volcano.sdk.running import RunningJob

GPU = "nvidia.com/gpu"


class JobError(ValueError):
    """The job is not one that could be submitted; the message names the argument and why."""


@dataclass(frozen=True)
class JobTask:
    """One role of a job: equal pods that run a command."""

    name: str
    command: Sequence[str]
    replicas: int = 1
    image: str = "python:3"
    cpu: str | float | None = None
    memory: str | None = None
    gpu: int = 0
    env: Mapping[str, str] = field(default_factory=dict)
    min_available: int | None = None
    restart_policy: str = "Never"
    template: JSON = field(default_factory=dict)
    """Fields of the pod's specification that have no argument of their own, such as `volumes` or `nodeSelector`."""

    def __post_init__(self) -> None:
        _check_name("JobTask.name", self.name)
        if isinstance(self.command, str) or not self.command:
            raise JobError(f"JobTask {self.name}: command is a list of words, such as ['python', 'train.py']")
        for argument, count in (("replicas", self.replicas), ("gpu", self.gpu)):
            if count < 0:
                raise JobError(f"JobTask {self.name}: {argument} is {count}; it cannot be negative")
        for argument, amount in self._requests().items():
            try:
                parse_quantity(amount)
            except ValueError as error:
                raise JobError(f"JobTask {self.name}: {argument}: {error}") from error

    def manifest(self) -> JSON:
        container: JSON = {"name": self.name, "image": self.image, "command": list(self.command)}
        if self.env:
            container["env"] = [{"name": name, "value": str(value)} for name, value in self.env.items()]
        requests = self._requests()
        if requests:
            limits = {GPU: requests[GPU]} if GPU in requests else {}
            container["resources"] = {"requests": requests} | ({"limits": limits} if limits else {})
        pod = {"restartPolicy": self.restart_policy, "containers": [container]} | self.template
        task: JSON = {"name": self.name, "replicas": self.replicas, "template": {"spec": pod}}
        return task | ({} if self.min_available is None else {"minAvailable": self.min_available})

    def _requests(self) -> dict[str, str]:
        given = {"cpu": self.cpu, "memory": self.memory, GPU: self.gpu or None}
        return {name: str(amount) for name, amount in given.items() if amount is not None}


@dataclass(frozen=True)
class Job:
    """A job of one or more tasks, whose pods start together or not at all."""

    name: str
    tasks: Sequence[JobTask]
    namespace: str = "default"
    queue: str = "default"
    min_available: int | None = None
    max_retry: int | None = None
    priority_class: str = ""
    running_estimate: str = ""
    plugins: Mapping[str, Sequence[str]] = field(default_factory=dict)
    policies: Sequence[JSON] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    spec: JSON = field(default_factory=dict)
    """Fields of the Job's specification that have no argument of their own."""

    def __post_init__(self) -> None:
        _check_name("Job.name", self.name)
        if not self.tasks:
            raise JobError(f"Job {self.name}: it needs at least one task")
        names = [task.name for task in self.tasks]
        repeated = {name for name in names if names.count(name) > 1}
        if repeated:
            raise JobError(f"Job {self.name}: two tasks are named {', '.join(sorted(repeated))}")
        if self.running_estimate:
            try:
                parse_duration(self.running_estimate)
            except ValueError as error:
                raise JobError(f"Job {self.name}: running_estimate: {error}") from error

    @property
    def replicas(self) -> int:
        return sum(task.replicas for task in self.tasks)

    def manifest(self) -> JSON:
        """The object as `kubectl apply` would take it."""
        spec: JSON = {
            "queue": self.queue,
            "minAvailable": self.replicas if self.min_available is None else self.min_available,
            "tasks": [task.manifest() for task in self.tasks],
        }
        optional = {
            "maxRetry": self.max_retry,
            "priorityClassName": self.priority_class or None,
            "runningEstimate": self.running_estimate or None,
            "plugins": {name: list(words) for name, words in self.plugins.items()} or None,
            "policies": list(self.policies) or None,
        }
        spec |= {name: value for name, value in optional.items() if value is not None} | self.spec
        metadata: JSON = {"name": self.name, "namespace": self.namespace}
        if self.labels:
            metadata["labels"] = dict(self.labels)
        return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata, "spec": spec}

    def submit(self, *, kubeconfig: str | None = None) -> RunningJob:
        """Create the job on the API server that the kubeconfig, or the usual rules, name."""
        from volcano.sdk.cluster import ClusterClient

        return ClusterClient(kubeconfig=kubeconfig).submit(self)


def _check_name(argument: str, name: str) -> None:
    problems = dns_label_problems(name)
    if problems:
        raise JobError(f"{argument} {name!r}: {problems[0]}")
