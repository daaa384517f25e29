"""Why a job waits, put together from what the scheduler, the API server and the job controller wrote.

Pure: `explain` is a function of objects and of the scheduler's answer. It computes no fit of its own; cli.explain
fetches the objects, asks the scheduler and prints.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from volcano.api.batch import STOPPED_PHASES
from volcano.api.jobs.explanation import Explanation, QueueStanding, TaskNodes
from volcano.api.jobs.simulation import Simulation
from volcano.api.jobs.why import Why, decode_why
from volcano.api.meta import JSON
from volcano.api.scheduling import WHY_ANNOTATION

NOTHING, LATER, NEVER = "nothing blocks it", "will run later", "will never run as it is"


class JobExplanation(msgspec.Struct, frozen=True, rename="camel"):
    """The answer to `vcctl job explain`."""

    job: str
    phase: str
    verdict: str
    stage: str = ""
    reason: str = ""
    plugin: str = ""
    counts: dict[str, int] = {}
    never_because: str = ""
    tasks: list[TaskNodes] = []
    queue: QueueStanding | None = None
    would_preempt: list[str] = []  # namespace/pod
    waits_for: dict[str, list[str]] = {}  # node → pods that leave it, whose room is promised to the job


class JobFacts(msgspec.Struct, frozen=True):
    """What an explanation is made from. `simulation` is None when the scheduler does not answer simulations."""

    job: JSON
    group: JSON | None = None
    pods: Sequence[JSON] = ()  # of the job
    events: Sequence[JSON] = ()  # about the job
    simulation: Simulation | None = None


def explain(facts: JobFacts) -> JobExplanation:
    job = facts.job
    phase = ((job.get("status") or {}).get("state") or {}).get("phase") or "Pending"
    name = f"{job['metadata'].get('namespace', '')}/{job['metadata']['name']}"
    if phase in STOPPED_PHASES:
        return JobExplanation(name, phase, NOTHING, reason=f"the job is {phase}")
    found = _of_scheduler(facts)
    why = _first_reason(facts, found)
    if why is None:
        return JobExplanation(
            name, phase, NOTHING, reason="all its pods are placed", tasks=found.tasks, queue=found.queue
        )
    verdict = NEVER if found.never_because else LATER
    return JobExplanation(
        name,
        phase,
        verdict,
        why.stage,
        str(why) or why.cause,
        why.plugin,
        dict(why.counts),
        found.never_because,
        found.tasks,
        found.queue,
        _victims(facts.simulation) if verdict == LATER else [],
        found.waits_for if verdict == LATER else {},
    )


def _of_scheduler(facts: JobFacts) -> Explanation:
    jobs = facts.simulation.jobs.values() if facts.simulation is not None else ()
    return next((job.explanation for job in jobs if job.explanation is not None), Explanation())


def _victims(simulation: Simulation | None) -> list[str]:
    """Pods that the next cycle would evict for pods of this job."""
    if simulation is None:
        return []
    return sorted(each.pod for each in simulation.evictions if each.preemptor in simulation.pods)


# -- the first blocking reason ----------------------------------------------------------------------------------
def _first_reason(facts: JobFacts, found: Explanation) -> Why | None:
    """None when nothing blocks the job."""
    if facts.group is None:
        return Why("admission", "NoPodGroup", message="the job controller has not made its PodGroup yet")
    annotations = facts.group["metadata"].get("annotations") or {}
    why = found.reason or decode_why(annotations.get(WHY_ANNOTATION) or "")
    if why is not None:
        return why
    if _is_placed(facts):
        return None
    if ((facts.group.get("status") or {}).get("phase") or "Pending") == "Pending":
        return Why("enqueue", "NotLookedAtYet", message="the scheduler has not admitted it to its queue yet")
    refused = _refused(facts)
    if refused:
        return Why("admission", "FailedCreate", message=refused)
    message = _unschedulable_message(facts)
    cause = "Unschedulable" if message else "NotLookedAtYet"
    return Why("fit", cause, message=message or "its pods have not been tried yet")


def _is_placed(facts: JobFacts) -> bool:
    """Whether every pod that the job plans has a node."""
    tasks = (facts.job.get("spec") or {}).get("tasks") or ()
    placed = sum(bool((pod.get("spec") or {}).get("nodeName")) for pod in facts.pods)
    return placed >= sum(int(task.get("replicas", 0)) for task in tasks)


def _refused(facts: JobFacts) -> str:
    """The API server's message when it refused the job's pods, as long as there are none."""
    failed = [event for event in facts.events if event.get("reason") == "FailedCreate"]
    return str(max(failed, key=_last_seen).get("message") or "") if failed and not facts.pods else ""


def _last_seen(event: JSON) -> str:
    return str(event.get("lastTimestamp") or event["metadata"].get("creationTimestamp") or "")


def _unschedulable_message(facts: JobFacts) -> str:
    """The scheduler's message on a pod that waits: for a gang that runs, no other place has one."""
    for pod in facts.pods:
        if not (pod.get("spec") or {}).get("nodeName"):
            for condition in (pod.get("status") or {}).get("conditions") or ():
                if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
                    return str(condition.get("message") or "")
    return ""
