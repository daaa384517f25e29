"""Why a job waits, from the recorded typed reason and the API's objects: the stage, the numbers, the nodes, the queue.

Pure: `explain` is a function of objects. Asking for them and printing is cli.explain's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from volcano.api.meta import JSON
from volcano.api.quantity import Quantity, parse_quantity
from volcano.api.scheduling import WHY_ANNOTATION
from volcano.api.why import Why, decode_why
from volcano.cli.node_funnel import Amounts, Funnel, funnel, pod_requests, used_by_pods

NOTHING, LATER, NEVER = "nothing blocks it", "will run later", "will never run as it is"
FINISHED = ("Completed", "Failed", "Terminated", "Aborted")
HOLDERS_SHOWN = 5


class TaskFunnel(msgspec.Struct, frozen=True):
    task: str
    replicas: int
    pending: int
    funnel: Funnel


class QueueView(msgspec.Struct, frozen=True):
    """The job's queue: its state, what it holds of what it may, and who is ahead of the job."""

    name: str
    state: str
    position: int = 0
    waiting: int = 0
    ahead: list[str] = []
    amounts: dict[str, str] = {}  # resource → "3 of 12 free"
    holders: list[str] = []


class Explanation(msgspec.Struct, frozen=True):
    """The answer."""

    job: str
    phase: str
    verdict: str
    stage: str
    reason: str
    plugin: str = ""
    counts: dict[str, int] = {}
    never_because: str = ""
    tasks: list[TaskFunnel] = []
    queue: QueueView | None = None
    would_preempt: list[str] = []  # namespace/pod, as the scheduler says
    waits_for: dict[str, list[str]] = {}  # node → pods that are being ended there, whose room is promised to the job


class Facts(msgspec.Struct, frozen=True):
    """The objects an explanation is made from."""

    job: JSON
    group: JSON | None
    queues: Sequence[JSON]
    groups: Sequence[JSON]
    nodes: Sequence[JSON]
    pods: Sequence[JSON]
    priorities: Mapping[str, int] = {}
    events: Sequence[JSON] = ()  # about the job


def explain(facts: Facts) -> Explanation:
    job = facts.job
    phase = ((job.get("status") or {}).get("state") or {}).get("phase") or "Pending"
    name = f"{job['metadata'].get('namespace', '')}/{job['metadata']['name']}"
    if phase in FINISHED:
        return Explanation(name, phase, NOTHING, "", f"the job is {phase}")
    used = used_by_pods(facts.pods)
    tasks = _task_funnels(facts, used)
    queue = _queue_view(facts, used)
    stage, why = _first_reason(facts, queue, tasks)
    if not stage:
        return Explanation(name, phase, NOTHING, "", why.message, tasks=tasks, queue=queue)
    never = _never(facts, tasks, stage)
    return Explanation(
        name,
        phase,
        NEVER if never else LATER,
        stage,
        str(why) or why.cause,
        why.plugin,
        dict(why.counts),
        never,
        tasks,
        queue,
    )


def foreseen(found: Explanation, facts: Facts, answer: JSON) -> Explanation:
    """With what the scheduler says it would do for the job next."""
    pods = answer.get("pods") or {}
    victims = [str(each["pod"]) for each in answer.get("evictions") or () if each.get("for") in pods]
    nodes = {str(pod["waitsFor"]) for pod in pods.values() if pod.get("waitsFor")}
    ending: dict[str, list[str]] = {node: [] for node in sorted(nodes)}
    for pod in facts.pods:
        node = (pod.get("spec") or {}).get("nodeName")
        name = f"{pod['metadata'].get('namespace', '')}/{pod['metadata']['name']}"
        if node in ending and (pod["metadata"].get("deletionTimestamp") or name in victims):
            ending[node].append(name)
    return msgspec.structs.replace(found, would_preempt=sorted(victims), waits_for=ending)


# -- the first blocking reason ----------------------------------------------------------------------------------
def _first_reason(facts: Facts, queue: QueueView, tasks: list[TaskFunnel]) -> tuple[str, Why]:
    if not queue.state:
        return "queue", Why("queue", "QueueNotFound", message=f"there is no queue {queue.name}")
    if queue.state in ("Closed", "Closing") and _group_phase(facts) in ("", "Pending"):
        return "queue", Why("queue", "QueueClosed", message=f"queue {queue.name} is {queue.state}")
    if facts.group is None:
        return "admission", Why("admission", "NoPodGroup", message="the job controller has not made its PodGroup yet")
    recorded = decode_why((facts.group["metadata"].get("annotations") or {}).get(WHY_ANNOTATION) or "")
    if recorded is not None:
        return recorded.stage, _with_queue_numbers(recorded, queue)
    if not any(task.pending for task in tasks):
        return "", Why("", "", message="all its pods are placed")
    if _group_phase(facts) in ("", "Pending"):
        return "enqueue", Why("enqueue", "NotLookedAtYet", message="the scheduler has not admitted it to its queue yet")
    refused = _refused(facts)
    if refused:
        return "admission", Why("admission", "FailedCreate", message=refused)
    told = _told_of_pods(facts)
    return "fit", Why(
        "fit", "Unschedulable" if told else "NotLookedAtYet", message=told or "its pods have not been tried yet"
    )


