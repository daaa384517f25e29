"""pdb: evictions stay within PodDisruptionBudgets."""

from __future__ import annotations

from volcano.api.core import PodDisruptionBudget
from volcano.api.selectors import Selector, selector_from
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Job, Task


class DisruptionBudgets(Plugin):
    name = "pdb"
    argument_names = frozenset()

    def open(self, session: Session) -> None:
        super().open(session)
        budgets = session.snapshot.cluster.disruption_budgets
        self._budgets: list[tuple[PodDisruptionBudget, Selector]] = []
        for _, budget in sorted(budgets.items()):
            selector = selector_from(budget.spec.selector)
            if selector and not selector.never:
                self._budgets.append((budget, selector))

    def preemptable(self, preemptor: Task, candidates: list[Task]) -> list[Task]:
        return self._within(candidates)

    def reclaimable(self, reclaimer: Task, candidates: list[Task]) -> list[Task]:
        return self._within(candidates)

    def evictable(self, kind: str, job: Job, candidates: list[Task]) -> list[Task]:
        return self._within(candidates)

    def victim_tasks(self, tasks: list[Task]) -> list[Task]:
        return self._within(tasks)

    def _within(self, tasks: list[Task]) -> list[Task]:
        """In order, each counting against every budget that covers it; a pod without labels is never a victim."""
        allowed = [budget.status.disruptions_allowed for budget, _ in self._budgets]
        victims = []
        for task in tasks:
            if not task.pod.labels:
                continue
            violated = False
            for place, (budget, selector) in enumerate(self._budgets):
                if budget.namespace != task.namespace or not selector.matches(task.pod.labels):
                    continue
                if task.name in (budget.status.disrupted_pods or {}):
                    continue
                allowed[place] -= 1
                violated = violated or allowed[place] < 0
            if not violated:
                victims.append(task)
        return victims
