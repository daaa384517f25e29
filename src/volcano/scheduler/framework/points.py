"""Extension points: every question the scheduler asks its plugins.

This table is the whole plugin contract. A plugin answers a point by having a method of its name; the point's Protocol
states what the method takes and returns, its rule how the answers of several plugins combine, and its switches which
keys of volcano-scheduler.conf turn it off for a plugin. mypy checks every subclass of Plugin against the Protocols,
framework.contract checks the same when a class is defined, framework.questions asks, and docs/reference/points.md is
generated from this module by tools/generate_points.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn, Protocol

from volcano.scheduler.core.node_table import Column
from volcano.scheduler.core.node_view import NodeView
from volcano.scheduler.framework.answers import BatchScore, Cause, Refusal, Vote
from volcano.scheduler.framework.rules import (
    Rule,
    agreed_victims,
    every,
    first_answer,
    first_difference,
    first_objection,
    first_plugin,
    first_tier_agrees,
    notify_all,
    refusals_in_turn,
    some,
    sum_of_batch_scores,
    sum_of_domain_scores,
    sum_of_scores,
    union_of_tier,
    vote,
)
from volcano.scheduler.model import Domain, Job, Node, Queue, SubJob, Task


def unanswered() -> NoReturn:
    """The body of every Protocol below. It never runs: a point that a plugin does not define is not asked of it."""
    raise NotImplementedError


# -- which comes first ------------------------------------------------------------------------------------------------
class QueueOrder(Protocol):
    """Which queue is served next. Without a difference, the older one, then the one with the smaller name."""

    def queue_order(self, one: Queue, other: Queue, /) -> float:
        unanswered()


class VictimQueueOrder(Protocol):
    """Which queue gives victims to `preemptor` first. Without a difference, the reverse of the queue order."""

    def victim_queue_order(self, one: Queue, other: Queue, preemptor: Queue, /) -> float:
        unanswered()


class JobOrder(Protocol):
    """Which job of a queue is served next. Without a difference, the older one, then the one with the smaller UID."""

    def job_order(self, one: Job, other: Job, /) -> float:
        unanswered()


class SubJobOrder(Protocol):
    """Which sub-group of a job is placed next. Without a difference, the smaller match index, then the smaller id."""

    def sub_job_order(self, one: SubJob, other: SubJob, /) -> float:
        unanswered()


class TaskOrder(Protocol):
    """Which task of a job is placed next. The order must not change while tasks wait.

    Without a difference, the smaller number at the end of the pod's name, then the older, then the smaller UID.
    """

    def task_order(self, one: Task, other: Task, /) -> float:
        unanswered()


# -- whether a job may enter, and whether it is whole -----------------------------------------------------------------
class JobValid(Protocol):
    """Whether the job can be scheduled at all, as far as its own pods go."""

    def job_valid(self, job: Job, /) -> Refusal | None:
        unanswered()


class JobEnqueueable(Protocol):
    """Whether a job with minResources may enter its queue."""

    def job_enqueueable(self, job: Job, /) -> Vote:
        unanswered()


class JobEnqueued(Protocol):
    """The job has entered its queue."""

    def job_enqueued(self, job: Job, /) -> None:
        unanswered()


class EnqueueEndsAt(Protocol):
    """Whether neither this job nor those after it in the queue's order need be asked about in this cycle."""

    def enqueue_ends_at(self, job: Job, /) -> bool:
        unanswered()


class JobStartable(Protocol):
    """Why a job may not start now although it might fit; asked before a turn of the job in `allocate`."""

    def job_startable(self, job: Job, /) -> Refusal | None:
        unanswered()


class JobNotPlaced(Protocol):
    """`allocate` found no room for the job's gang."""

    def job_not_placed(self, job: Job, /) -> None:
        unanswered()


class JobReady(Protocol):
    """Whether enough of the job is placed to start it."""

    def job_ready(self, job: Job, /) -> bool:
        unanswered()


class SubJobReady(Protocol):
    """Whether enough of a sub-group is placed. A job without sub-group policies is asked `job_ready` instead."""

    def sub_job_ready(self, job: Job, sub_job: SubJob, /) -> bool:
        unanswered()


