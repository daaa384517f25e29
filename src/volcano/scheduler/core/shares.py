"""What a job adds to its queue's account: how much it waits for, and how much it could give up. No policy here."""

from __future__ import annotations

from volcano.scheduler.model import CPU, MEMORY, PODS, Job, Resources


def spoken_for(job: Job) -> Resources:
    """What a job let in still waits for: of one in the queue, or of one running at its minimum."""
    if job.min_resources is None or not counts_as_inqueue(job):
        return Resources()
    return job.without_gated(still_missing(job))


def inqueue_minimum(job: Job) -> Resources:
    """Of a job in the queue its whole minimum; of one running at its minimum what that still lacks."""
    if job.min_resources is None or not counts_as_inqueue(job):
        return Resources()
    return job.without_gated(job.min_resources if job.phase == "Inqueue" else still_missing(job))


def counts_as_inqueue(job: Job) -> bool:
    least = job.group.spec.min_member if job.group else 0
    return job.phase == "Inqueue" or (job.phase == "Running" and job.allocated_count >= least)


def still_missing(job: Job) -> Resources:
    """Of the minimum, what is not allocated yet."""
    missing = Resources()
    least = job.min_resources or missing
    for name, amount in least.amounts.items():
        if name in (CPU, MEMORY):
            missing.amounts[name] = max(amount - job.allocated[name], 0.0)
        elif name not in job.allocated:
            if name != PODS or amount > 0.0:
                missing.amounts[name] = amount
        elif amount - job.allocated[name] > 0.0:
            missing.amounts[name] = amount - job.allocated[name]
    return missing


def elastic(job: Job) -> Resources:
    """What a job holds beyond its minimum, and could be without."""
    return job.allocated.exceeding(job.min_resources or Resources())
