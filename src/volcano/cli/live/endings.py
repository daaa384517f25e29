"""How a job ended, in words: pods that were ended because the job had completed have not failed."""

from __future__ import annotations

from collections import Counter

from volcano.api.batch import TASK_SPEC_KEY, Job
from volcano.api.core import Pod

ENDED_BY_SIGNAL = (137, 143)
"""Exit codes of a container that was stopped: killed, terminated."""
ENDED_WITH_JOB = "ended with the job"


def was_ended_with(job: Job | None, pod: Pod) -> bool:
    """Whether the pod was stopped because its job is, or is about to be, Completed."""
    if job is None or pod.status.phase != "Failed" or job.status.state.phase not in ("Completing", "Completed"):
        return False
    return was_stopped(pod)


def was_stopped(pod: Pod) -> bool:
    """Whether its containers ended well or by a signal, and not by themselves with an error."""
    ended = [each.state.terminated for each in pod.status.container_statuses if each.state.terminated is not None]
    return all(each.exit_code in (0, *ENDED_BY_SIGNAL) for each in ended)


def ending(job: Job, pods: list[Pod]) -> str:
    """`master succeeded; 2 workers ended with it` where a task completed the job, else how many pods succeeded."""
    wanted = sum(task.replicas for task in job.spec.tasks)
    succeeded = Counter(_task(pod) for pod in pods if pod.status.phase == "Succeeded")
    winners = [task.name for task in job.spec.tasks if task.replicas and succeeded[task.name] == task.replicas]
    if job.status.state.phase != "Completed" or job.status.succeeded == wanted or not winners:
        return f"{job.status.succeeded} of {wanted} pods succeeded"
    others = [
        _counted(task.replicas - succeeded[task.name], task.name)
        for task in job.spec.tasks
        if task.replicas > succeeded[task.name]
    ]
    return f"{', '.join(winners)} succeeded; {', '.join(others)} ended with {'it' if len(winners) == 1 else 'them'}"


def _task(pod: Pod) -> str:
    return pod.annotations.get(TASK_SPEC_KEY, "")


def _counted(count: int, task: str) -> str:
    return f"{count} {task}{'s' if count > 1 and not task.endswith('s') else ''}"
