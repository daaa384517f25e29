"""Every question the scheduler asks its plugins, and how the answers combine.

This table is the whole plugin contract: a plugin answers a question by having a method of that name. Answers come
lazily, tier by tier, in configured order, from the plugins whose switch for the question is on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

Tiers: TypeAlias = Iterable[Iterable[Any]]


def first_difference(tiers: Tiers) -> Any:
    """Orderings: the first plugin that tells the two apart decides; negative means the first comes first."""
    return next((answer for tier in tiers for answer in tier if answer), 0)


def first_answer(tiers: Tiers) -> Any:
    """Refusals and choices: the first plugin that has something to say decides."""
    return next((answer for tier in tiers for answer in tier if answer is not None), None)


def every(tiers: Tiers) -> bool:
    """Conditions: all must hold."""
    return all(answer for tier in tiers for answer in tier)


def some(tiers: Tiers) -> bool:
    """Alarms: one is enough."""
    return any(answer for tier in tiers for answer in tier)


def vote(tiers: Tiers) -> bool:
    """Votes: any -1 rejects at once; a tier with a +1 settles it; all abstaining permits."""
    for tier in tiers:
        permitted = False
        for answer in tier:
            if answer < 0:
                return False
            permitted = permitted or answer > 0
        if permitted:
            return True
    return True


def first_tier_agrees(tiers: Tiers) -> bool:
    """Hunger: the first tier with any plugin decides, all of it must agree; nobody to ask means no."""
    for tier in tiers:
        answers = list(tier)
        if answers:
            return all(answers)
    return False


def agreed_victims(tiers: Tiers) -> list[Any]:
    """Victims all plugins of a tier accept, in the first one's order; the first tier left with any decides.

    None abstains. An empty answer ends its tier, not the search; after an intersection came out empty the next
    plugin of the tier starts over. Both are how Volcano behaves.
    """
    for tier in tiers:
        victims: list[Any] = []
        for offer in tier:
            if offer is None:
                continue
            if not offer:
                victims = []
                break
            if victims:
                accepted = {task.uid for task in offer}
                victims = [task for task in victims if task.uid in accepted]
            else:
                victims = list(offer)
        if victims:
            return victims
    return []


def union_of_tier(tiers: Tiers) -> list[Any]:
    """All victims a tier names, each once; the first tier that names any decides."""
    for tier in tiers:
        named = {task.uid: task for offer in tier for task in offer}
        if named:
            return list(named.values())
    return []


def gathered(tiers: Tiers) -> list[Any]:
    """Everybody's answer in order; whoever asks combines them (columns are added by framework.node_answers)."""
    return [answer for tier in tiers for answer in tier]


@dataclass(frozen=True, slots=True)
class Point:
    name: str  # the method a plugin defines
    combine: Callable[[Tiers], Any]
    switches: tuple[str, ...] = ()  # keys in volcano-scheduler.conf, one of which must be on; none: always asked
    volcano: str = ""  # its name in Volcano's documentation


POINTS: Final = {
    point.name: point
    for point in (
        # who comes first
        Point("queue_order", first_difference, ("enableQueueOrder",), "QueueOrder"),
        Point("victim_queue_order", first_difference, (), "VictimQueueOrder"),
        Point("job_order", first_difference, ("enableJobOrder",), "JobOrder"),
        Point("sub_job_order", first_difference, ("enabledSubJobOrder",), "SubJobOrder"),
        Point("task_order", first_difference, ("enableTaskOrder",), "TaskOrder"),
        Point("cluster_order", first_difference, ("enabledClusterOrder",), "ClusterOrder"),
        # may it enter, is it whole
        Point("job_valid", first_answer, (), "JobValid"),
        Point("job_enqueueable", vote, ("enableJobEnqueued",), "JobEnqueueable"),
        Point("job_enqueued", gathered, ("enableJobEnqueued",), "JobEnqueued"),
        Point("job_ready", every, ("enableJobReady",), "JobReady"),
        Point("sub_job_ready", every, ("enabledSubJobReady",), "SubJobReady"),
        Point("job_pipelined", vote, ("enableJobPipelined",), "JobPipelined"),
        Point("sub_job_pipelined", vote, ("enabledSubJobPipelined",), "SubJobPipelined"),
        Point("job_starving", first_tier_agrees, ("enableJobStarving",), "JobStarving"),
        # what a queue may have
        Point("overused", some, ("enabledOverused",), "Overused"),
        Point("allocatable", every, ("enabledAllocatable",), "Allocatable"),
        Point("preemptive", every, ("enablePreemptive",), "Preemptive"),
        # which nodes, and which of them is best
        Point("pre_filter", first_answer, ("enablePredicate",), "PrePredicate"),
        Point("node_filter", gathered, ("enablePredicate",), "Predicate"),
        Point("node_score", gathered, ("enableNodeOrder",), "NodeOrder"),
        Point("batch_node_score", gathered, ("enableNodeOrder",), "BatchNodeOrder"),
        Point("node_map", gathered, ("enableNodeOrder",), "NodeMap"),
        Point("node_reduce", gathered, ("enableNodeOrder",), "NodeReduce"),
        Point("best_node", first_answer, ("enableBestNode",), "BestNode"),
        Point("reserved_nodes", gathered, ("enableReservedNodes",), "ReservedNodes"),
        Point("target_job", first_answer, ("enableTargetJob",), "TargetJob"),
        # which hypernodes
        Point("domain_score", gathered, ("enabledHyperNodeOrder",), "HyperNodeOrder"),
        Point("domain_gradient_for_job", first_answer, ("enabledHyperNodeGradient",), "HyperNodeGradientForJob"),
        Point("domain_gradient_for_sub_job", first_answer, ("enabledHyperNodeGradient",), "HyperNodeGradientForSubJob"),
        # who must go
        Point("preemptable", agreed_victims, ("enablePreemptable",), "Preemptable"),
        Point("reclaimable", agreed_victims, ("enableReclaimable",), "Reclaimable"),
        Point("evictable", agreed_victims, (), "UnifiedEvictable"),
        Point("victim_tasks", union_of_tier, ("enabledVictim",), "VictimTasks"),
        # what if, and what happened
        Point("simulate_filter", first_answer, ("enablePredicate",), "SimulatePredicate"),
        Point("simulate_allocatable", every, ("enabledAllocatable",), "SimulateAllocatable"),
        Point("simulate_add_task", first_answer, ("enablePreemptable", "enabledAllocatable"), "SimulateAddTask"),
        Point("simulate_remove_task", first_answer, ("enablePreemptable", "enabledAllocatable"), "SimulateRemoveTask"),
        Point("on_allocate", gathered, (), "AllocateFunc"),
        Point("on_deallocate", gathered, (), "DeallocateFunc"),
    )
}
