"""Explainer: answers POST /explain on a snapshot of its own, which follows the same changes as the scheduler's.

The snapshot is made when the first question comes and then kept current, so that a question neither waits for a cycle
nor delays one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

import msgspec

from volcano.api.core import Pod, PriorityClass, Service
from volcano.api.meta import JSON
from volcano.api.scheduling import PodGroup
from volcano.api.why.answers import WhyAnswer
from volcano.machinery.clock import Clock
from volcano.machinery.world import Mirror
from volcano.scheduler.cache import Cache, CacheSettings, PendingChanges
from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.explain.answering import answer_workload
from volcano.scheduler.explain.answering_others import answer_cron, answer_flow, answer_node, answer_queue
from volcano.scheduler.explain.questions_asked import KnownCluster, WhyQuestion, read_question
from volcano.scheduler.explain.trials import TrialRules
from volcano.scheduler.explain.workloads import workload_of
from volcano.scheduler.service.configuration import Configuration
from volcano.scheduler.service.job_expansion import ExpandedJob, ExpandJob, read_object

MAX_PODS: Final = 10_000


class Explainer:
    def __init__(
        self,
        mirror: Mirror,
        clock: Clock,
        settings: CacheSettings,
        configuration: Configuration,
        expand_job: ExpandJob,
    ) -> None:
        self._mirror, self._clock, self._settings = mirror, clock, settings
        self._configuration, self._expand_job = configuration, expand_job
        self._cache = Cache(settings)
        self._pending: PendingChanges | None = None
        self._one_at_a_time = asyncio.Lock()

    async def answer(self, body: Any) -> WhyAnswer:
        """BadQuestion for a question that cannot be read."""
        question = read_question(body)
        async with self._one_at_a_time:
            if self._pending is None:
                self._pending = PendingChanges()
                self._pending.follow(self._mirror, lambda _urgent: None)
            batch, now = self._pending.take(), self._clock.now()
            pods = [pod for pod in self._mirror.all(Pod) if pod.namespace == question.namespace]
            around = [*self._mirror.all(PriorityClass), *self._mirror.all(Service)]
            rules = self._rules()
            text = self._configuration.text
            return await self._clock.run(
                lambda: answered(
                    question,
                    self._cache.refresh(batch, now, "explain"),
                    rules,
                    pods,
                    Expander(self._expand_job, around, self._settings, now),
                    now,
                    text,
                )
            )

    def _rules(self) -> TrialRules:
        registry = self._configuration.registry
        return TrialRules(self._configuration.current, registry.plugins, registry.actions)


class Expander:
    """Makes the PodGroup and the pods of a Volcano Job, as its controller would."""

    def __init__(self, expand_job: ExpandJob, around: Iterable[Any], settings: CacheSettings, now: datetime) -> None:
        self._expand_job, self._around, self._settings, self._now = expand_job, list(around), settings, now

    def __call__(self, body: JSON) -> Expansion:
        expanded = self._expand_job(
            body,
            self._around,
            default_queue=self._settings.default_queue,
            scheduler_name=next(iter(sorted(self._settings.scheduler_names)), "volcano"),
            now=self._now,
            max_pods=MAX_PODS,
        )
        return Expansion(expanded)


class Expansion:
    """An expanded Job as objects: pods belong to the PodGroup that stands for it, existing or made."""

    def __init__(self, expanded: ExpandedJob) -> None:
        self._expanded = expanded
        self.replicas, self.after = expanded.replicas, expanded.after

    def read_group(self, existing: PodGroup | None) -> PodGroup:
        """The PodGroup as the Job asks for it, under the name of the one that exists."""
        made: PodGroup = read_object(PodGroup, self._expanded.groups[0], 0)
        if existing is None:
            return made
        status = msgspec.structs.replace(existing.status, phase="Pending")
        return msgspec.structs.replace(made, metadata=existing.metadata, status=status)

    def read_pods(self) -> list[Pod]:
        return [read_object(Pod, body, index) for index, body in self._expanded.pods]


def answered(
    question: WhyQuestion,
    snapshot: Snapshot,
    rules: TrialRules,
    pods: list[Pod],
    expand: Expander,
    now: datetime,
    configuration: str = "",
) -> WhyAnswer:
    """The answer on a snapshot; a pure function of what it is given."""
    around = KnownCluster(snapshot, rules, lambda _namespace: pods, expand, now, configuration)

    def explained(asked: WhyQuestion) -> WhyAnswer:
        match asked.kind:
            case "Queue":
                return answer_queue(around, asked)
            case "Node":
                return answer_node(around, asked)
            case "JobFlow":
                return answer_flow(asked, explained)
            case "CronJob" | "BatchCronJob":
                return answer_cron(around, asked, explained)
        return answer_workload(around, asked, workload_of(around, asked))

    return explained(question)
