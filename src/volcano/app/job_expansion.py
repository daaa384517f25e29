"""The PodGroup and the pods that a Job would become, as the job controller would create them.

The scheduler's simulation asks for this; it may import neither admission nor controllers, so the composition root
hands this function to the scheduler service.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from volcano.admission.job_defaults import defaulted_task
from volcano.api.batch import Job
from volcano.api.indexes import PODS_BY_JOB
from volcano.api.meta import JSON, Resource
from volcano.controllers.job.groups import group_steps
from volcano.controllers.job.pods import build_pod, may_start
from volcano.controllers.job.view import JobView, task_name
from volcano.machinery.plan import Create
from volcano.machinery.world import frozen_world
from volcano.scheduler.service.job_expansion import BadSimulation, ExpandedJob, read_object


def expand_job(
    body: JSON,
    objects: Iterable[Resource],
    *,
    default_queue: str,
    scheduler_name: str,
    now: datetime,
    max_pods: int,
) -> ExpandedJob:
    """Build what the job controller would create first.

    A body that has not been stored yet gets the defaults of admission. One that has been stored is taken as it is:
    where admission is switched off, it has none, and the controller acts on that.
    """
    spec = dict(body.get("spec") or {})
    tasks = [t for t in spec.get("tasks") or () if isinstance(t, dict)]
    if not (body.get("metadata") or {}).get("uid"):
        tasks = [defaulted_task(task, place) for place, task in enumerate(tasks)]
    least = sum(int(task.get("minAvailable") or 0) for task in tasks)
    spec = {"queue": default_queue, "schedulerName": scheduler_name, "minAvailable": least, **spec}
    job: Job = read_object(Job, {**body, "spec": {**spec, "tasks": tasks}}, 0)
    if sum(task.replicas for task in job.spec.tasks) > max_pods:
        raise BadSimulation(f"at most {max_pods} pods at once")
    view = JobView(job, frozen_world(*objects, now=now, indexes=PODS_BY_JOB))
    groups = [step.body for step in group_steps(view, "") if isinstance(step, Create)]
    pods = [
        (index, {**pod, "status": {"phase": "Pending"}})
        for task in job.spec.tasks
        for index, pod in enumerate(build_pod(view, task, number, plugins=[]) for number in range(task.replicas))
    ]
    return ExpandedJob(
        groups,
        pods,
        replicas={task_name(task): task.replicas for task in job.spec.tasks},
        after={
            task_name(task): task.depends_on.name
            for task in job.spec.tasks
            if task.depends_on is not None and not may_start(view, task)
        },
    )
