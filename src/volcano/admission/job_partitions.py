"""Partition policies of tasks: the numbers must add up. Checked on creation and on update."""

from __future__ import annotations

from volcano.admission.topologies import both_tiers_message, gives_both_tiers
from volcano.api.batch import TaskSpec


def partition_problems(task: TaskSpec) -> list[str]:
    """The first flaw in the numbers, and both ways of giving a tier."""
    policy = task.partition_policy
    if policy is None:
        return []
    problems: list[str] = []
    size, minimum = policy.partition_size, policy.min_partitions
    if policy.total_partitions <= 0:
        problems.append(f"'totalPartitions' must be greater than 0 in task: {task.name}")
    elif size <= 0:
        problems.append(f"'partitionSize' must be greater than 0 in task: {task.name}")
    elif task.replicas != policy.total_partitions * size:
        problems.append(f"'replicas' is not equal to 'totalPartitions'*'partitionSize' in task: {task.name}")
    elif task.min_available is not None and minimum > 0 and minimum * size != task.min_available:
        problems.append(f"'minAvailable' is not equal to 'minPartitions'*'partitionSize' in task: {task.name}")
    if gives_both_tiers(policy.network_topology):
        problems.append(both_tiers_message(f"the partitionPolicy of task {task.name}"))
    return problems
