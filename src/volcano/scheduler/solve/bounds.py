"""How many tasks of a sub-job a domain could hold at most, so that domains that are too small need not be tried.

The bound errs only upwards: it counts each node by room alone (and by filters, where a placement does not change
them), as if every task were as small as the smallest.
"""

from __future__ import annotations

import numpy as np

from volcano.scheduler.core.node_table import Column
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import EPSILON, Job, Resources, SubJob, Task
from volcano.scheduler.solve.backlog import JobBacklog


def needed(session: Session, job: Job, sub_job: SubJob) -> int:
    """How many more tasks must be placed for the sub-job to be kept; 0 when the gang plugin does not decide that."""
    ready, pipelined = ("sub_job_ready", "sub_job_pipelined") if job.has_policies else ("job_ready", "job_pipelined")
    if not any(plugin.name == "gang" for plugin in session.ask.plugins(ready)) or not session.ask.is_final_vote(
        pipelined
    ):
        return 0
    counts, least = (sub_job.counts, sub_job.min_available) if job.has_policies else (job.counts, job.min_available)
    return max(least - counts.ready_or_free - counts.waiting, 0)


def bounds_of(session: Session, job: Job, backlog: JobBacklog) -> dict[str, Column]:
    """For sub-jobs of which several tasks are needed: the most tasks that each domain could take."""
    found: dict[str, Column] = {}
    alike: dict[frozenset[int], Column] = {}
    for id, line in backlog.lines.items():
        if needed(session, job, job.sub_jobs[id]) > 1:
            shapes = {task.shape.number: task for task in line}
            kind = frozenset(shapes)
            if kind not in alike:
                alike[kind] = most_tasks(session, list(shapes.values()))
            found[id] = alike[kind]
    return found


def most_tasks(session: Session, tasks: list[Task]) -> Column:
    """Of tasks like these, the most that each domain could take."""
    most = np.zeros(len(session.table))
    allowed = np.zeros(len(session.table), dtype=bool)
    for task in tasks:
        filtered = session.nodes.filtered(task)
        allowed |= filtered.ok if filtered.local else True
    most[allowed] = _by_room(session, _smallest(tasks))[allowed]
    counts: Column = session.domain_columns.sums(most[None, :])[0]
    return counts


def _smallest(tasks: list[Task]) -> Resources:
    """What even the least demanding asks for, resource by resource."""
    first, *others = [task.request for task in tasks] or [Resources()]
    return Resources({name: min([first[name], *(other[name] for other in others)]) for name in first})


def _by_room(session: Session, request: Resources) -> Column:
    table = session.table
    most: Column = np.full(len(table), np.inf)
    for name in request.names:
        most = np.minimum(most, np.floor((table.future_idle[table.resources[name]] + EPSILON) / request[name]))
    return np.clip(most, 0.0, None)
