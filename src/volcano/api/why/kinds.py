"""The kinds that can be explained: the words for them, and the name under which the scheduler is asked.

Kubernetes' own Jobs and CronJobs are asked about as BatchJob and BatchCronJob, since Volcano's have the same kind.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class ExplainedKind(NamedTuple):
    asked: str
    group: str
    kind: str


_TABLE: Final = (
    ("vcjob vj volcanojob vcjob.batch.volcano.sh", ExplainedKind("Job", "batch.volcano.sh", "Job")),
    ("job job.batch batchjob", ExplainedKind("BatchJob", "batch", "Job")),
    ("podgroup pg", ExplainedKind("PodGroup", "scheduling.volcano.sh", "PodGroup")),
    ("pod po", ExplainedKind("Pod", "", "Pod")),
    ("deployment deploy", ExplainedKind("Deployment", "apps", "Deployment")),
    ("replicaset rs", ExplainedKind("ReplicaSet", "apps", "ReplicaSet")),
    ("statefulset sts", ExplainedKind("StatefulSet", "apps", "StatefulSet")),
    ("queue q", ExplainedKind("Queue", "scheduling.volcano.sh", "Queue")),
    ("node no", ExplainedKind("Node", "", "Node")),
    ("jobflow jf", ExplainedKind("JobFlow", "flow.volcano.sh", "JobFlow")),
    ("cronjob cronvcjob cronvj vccronjob", ExplainedKind("CronJob", "batch.volcano.sh", "CronJob")),
    ("cronjob.batch batchcronjob cj", ExplainedKind("BatchCronJob", "batch", "CronJob")),
)
KNOWN: Final = tuple(words.split()[0] for words, _ in _TABLE)


def explained_kind(word: str) -> ExplainedKind | None:
    """By a word as people write it, singular or plural, or by the name that the scheduler is asked with."""
    lower = word.lower()
    for words, kind in _TABLE:
        if kind.asked == word or lower in words.split() or lower.removesuffix("s") in words.split():
            return kind
    return None
