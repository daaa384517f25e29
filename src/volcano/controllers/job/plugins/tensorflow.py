"""tensorflow: TF_CONFIG lists the whole cluster and the pod's own task and index."""

from __future__ import annotations

from typing import ClassVar, Final

import msgspec

from volcano.api.batch import TaskSpec
from volcano.api.meta import JSON
from volcano.controllers.job.plugins.plugin import JobPluginBase, add_env, address, main_containers

ROLES: Final = ("ps", "worker", "chief", "evaluator")


class TensorFlow(JobPluginBase):
    name: ClassVar = "tensorflow"

    def on_pod(self, pod: JSON, task: TaskSpec, index: int) -> None:
        tasks = self.job.spec.tasks
        if len(tasks) == 1 and tasks[0].replicas == 1:
            return  # alone, there is no cluster to describe
        config = {"cluster": self._cluster(), "task": {"type": self._role(task.name), "index": index}}
        for container in main_containers(pod):
            add_env(container, "TF_CONFIG", msgspec.json.encode(config).decode())

    def _cluster(self) -> dict[str, list[str]]:
        port = self.arguments.number("port")
        cluster = {}
        for role in ROLES:
            task = self.task(self.arguments.text(role))
            if task is not None:
                hosts = (address(self.job, task, index) for index in range(task.replicas))
                cluster[role] = [f"{each}:{port}" for each in hosts]
        return cluster

    def _role(self, name: str) -> str:
        return next((role for role in ROLES if self.arguments.text(role) == name), name)
