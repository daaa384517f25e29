"""cdp: a pod that started a moment ago is not evicted yet (cooldown protection)."""

from __future__ import annotations

from typing import Final

from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.model import Job, Task
from volcano.scheduler.model.durations import parse_duration

COOLDOWN_KEY: Final = "volcano.sh/cooldown-time"


class Cooldown(Plugin):
    name = "cdp"
    argument_names = frozenset()

    def preemptable(self, preemptor: Task, candidates: list[Task]) -> list[Task]:
        return [task for task in candidates if not self._is_protected(task)]

    def reclaimable(self, reclaimer: Task, candidates: list[Task]) -> list[Task]:
        return [task for task in candidates if not self._is_protected(task)]

    def evictable(self, kind: str, job: Job, candidates: list[Task]) -> list[Task]:
        return [task for task in candidates if not self._is_protected(task)]

    def _is_protected(self, task: Task) -> bool:
        pod = task.pod
        stated = pod.labels.get(COOLDOWN_KEY) or pod.annotations.get(COOLDOWN_KEY)
        cooldown = parse_duration(stated) if stated else None
        if cooldown is None or pod.status.phase != "Running":
            return False
        for condition in pod.status.conditions:
            if condition.type == "PodScheduled" and condition.status == "True":
                since = condition.last_transition_time
                return since is not None and since + cooldown > self.session.now
        return False
