"""What a job plugin is: objects that the job needs, and what its pods get.

Plugins decide nothing about time or order. They may be asked again at any moment, and what they ask for is safe to ask
for twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from volcano.api.batch import JOB_NAME_KEY, JOB_NAMESPACE_KEY, Job, TaskSpec
from volcano.api.jobs.plugins import ParsedArguments
from volcano.api.meta import JSON
from volcano.api.scheme import ResourceType
from volcano.machinery.plan import NOTHING, Create, Plan, owner_reference


class JobPluginError(Exception):
    """A plugin cannot do what the job asks for; the job's status shows the message, and the job waits."""


class JobPluginBase:
    """Created for every reconcile from the job and the plugin's arguments."""

    name: ClassVar[str]
    is_recorded: ClassVar[bool] = True  # in the job's status, while the job may own objects of the plugin

    def __init__(self, job: Job, arguments: ParsedArguments) -> None:
        self.job, self.arguments = job, arguments

    def check(self) -> None:
        """JobPluginError when no pod could be created."""

    def objects(self) -> Plan:
        """Make what the job needs, as far as it is not there."""
        return NOTHING

    def refreshed(self) -> JSON:
        """What must follow a change of the job's spec, as a value: when it changes, `refresh` is asked for."""
        return {}

    def refresh(self) -> Plan:
        """Bring objects in line with the job's spec."""
        return NOTHING

    def removal(self) -> Plan:
        """Remove what `objects` made."""
        return NOTHING

    def on_pod(self, pod: JSON, task: TaskSpec, index: int) -> None:
        """Change a pod that is about to be made."""

    # -- what plugins have in common ------------------------------------------------------------------------------
    def task(self, name: str) -> TaskSpec | None:
        return next((task for task in self.job.spec.tasks if _name(task) == name), None)

    def replicas(self, name: str) -> int:
        task = self.task(name)
        return task.replicas if task is not None else 0

    def metadata(self, name: str) -> JSON:
        return {"name": name, "namespace": self.job.namespace, "ownerReferences": [owner_reference(self.job)]}

    def own(self, resource: ResourceType, name: str, body: JSON) -> Create:
        """An object that belongs to the job and vanishes with it."""
        return Create(resource, {"metadata": self.metadata(name), **body})

    @property
    def selector(self) -> dict[str, str]:
        """Labels that all pods of the job have and no others."""
        return {JOB_NAME_KEY: self.job.name, JOB_NAMESPACE_KEY: self.job.namespace}


# -- names of pods on the network ------------------------------------------------------------------------------
def host(job: Job, task: TaskSpec, index: int) -> str:
    return pod_spec(task).get("hostname") or f"{job.name}-{_name(task)}-{index}"


def subdomain(job: Job, task: TaskSpec) -> str:
    return pod_spec(task).get("subdomain") or job.name


def address(job: Job, task: TaskSpec, index: int) -> str:
    return f"{host(job, task, index)}.{subdomain(job, task)}"


def distinct_indices(task: TaskSpec) -> range:
    """A template with a host name gives all pods of the task the same one: it is listed once."""
    return range(min(task.replicas, 1) if pod_spec(task).get("hostname") else task.replicas)


def addresses(job: Job, task: TaskSpec) -> list[str]:
    return [address(job, task, index) for index in distinct_indices(task)]


def pod_spec(task: TaskSpec) -> JSON:
    spec: JSON = task.template.get("spec") or {}
    return spec


def _name(task: TaskSpec) -> str:
    return task.name or "default"


# -- changing pods ---------------------------------------------------------------------------------------------
def main_containers(pod: JSON) -> list[JSON]:
    containers: list[JSON] = pod["spec"].get("containers") or []
    return containers


def all_containers(pod: JSON) -> Iterator[JSON]:
    yield from main_containers(pod)
    yield from pod["spec"].get("initContainers") or []


def append(holder: JSON, field: str, *items: Any) -> None:
    """To a list that may be absent or null."""
    holder[field] = [*(holder.get(field) or []), *items]


def add_env(container: JSON, name: str, value: str) -> None:
    append(container, "env", {"name": name, "value": value})


def open_port(container: JSON, name: str, number: int) -> None:
    """Unless a port of that number is declared already."""
    if all(port.get("containerPort") != number for port in container.get("ports") or []):
        append(container, "ports", {"name": name, "containerPort": number, "protocol": "TCP"})
