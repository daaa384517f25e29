"""hcclrank: the pod's rank among all of the job, as the annotation that HCCL reads."""

from __future__ import annotations

from typing import ClassVar, Final

from volcano.api.batch import TaskSpec
from volcano.api.meta import JSON
from volcano.controllers.job.plugins.plugin import JobPluginBase, main_containers

RANK: Final = "hccl/rankIndex"


class HcclRank(JobPluginBase):
    name: ClassVar = "hcclrank"
    is_recorded: ClassVar = False

    def on_pod(self, pod: JSON, task: TaskSpec, index: int) -> None:
        annotations = pod["metadata"]["annotations"]
        if annotations.get(RANK):
            return
        rank = _declared_rank(pod) or self._rank(task, index)
        if rank:
            annotations[RANK] = rank

    def _rank(self, task: TaskSpec, index: int) -> str:
        if task.name == self.arguments.text("master"):
            return str(index)
        if task.name == self.arguments.text("worker"):
            return str(self.replicas(self.arguments.text("master")) + index)
        return ""


def _declared_rank(pod: JSON) -> str:
    variables = (variable for container in main_containers(pod) for variable in container.get("env") or [])
    return next((each["value"] for each in variables if each.get("name") == "RANK" and each.get("value")), "")
