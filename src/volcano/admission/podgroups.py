"""/podgroups/mutate and /podgroups/validate: the queue of a PodGroup, and its topology constraints."""

from __future__ import annotations

from typing import Final

from volcano.admission.queue_resources import amounts
from volcano.admission.review import (
    ALLOWED,
    DEFAULT_QUEUE,
    FieldChange,
    Reader,
    ReviewAnswer,
    Settings,
    change,
    read,
    refuse_all,
    section,
)
from volcano.admission.submitters import submitter_changes, submitter_problem
from volcano.admission.topologies import both_tiers_message, gives_both_tiers
from volcano.api.core import Namespace
from volcano.api.jobs.estimates import annotation_problem
from volcano.api.meta import Key
from volcano.api.quantity import QuantityError
from volcano.api.scheduling import QUEUE_NAME_ANNOTATION, PodGroup, Queue
from volcano.machinery.admission import UPDATE, Attributes

MAX_SHOWN_CHARACTERS: Final = 100


def mutate_podgroup(attributes: Attributes, reader: Reader, settings: Settings) -> ReviewAnswer:
    """A group in the default queue moves to the queue in its namespace's annotation; who submitted it is written."""
    group = read(PodGroup, attributes.object)
    if isinstance(group, ReviewAnswer):
        return group
    changes = (*_queue_changes(group, attributes, reader), *submitter_changes(attributes, settings))
    return ReviewAnswer(changes) if changes else ALLOWED


def _queue_changes(group: PodGroup, attributes: Attributes, reader: Reader) -> tuple[FieldChange, ...]:
    namespace = reader.get(Namespace, Key("", attributes.namespace or group.namespace))
    queue = namespace.annotations.get(QUEUE_NAME_ANNOTATION, "") if namespace is not None else ""
    if group.spec.queue != DEFAULT_QUEUE or not queue:
        return ()
    if not isinstance((attributes.object or {}).get("spec"), dict):
        return (change("spec", value={"queue": queue}),)
    return (change("spec", "queue", value=queue),)


def validate_podgroup(attributes: Attributes, reader: Reader, settings: Settings) -> ReviewAnswer:
    group = read(PodGroup, attributes.object)
    if isinstance(group, ReviewAnswer):
        return group
    problems = _minimum_problems(group)
    problems += [problem for problem in (submitter_problem(attributes, settings),) if problem]
    if attributes.operation == UPDATE:  # what else is checked concerns what is submitted; a queue may close later
        return refuse_all(problems)
    problems = _queue_problems(str(section(attributes.object, "spec").get("queue") or ""), reader) + problems
    if gives_both_tiers(group.spec.network_topology):
        problems.append(both_tiers_message("networkTopology"))
    offender = next((p for p in group.spec.sub_group_policy if gives_both_tiers(p.network_topology)), None)
    if offender is not None:
        problems.append(both_tiers_message(f"the networkTopology of subGroupPolicy {offender.name}"))
    if estimate := annotation_problem(group.annotations):
        problems.append(estimate)
    return refuse_all(problems)


def _minimum_problems(group: PodGroup) -> list[str]:
    """A negative minimum would be added to what the queue has left; one that is no amount cannot be compared."""
    numbers = [
        f"spec.minTaskMember[{task}]: Invalid value: {number}: must be greater than or equal to 0"
        for task, number in sorted(group.spec.min_task_member.items())
        if number < 0
    ]
    stated = group.spec.min_resources or {}
    readable = amounts(stated)
    flaws = {name: QuantityError.MESSAGE for name in stated if name not in readable}
    flaws |= {name: "must be greater than or equal to 0" for name, amount in readable.items() if amount.nanos < 0}
    return numbers + [
        f'spec.minResources[{name}]: Invalid value: "{str(stated[name])[:MAX_SHOWN_CHARACTERS]}": {flaws[name]}'
        for name in sorted(flaws)
    ]


def _queue_problems(name: str, reader: Reader) -> list[str]:
    if not name:
        return []
    queue = reader.get(Queue, Key("", name))
    if queue is None:
        return [f"unable to find queue: queue {name} does not exist"]
    if queue.status.state != "Open":
        state = queue.status.state or "not known yet"
        return [f"can only submit PodGroup to queue with state `Open`, queue `{name}` status is `{state}`"]
    return []