class JobPipelined(Protocol):
    """Whether the job would be whole with the room it has been promised."""

    def job_pipelined(self, job: Job, /) -> Vote:
        unanswered()


class SubJobPipelined(Protocol):
    """Whether a sub-group would be whole with the room it has been promised.

    A job without sub-group policies is asked `job_pipelined` instead.
    """

    def sub_job_pipelined(self, job: Job, sub_job: SubJob, /) -> Vote:
        unanswered()


class JobStarving(Protocol):
    """Whether room should be made for the job by evicting others."""

    def job_starving(self, job: Job, /) -> bool:
        unanswered()


# -- what a queue may have --------------------------------------------------------------------------------------------
class Overused(Protocol):
    """Whether the queue already has what it deserves; then it is not served in this cycle."""

    def overused(self, queue: Queue, /) -> bool:
        unanswered()


class Allocatable(Protocol):
    """Whether the queue may have this task in addition to what it holds."""

    def allocatable(self, queue: Queue, task: Task, /) -> bool:
        unanswered()


class Bindable(Protocol):
    """Whether a queue may hold a task now, beside its tasks that are being ended and still run.

    A task that may not be bound yet is promised its room instead. `allocatable` was asked before.
    """

    def bindable(self, queue: Queue, task: Task, /) -> bool:
        unanswered()


class Preemptive(Protocol):
    """Whether the queue may take resources from other queues for these tasks."""

    def preemptive(self, queue: Queue, tasks: Sequence[Task], /) -> bool:
        unanswered()


# -- which nodes fit, and which of them is best -----------------------------------------------------------------------
class PreFilter(Protocol):
    """Asked before any node is looked at; a refusal ends the attempt for this task."""

    def pre_filter(self, task: Task, /) -> Refusal | None:
        unanswered()


class NodeFilter(Protocol):
    """For every reason to refuse nodes a `Cause`: the rows of the view, how final the refusal is, and its text.

    A row that no cause names passes. Several causes of one plugin may name the same row. Rows refused as UNSCHEDULABLE
    stay candidates for preemption, those refused with any other code do not. A plugin whose first cause should be the
    only one for a row leaves that row out of its later causes.
    """

    def node_filter(self, task: Task, nodes: NodeView, /) -> Iterable[Cause]:
        unanswered()


class NodeScore(Protocol):
    """A score for each row of the view."""

    def node_score(self, task: Task, nodes: NodeView, /) -> Column:
        unanswered()


class BatchNodeScore(Protocol):
    """A score with a part that depends on which other nodes are candidates, or on this very task (`BatchScore`)."""

    def batch_node_score(self, task: Task, nodes: NodeView, /) -> BatchScore:
        unanswered()


class BestNode(Protocol):
    """The node to take among the candidates, whatever their scores.

    Without an answer, the node with the highest score; chance decides between equals.
    """

    def best_node(self, task: Task, nodes: Sequence[Node], scores: Column, /) -> Node | None:
        unanswered()


# -- which hypernodes -------------------------------------------------------------------------------------------------
class DomainGradientForJob(Protocol):
    """Groups of domains to try in turn for a job with a network topology; `purpose` is `Allocate` or `Evict`."""

    def domain_gradient_for_job(self, job: Job, within: Domain, purpose: str, /) -> list[list[Domain]] | None:
        unanswered()


class DomainGradientForSubJob(Protocol):
    """Groups of domains to try in turn for a sub-group; `purpose` is `Allocate` or `Evict`."""

    def domain_gradient_for_sub_job(
        self, sub_job: SubJob, within: Domain, purpose: str, /
    ) -> list[list[Domain]] | None:
        unanswered()


class DomainScore(Protocol):
    """Scores by name for domains that may hold the sub-group; the highest sum is tried first.

    After a domain turned out not to hold the sub-group, the point is asked again without it.
    """

    def domain_score(self, sub_job: SubJob, domains: Sequence[Domain], /) -> Mapping[str, float]:
        unanswered()


# -- which tasks are evicted ------------------------------------------------------------------------------------------
class Preemptable(Protocol):
    """Which tasks may be evicted for a task of the same queue."""

    def preemptable(self, preemptor: Task, candidates: list[Task], /) -> list[Task] | None:
        unanswered()