def _refused(facts: Facts) -> str:
    """What the API server said when the job's pods were to be made, while there are none."""
    if any(_is_mine(facts, pod) for pod in facts.pods):
        return ""
    failed = [event for event in facts.events if event.get("reason") == "FailedCreate"]
    return str(max(failed, key=_last_seen).get("message") or "") if failed else ""


def _last_seen(event: JSON) -> str:
    return str(event.get("lastTimestamp") or event["metadata"].get("creationTimestamp") or "")


def _told_of_pods(facts: Facts) -> str:
    """What the scheduler wrote on a pod that waits: of a gang that runs, it is the only place."""
    for pod in facts.pods:
        if _is_mine(facts, pod) and not (pod.get("spec") or {}).get("nodeName"):
            for condition in (pod.get("status") or {}).get("conditions") or ():
                if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
                    return str(condition.get("message") or "")
    return ""


def _is_mine(facts: Facts, pod: JSON) -> bool:
    metadata, annotations = facts.job["metadata"], pod["metadata"].get("annotations") or {}
    mine = (metadata.get("namespace", ""), metadata["name"])
    return (pod["metadata"].get("namespace", ""), annotations.get("volcano.sh/job-name")) == mine


def _with_queue_numbers(why: Why, queue: QueueView) -> Why:
    """A refusal by the queue says what the queue holds and who holds it."""
    if why.stage not in ("quota", "enqueue") or not queue.amounts:
        return why
    amounts = "; ".join(f"{text} {resource}" for resource, text in queue.amounts.items())
    held = f", held by {' and '.join(queue.holders)}" if queue.holders else ""
    return msgspec.structs.replace(why, message=f"{why.message or why.cause}; queue {queue.name} has {amounts}{held}")


def _group_phase(facts: Facts) -> str:
    return str(((facts.group or {}).get("status") or {}).get("phase") or "")


# -- never, or only not now -------------------------------------------------------------------------------------
def _never(facts: Facts, tasks: list[TaskFunnel], stage: str) -> str:
    """Why no waiting will help, or nothing: as nodes, queue limits and the job are now."""
    if stage == "queue":
        return ""
    if stage == "gang" and (held := _held_by_own_gang(facts)):
        return held
    for task in tasks:
        needed = _needed(facts, task.task)
        if not needed:
            continue
        for each in task.funnel.stages[:-1]:
            if each.nodes == 0:
                return f"task {task.task}: no node would do even if all were free ({task.funnel})"
        if task.funnel.holds < needed:
            return f"task {task.task} needs {needed} pods at once, all suitable nodes together hold {task.funnel.holds}"
    return _beyond_capability(facts)


def _held_by_own_gang(facts: Facts) -> str:
    """A task that comes after another is not there while the gang is placed: it must not be needed for it."""
    spec = facts.job.get("spec") or {}
    tasks = spec.get("tasks") or ()
    later = [task for task in tasks if (task.get("dependsOn") or {}).get("name")]
    at_once, least = _total([task for task in tasks if task not in later]), spec.get("minAvailable", 0)
    if not later or least <= at_once:
        return ""
    names = " and ".join(f"{task.get('name', '')} (after {', '.join(task['dependsOn']['name'])})" for task in later)
    return f"minAvailable {least} needs {names} from the start, but only {at_once} pods come before; lower minAvailable"


def _needed(facts: Facts, task_name: str) -> int:
    """Pods of a task that must run together."""
    spec = facts.job.get("spec") or {}
    tasks = spec.get("tasks") or []
    for task in tasks:
        if task.get("name", "") == task_name:
            at_least = task.get("minAvailable")
            if at_least is None:
                at_least = task.get("replicas", 0) if spec.get("minAvailable", 0) >= _total(tasks) else 1
            return int(min(at_least, task.get("replicas", 0)))
    return 0


def _total(tasks: Sequence[JSON]) -> int:
    return sum(task.get("replicas", 0) for task in tasks)


