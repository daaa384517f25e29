"""conformance: the cluster's own pods are never evicted."""

from __future__ import annotations

from typing import Final

from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.model import Job, Task

CRITICAL: Final = frozenset({"system-cluster-critical", "system-node-critical"})


class Conformance(Plugin):
    name = "conformance"
    argument_names = frozenset()

    def preemptable(self, preemptor: Task, candidates: list[Task]) -> list[Task]:
        return [task for task in candidates if not _is_of_the_system(task)]

    def reclaimable(self, reclaimer: Task, candidates: list[Task]) -> list[Task]:
        return [task for task in candidates if not _is_of_the_system(task)]

    def evictable(self, kind: str, job: Job, candidates: list[Task]) -> list[Task]:
        return [task for task in candidates if not _is_of_the_system(task)]


def _is_of_the_system(task: Task) -> bool:
    return task.namespace == "kube-system" or task.pod.spec.priority_class_name in CRITICAL