class Reclaimable(Protocol):
    """Which tasks may be evicted for a task of another queue."""

    def reclaimable(self, reclaimer: Task, candidates: list[Task], /) -> list[Task] | None:
        unanswered()


class Evictable(Protocol):
    """Which tasks may be evicted for a whole gang; `kind` is `GangPreempt` or `GangReclaim`."""

    def evictable(self, kind: str, job: Job, candidates: list[Task], /) -> list[Task] | None:
        unanswered()


class VictimTasks(Protocol):
    """Which running tasks the shuffle action evicts."""

    def victim_tasks(self, tasks: list[Task], /) -> list[Task]:
        unanswered()


# -- trial evictions, and what happened -------------------------------------------------------------------------------
class SimulateFilter(Protocol):
    """Whether a task would be refused a node after the evictions being tried out, which are applied during the call.

    It is asked in addition to `node_filter`.
    """

    def simulate_filter(self, task: Task, node: Node, /) -> Refusal | None:
        unanswered()


class SimulateAllocatable(Protocol):
    """`allocatable` while evictions are being tried out."""

    def simulate_allocatable(self, queue: Queue, task: Task, /) -> bool:
        unanswered()


class OnAllocate(Protocol):
    """A task was given or promised room, or its eviction was undone. An objection undoes the placement."""

    def on_allocate(self, task: Task, /) -> str | None:
        unanswered()


class OnDeallocate(Protocol):
    """A task was evicted, or its placement was undone. Evictions that are only tried out are reported, too."""

    def on_deallocate(self, task: Task, /) -> None:
        unanswered()


class EveryPoint(
    QueueOrder,
    VictimQueueOrder,
    JobOrder,
    SubJobOrder,
    TaskOrder,
    JobValid,
    JobEnqueueable,
    JobEnqueued,
    EnqueueEndsAt,
    JobStartable,
    JobNotPlaced,
    JobReady,
    SubJobReady,
    JobPipelined,
    SubJobPipelined,
    JobStarving,
    Overused,
    Allocatable,
    Bindable,
    Preemptive,
    PreFilter,
    NodeFilter,
    NodeScore,
    BatchNodeScore,
    BestNode,
    DomainGradientForJob,
    DomainGradientForSubJob,
    DomainScore,
    Preemptable,
    Reclaimable,
    Evictable,
    VictimTasks,
    SimulateFilter,
    SimulateAllocatable,
    OnAllocate,
    OnDeallocate,
):
    """What a type checker takes for the base of Plugin, so that a method of a plugin must fit its point's Protocol."""


# -- the table --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Point:
    name: str  # the method a plugin defines
    protocol: type  # what that method takes and returns, and what it is for
    combine: Rule
    switches: tuple[str, ...] = ()  # keys in volcano-scheduler.conf, one of which must be on; none: always asked
    volcano: str = ""  # its name in Volcano's documentation


@dataclass(frozen=True, slots=True)
class Section:
    """Points that belong together in the documentation."""

    title: str
    points: tuple[Point, ...]
    introduction: str = ""