def _beyond_capability(facts: Facts) -> str:
    wanted = _gang_amounts(facts)
    name, seen = _queue_name(facts), set()
    known = {queue["metadata"]["name"]: queue for queue in facts.queues}
    while name in known and name not in seen:
        seen.add(name)
        spec = known[name].get("spec") or {}
        for resource, amount in (spec.get("capability") or {}).items():
            if wanted.get(resource, Quantity(0)) > parse_quantity(amount):
                return f"it needs {wanted[resource]} {resource} at once; queue {name} may never have more than {amount}"
        name = spec.get("parent") or ("root" if name != "root" else "")
    return ""


def _gang_amounts(facts: Facts) -> Amounts:
    total: Amounts = {}
    for task in (facts.job.get("spec") or {}).get("tasks") or ():
        each = pod_requests((task.get("template") or {}).get("spec") or {})
        for resource, amount in each.items():
            more = amount * _needed(facts, task.get("name", ""))
            total[resource] = total[resource] + more if resource in total else more
    return total


# -- nodes ------------------------------------------------------------------------------------------------------
def _task_funnels(facts: Facts, used: Mapping[str, Amounts]) -> list[TaskFunnel]:
    placed: dict[str, int] = {}
    for pod in facts.pods:
        if _is_mine(facts, pod) and (pod.get("spec") or {}).get("nodeName"):
            task = (pod["metadata"].get("annotations") or {}).get("volcano.sh/task-spec", "")
            placed[task] = placed.get(task, 0) + 1
    found = []
    for task in (facts.job.get("spec") or {}).get("tasks") or ():
        spec = (task.get("template") or {}).get("spec") or {}
        name, replicas = task.get("name", ""), task.get("replicas", 0)
        pending = max(0, replicas - placed.get(name, 0))
        if pending:
            found.append(TaskFunnel(name, replicas, pending, funnel(spec, facts.nodes, used)))
    return found


# -- the queue --------------------------------------------------------------------------------------------------
def _queue_name(facts: Facts) -> str:
    return str((facts.job.get("spec") or {}).get("queue") or "default")


def _queue_view(facts: Facts, used: Mapping[str, Amounts]) -> QueueView:
    name = _queue_name(facts)
    queue = next((each for each in facts.queues if each["metadata"]["name"] == name), None)
    if queue is None:
        return QueueView(name, "")
    waiting = sorted(
        (g for g in facts.groups if _in_queue(g, name) and _phase(g) in ("", "Pending", "Inqueue")),
        key=lambda group: _rank(group, facts.priorities),
    )
    mine = facts.group["metadata"]["name"] if facts.group is not None else ""
    names = [group["metadata"]["name"] for group in waiting]
    position = names.index(mine) + 1 if mine in names else 0
    ahead = [_owner_name(group) for group in waiting[: max(0, position - 1)]]
    state = (queue.get("status") or {}).get("state") or "Open"
    amounts = _queue_amounts(facts, queue)
    return QueueView(name, state, position, len(waiting), ahead, amounts, _holders(facts, name))


def _queue_amounts(facts: Facts, queue: JSON) -> dict[str, str]:
    """Of the limits that exist, what is free: capability, else deserved."""
    spec, status = queue.get("spec") or {}, queue.get("status") or {}
    limits = spec.get("capability") or spec.get("deserved") or {}
    allocated = status.get("allocated") or {}
    asked = _gang_amounts(facts)
    found = {}
    for resource, limit in sorted(limits.items()):
        if asked and resource not in asked:
            continue
        free = parse_quantity(limit) - parse_quantity(allocated.get(resource, 0))
        found[resource] = f"{free} of {limit} free"
    return found


def _holders(facts: Facts, queue: str) -> list[str]:
    running = [g for g in facts.groups if _in_queue(g, queue) and _phase(g) in ("Running", "Unknown")]
    names = sorted(_owner_name(group) for group in running)
    return names[:HOLDERS_SHOWN] + ([f"{len(names) - HOLDERS_SHOWN} more"] if len(names) > HOLDERS_SHOWN else [])


def _in_queue(group: JSON, queue: str) -> bool:
    return ((group.get("spec") or {}).get("queue") or "default") == queue


def _phase(group: JSON) -> str:
    return str((group.get("status") or {}).get("phase") or "")


def _rank(group: JSON, priorities: Mapping[str, int]) -> tuple[int, str, str]:
    priority = priorities.get((group.get("spec") or {}).get("priorityClassName") or "", 0)
    return -priority, group["metadata"].get("creationTimestamp") or "", group["metadata"]["name"]


def _owner_name(group: JSON) -> str:
    owners = group["metadata"].get("ownerReferences") or [{"name": group["metadata"]["name"]}]
    return str(owners[0]["name"])
