"""env: each container knows its index in the task, and how many the task has."""

from __future__ import annotations

from typing import ClassVar

from volcano.api.batch import TaskSpec
from volcano.api.meta import JSON
from volcano.controllers.job.plugins.plugin import JobPluginBase, add_env, all_containers


class Env(JobPluginBase):
    name: ClassVar = "env"

    def on_pod(self, pod: JSON, task: TaskSpec, index: int) -> None:
        for container in all_containers(pod):
            add_env(container, "VK_TASK_INDEX", str(index))
            add_env(container, "VC_TASK_INDEX", str(index))
            add_env(container, "VK_TASK_NUM", str(task.replicas))
            if not self._svc_sets_the_number:
                add_env(container, "VC_TASK_NUM", str(task.replicas))

    @property
    def _svc_sets_the_number(self) -> bool:
        """svc calls the number of a task named `task` so too, in the pods of every task."""
        return "svc" in self.job.spec.plugins and self.task("task") is not None