SECTIONS: Final = (
    Section(
        "Which comes first",
        (
            Point("queue_order", QueueOrder, first_difference, ("enableQueueOrder",), "QueueOrder"),
            Point("victim_queue_order", VictimQueueOrder, first_difference, (), "VictimQueueOrder"),
            Point("job_order", JobOrder, first_difference, ("enableJobOrder",), "JobOrder"),
            Point("sub_job_order", SubJobOrder, first_difference, ("enabledSubJobOrder",), "SubJobOrder"),
            Point("task_order", TaskOrder, first_difference, ("enableTaskOrder",), "TaskOrder"),
        ),
    ),
    Section(
        "Whether a job may enter, and whether it is whole",
        (
            Point("job_valid", JobValid, first_answer, (), "JobValid"),
            Point("job_enqueueable", JobEnqueueable, vote, ("enableJobEnqueued",), "JobEnqueueable"),
            Point("job_enqueued", JobEnqueued, notify_all, ("enableJobEnqueued",), "JobEnqueued"),
            Point("enqueue_ends_at", EnqueueEndsAt, some),
            Point("job_startable", JobStartable, first_answer),
            Point("job_not_placed", JobNotPlaced, notify_all),
            Point("job_ready", JobReady, every, ("enableJobReady",), "JobReady"),
            Point("sub_job_ready", SubJobReady, every, ("enabledSubJobReady",), "SubJobReady"),
            Point("job_pipelined", JobPipelined, vote, ("enableJobPipelined",), "JobPipelined"),
            Point("sub_job_pipelined", SubJobPipelined, vote, ("enabledSubJobPipelined",), "SubJobPipelined"),
            Point("job_starving", JobStarving, first_tier_agrees, ("enableJobStarving",), "JobStarving"),
        ),
    ),
    Section(
        "What a queue may have",
        (
            Point("overused", Overused, some, ("enabledOverused",), "Overused"),
            Point("allocatable", Allocatable, every, ("enabledAllocatable",), "Allocatable"),
            Point("bindable", Bindable, every, ("enabledAllocatable",)),
            Point("preemptive", Preemptive, every, ("enablePreemptive",), "Preemptive"),
        ),
    ),
    Section(
        "Which nodes fit, and which of them is best",
        (
            Point("pre_filter", PreFilter, first_answer, ("enablePredicate",), "PrePredicate"),
            Point("node_filter", NodeFilter, refusals_in_turn, ("enablePredicate",), "Predicate"),
            Point("node_score", NodeScore, sum_of_scores, ("enableNodeOrder",), "NodeOrder"),
            Point("batch_node_score", BatchNodeScore, sum_of_batch_scores, ("enableNodeOrder",), "BatchNodeOrder"),
            Point("best_node", BestNode, first_answer, ("enableBestNode",), "BestNode"),
        ),
        "The view (`NodeView`) holds all nodes or those that changed; an answer has an entry for each of its rows.",
    ),
    Section(
        "Which hypernodes",
        (
            Point(
                "domain_gradient_for_job",
                DomainGradientForJob,
                first_plugin,
                ("enabledHyperNodeGradient",),
                "HyperNodeGradientForJob",
            ),
            Point(
                "domain_gradient_for_sub_job",
                DomainGradientForSubJob,
                first_plugin,
                ("enabledHyperNodeGradient",),
                "HyperNodeGradientForSubJob",
            ),
            Point("domain_score", DomainScore, sum_of_domain_scores, ("enabledHyperNodeOrder",), "HyperNodeOrder"),
        ),
    ),
    Section(
        "Which tasks are evicted",
        (
            Point("preemptable", Preemptable, agreed_victims, ("enablePreemptable",), "Preemptable"),
            Point("reclaimable", Reclaimable, agreed_victims, ("enableReclaimable",), "Reclaimable"),
            Point("evictable", Evictable, agreed_victims, (), "UnifiedEvictable"),
            Point("victim_tasks", VictimTasks, union_of_tier, ("enabledVictim",), "VictimTasks"),
        ),
        "Candidates come with the least important first, and every plugin gets all of them.",
    ),
    Section(
        "Trial evictions, and what happened",
        (
            Point("simulate_filter", SimulateFilter, first_answer, ("enablePredicate",), "SimulatePredicate"),
            Point("simulate_allocatable", SimulateAllocatable, every, ("enabledAllocatable",), "SimulateAllocatable"),
            Point("on_allocate", OnAllocate, first_objection, (), "AllocateFunc"),
            Point("on_deallocate", OnDeallocate, notify_all, (), "DeallocateFunc"),
        ),
    ),
)
POINTS: Final = {point.name: point for section in SECTIONS for point in section.points}

UNASKED: Final[Mapping[str, str]] = {
    "ClusterOrder": "no action chooses among clusters",
    "NodeMap": "`node_score` answers for all nodes at once",
    "NodeReduce": "`batch_node_score` normalises over the candidates",
    "ReservedNodes": "no action reserves nodes",
    "TargetJob": "no action elects a job",
    "SimulateAddTask": "`on_allocate` is called for trial evictions that are undone",
    "SimulateRemoveTask": "`on_deallocate` is called for trial evictions",
}
"""Points of Volcano that do not exist here, and why."""

UNASKED_SWITCHES: Final[Mapping[str, str]] = {
    "enabledClusterOrder": "ClusterOrder",
    "enableReservedNodes": "ReservedNodes",
    "enableTargetJob": "TargetJob",
}
"""Their switches, which a configuration may have without effect."""
