"""`vcctl job explain NAME`: why is my job pending?"""

from __future__ import annotations

import msgspec

from volcano.api.meta import JSON
from volcano.api.scheme import find_resource_type
from volcano.cli.command_line import Called, say
from volcano.cli.connection import Connection, connect
from volcano.cli.dry_run import answer_to
from volcano.cli.explanation import LATER, NOTHING, Explanation, Facts, TaskFunnel, explain, foreseen
from volcano.cli.failures import Failed
from volcano.cli.output import as_text, form_of
from volcano.cli.resources import EVENTS, JOBS, NODES, POD_GROUPS, PODS, QUEUES

CAUSES_SHOWN = 4
NAMES_SHOWN = 8


def explain_job(called: Called) -> None:
    connection, values = connect(called), called.values
    name = values["name"] or (called.arguments[0] if called.arguments else "")
    if not name:
        raise Failed("job name is mandatory to explain a particular job")
    facts = gather(connection, values["namespace"], name)
    found = explain(facts)
    if found.verdict == LATER and facts.group is not None:
        found = foreseen(found, facts, outlook(connection, facts.group))
    form = form_of(called)
    say(as_text(msgspec.to_builtins(found), form).rstrip("\n") if form in ("json", "yaml") else rendered(found))


def outlook(connection: Connection, group: JSON) -> JSON:
    """What the scheduler would do for it next; nothing when it cannot be asked, as Volcano's own cannot."""
    metadata = group["metadata"]
    try:
        answer = answer_to(connection, {"podGroup": f"{metadata.get('namespace', '')}/{metadata['name']}"})
    except Failed:
        return {}
    return answer if "pods" in answer else {}


def gather(connection: Connection, namespace: str, name: str) -> Facts:
    """Everything an explanation looks at, as it is now."""
    job = connection.get(JOBS, namespace, name)
    groups = connection.list(POD_GROUPS)
    classes = find_resource_type("scheduling.k8s.io", "PriorityClass")
    assert classes is not None, "PriorityClass is in the scheme"
    priorities = {each["metadata"]["name"]: each.get("value", 0) for each in connection.list(classes)}
    return Facts(
        job,
        next((group for group in groups if _belongs(group, job)), None),
        connection.list(QUEUES),
        groups,
        connection.list(NODES),
        connection.list(PODS),
        priorities,
        connection.list(EVENTS, namespace, fieldSelector=f"involvedObject.uid={job['metadata']['uid']}"),
    )


def _belongs(group: JSON, job: JSON) -> bool:
    owners = group["metadata"].get("ownerReferences") or ()
    return any(owner.get("uid") == job["metadata"]["uid"] for owner in owners)


def rendered(found: Explanation) -> str:
    """For people: the first blocking reason first."""
    if found.verdict == NOTHING:
        return f"{found.job} is {found.phase}: {found.reason}"
    waiting = sum(task.pending for task in found.tasks)
    some = f"{waiting} more pod{'s' * (waiting > 1)} " if found.phase == "Running" and waiting else ""
    lines = [f"{found.job} is {found.phase}: {some}{found.verdict}"]
    by = f", said by {found.plugin}" if found.plugin else ""
    lines.append(f"  why    {found.reason} (stage: {found.stage}{by})")
    if found.never_because:
        lines.append(f"  never  {found.never_because}")
    for task in found.tasks:
        lines += _task_lines(task)
    if found.queue is not None and found.queue.position:
        queue = found.queue
        ahead = f"; ahead: {', '.join(queue.ahead[:CAUSES_SHOWN])}" if queue.ahead else ""
        lines.append(f"  queue  {queue.name} ({queue.state}): {queue.position} of {queue.waiting} waiting{ahead}")
    if found.would_preempt:
        lines.append(f"  next   the scheduler would preempt {_some(found.would_preempt)}")
    elif found.waits_for:
        ending = [name for names in found.waits_for.values() for name in names]
        until = f" until {_some(ending)} ended" if ending else ""
        lines.append(f"  next   room on {_some(list(found.waits_for))} is promised to it, it waits{until}")
    return "\n".join(lines)


def _some(names: list[str]) -> str:
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return ", ".join(names[:NAMES_SHOWN]) + more


def _task_lines(task: TaskFunnel) -> list[str]:
    lines = [f"  nodes  task {task.task} ({task.pending} of {task.replicas} to place): {task.funnel}"]
    last = task.funnel.first_empty or task.funnel.stages[-1]
    causes = list(last.causes.items())[:CAUSES_SHOWN]
    if causes:
        lines.append(f"         {', '.join(f'{count} × {cause}' for cause, count in causes)}")
    return lines
