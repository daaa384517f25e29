"""`vcctl job explain NAME`: why is my job pending? Fetches what was written about it, asks the scheduler, prints."""

from __future__ import annotations

import msgspec

from volcano.api.batch import JOB_NAME_KEY
from volcano.api.jobs.explanation import TaskNodes
from volcano.api.jobs.simulation import Simulation
from volcano.api.meta import JSON
from volcano.cli.command_line import Called, say
from volcano.cli.connection import ApiConnection, connect
from volcano.cli.dry_run import simulated
from volcano.cli.explanation import NOTHING, JobExplanation, JobFacts, explain
from volcano.cli.failures import Failed
from volcano.cli.output import as_text, form_of
from volcano.cli.resources import EVENTS, JOBS, POD_GROUPS, PODS

MAX_CAUSES = 4
MAX_NAMES = 8


def explain_job(called: Called) -> None:
    connection, values = connect(called), called.values
    name = values["name"]
    if not name:
        raise Failed("job name is mandatory to explain a particular job")
    found = explain(gather(connection, values["namespace"], name))
    form = form_of(called)
    say(as_text(msgspec.to_builtins(found), form).rstrip("\n") if form in ("json", "yaml") else rendered(found))


def gather(connection: ApiConnection, namespace: str, name: str) -> JobFacts:
    """The objects of one job, and the scheduler's answer about its PodGroup."""
    job = connection.get(JOBS, namespace, name)
    group = next((each for each in connection.list(POD_GROUPS, namespace) if _belongs(each, job)), None)
    return JobFacts(
        job,
        group,
        connection.list(PODS, namespace, labelSelector=f"{JOB_NAME_KEY}={name}"),
        connection.list(EVENTS, namespace, fieldSelector=f"involvedObject.uid={job['metadata']['uid']}"),
        _simulation(connection, job, group) if group is not None else None,
    )


def _simulation(connection: ApiConnection, job: JSON, group: JSON) -> Simulation | None:
    """None when the scheduler does not answer simulations, as Volcano's own does not."""
    metadata = group["metadata"]
    question = {"podGroup": f"{metadata.get('namespace', '')}/{metadata['name']}", "job": job}
    try:
        return simulated(connection, question)
    except Failed:
        return None


def _belongs(group: JSON, job: JSON) -> bool:
    owners = group["metadata"].get("ownerReferences") or ()
    return any(owner.get("uid") == job["metadata"]["uid"] for owner in owners)


def rendered(found: JobExplanation) -> str:
    """For people: the first blocking reason first."""
    if found.verdict == NOTHING:
        return f"{found.job} is {found.phase}: {found.reason}"
    waiting = sum(task.pending for task in found.tasks)
    some = f"{waiting} more pod{'s' * (waiting > 1)} " if found.phase == "Running" and waiting else ""
    lines = [f"{found.job} is {found.phase}: {some}{found.verdict}"]
    by = f", plugin: {found.plugin}" if found.plugin else ""
    lines.append(f"  why    {found.reason} (stage: {found.stage}{by})")
    if found.never_because:
        lines.append(f"  never  {found.never_because}")
    for task in found.tasks:
        lines += _task_lines(task)
    if found.queue is not None and found.queue.position:
        queue = found.queue
        ahead = f"; ahead: {', '.join(queue.ahead[:MAX_CAUSES])}" if queue.ahead else ""
        lines.append(f"  queue  {queue.name} ({queue.state}): {queue.position} of {queue.waiting} waiting{ahead}")
    if found.would_preempt:
        lines.append(f"  next   the scheduler would preempt {_some(found.would_preempt)}")
    elif found.waits_for:
        ending = [name for names in found.waits_for.values() for name in names]
        until = f" until {_some(ending)} ended" if ending else ""
        lines.append(f"  next   room on {_some(list(found.waits_for))} is promised to it, it waits{until}")
    return "\n".join(lines)


def _some(names: list[str]) -> str:
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(names[:MAX_NAMES]) + more


def _task_lines(task: TaskNodes) -> list[str]:
    lines = [f"  nodes  task {task.task} ({task.pending} of {task.replicas} to place): {task}"]
    last = task.first_empty or task.stages[-1]
    causes = list(last.causes.items())[:MAX_CAUSES]
    if causes:
        lines.append(f"         {', '.join(f'{count} × {cause}' for cause, count in causes)}")
    return lines
