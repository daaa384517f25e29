"""The HELP text of each of the scheduler's metrics: what is measured, in which unit, of whom."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_AMOUNTS: Final = {
    "allocated": "that running jobs of the queue hold",
    "request": "that the queue's jobs hold and wait for",
    "deserved": "that the queue is entitled to; what it holds beyond may be reclaimed",
    "capacity": "that the queue may hold at most",
    "real_capacity": "that the queue may hold at most, after what is guaranteed to other queues",
    "inqueue": "that admitted jobs of the queue still wait for",
}
_UNITS: Final = {
    "milli_cpu": "CPU in thousandths",
    "memory_bytes": "Memory in bytes",
    "scalar_resources": "Other resources",
}

HELP: Final[Mapping[str, str]] = {
    "e2e_job_scheduling_duration": "Milliseconds from a job's creation to its last placed pod.",
    "e2e_job_scheduling_start_time": "When the job was created, in seconds since 1970.",
    "e2e_job_scheduling_last_time": "When a pod of the job was last placed, in seconds since 1970.",
    "pod_preemption_victims": "Pods evicted by the last preemption.",
    "unschedule_task_count": "Pods of the job that could not be placed in the last cycle.",
    "configuration_refused": "1 while the newest configuration is refused and an older one is in force, otherwise 0.",
    "unschedule_job_count": "Jobs that could not be placed in the last cycle.",
    "job_share": "The largest part of any resource of the cluster that the job holds, from 0 to 1.",
    "namespace_share": "The namespace's dominant share of the cluster, from 0 to 1.",
    "namespace_weight": "The weight by which the namespace's share is divided.",
    "namespace_weighted_share": "The namespace's dominant share divided by its weight.",
    **{
        f"queue_{amount}_{unit}": f"{what} {meaning}."
        for amount, meaning in _AMOUNTS.items()
        for unit, what in _UNITS.items()
    },
    "queue_share": "What the queue holds of its scarcest resource, divided by what it is entitled to.",
    "queue_weight": "The queue's weight.",
    "queue_overused": "1 while the queue holds more than it is entitled to and gets nothing more, else 0.",
    "total_preemption_attempts": "Preemptions that were tried since the start.",
    "job_retry_counts": "Cycles in which the job could not be placed since the start.",
    "schedule_attempts_total": "Pods that the scheduler tried to place, by result.",
    "eviction_transactions_total": "Series of evictions that were carried out as a whole, by action.",
    "estimate_extensions_total": "Times that a running job outlived its estimate, which was then doubled, by queue.",
    "e2e_scheduling_latency_milliseconds": "Duration of a scheduling cycle, from its snapshot to its decisions.",
    "open_session_duration_milliseconds": "Duration of the first part of a cycle, in which plugins read the snapshot.",
    "e2e_job_scheduling_latency_milliseconds": "Time from a job's creation to the placement of its pods.",
    "plugin_scheduling_latency_milliseconds": "Duration of a plugin's work as a cycle opens or closes.",
    "action_scheduling_latency_milliseconds": "Duration of an action of a cycle.",
    "task_scheduling_latency_milliseconds": "Time from a pod's creation to its placement.",
    "scheduling_stage_duration_milliseconds": "Duration of a stage of scheduling, by stage.",
}
