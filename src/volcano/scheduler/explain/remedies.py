"""Remedies: changes of other objects than the job, by the reason found; each is tried before it is offered.

A queue is opened or gets more, a quota is raised, a node is uncordoned, a missing object is created, a rule that keeps
room from being taken is lifted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

import msgspec
import numpy as np

from volcano.api.core import Pod
from volcano.api.quantity import QuantityError, parse_quantity
from volcano.api.why.answers import COMMAND, CREATE, ChangedObject, ProposedChange
from volcano.api.why.reasons import Finding, named
from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.explain.amounts_text import amount_text
from volcano.scheduler.explain.causes_nodes import node_masks
from volcano.scheduler.explain.causes_queues import needed_of
from volcano.scheduler.explain.command_lines import create_command, patch_command
from volcano.scheduler.explain.owners import Operation, escaped
from volcano.scheduler.explain.trials import TrialResult, TrialRules, TriedJob, attempt, opened, standing
from volcano.scheduler.explain.waiting_case import WaitingCase
from volcano.scheduler.framework.decisions import queue_allocated
from volcano.scheduler.model import Queue, Resources, Status, Task

ADMINISTRATOR: Final = "an administrator"
QUEUES: Final = "scheduling.volcano.sh/v1beta1"
MAX_NODES_TRIED: Final = 8
CONFIGURATION: Final = ChangedObject("v1", "ConfigMap", "volcano-scheduler-configmap", "volcano-system")
ACTIONS_LINE: Final = re.compile(r'^(\s*actions:\s*)(["\']?)([^"\'\n]*)\2\s*$', re.MULTILINE)


def remedies_of(case: WaitingCase, found: Finding) -> Iterator[ProposedChange]:
    maker = _MAKERS.get(found.reason)
    if maker is not None:
        yield from maker(case, found)


def _runs(case: WaitingCase, subject: TriedJob | None = None, rules: TrialRules | None = None) -> TrialResult:
    return attempt(case.snapshot, rules or case.rules, subject or case.subject)


# -- queues -----------------------------------------------------------------------------------------------------------
@contextmanager
def with_queue(snapshot: Snapshot, queue: Queue) -> Iterator[None]:
    before = snapshot.queues.get(queue.name)
    snapshot.queues[queue.name] = queue
    try:
        yield
    finally:
        if before is None:
            del snapshot.queues[queue.name]
        else:
            snapshot.queues[queue.name] = before


def _queue_object(name: str) -> ChangedObject:
    return ChangedObject(QUEUES, "Queue", name)


def _open_queue(case: WaitingCase, found: Finding) -> Iterator[ProposedChange]:
    name = str(found.facts["queue"])
    with with_queue(case.snapshot, replace(case.snapshot.queues[name], state="Open")):
        if not _runs(case).runs:
            return
    yield ProposedChange(
        f"open queue {name}",
        f"vcctl queue operate {name} -a open",
        _queue_object(name),
        COMMAND,
        body={"action": "OpenQueue"},
        by=ADMINISTRATOR,
    )


def _create_queue(case: WaitingCase, found: Finding) -> Iterator[ProposedChange]:
    name = str(found.facts["queue"])
    with with_queue(case.snapshot, Queue(name=name)):
        if not _runs(case).runs:
            return
    body = {"apiVersion": QUEUES, "kind": "Queue", "metadata": {"name": name}, "spec": {"weight": 1}}
    command = f"vcctl queue create {name}"
    yield ProposedChange(f"create queue {name}", command, _queue_object(name), CREATE, body=body, by=ADMINISTRATOR)


def _raise_capability(case: WaitingCase, found: Finding) -> Iterator[ProposedChange]:
    name, resource = str(found.facts["queue"]), str(found.facts["resource"])
    queue = case.snapshot.queues[name]
    if queue.capability is None:
        return
    with standing(case.snapshot, case.subject, let_in=True) as job, opened(case.snapshot, case.rules, job) as session:
        wanted = queue_allocated(session).get(name, Resources())[resource] + needed_of(job)[resource]
    raised = queue.capability.copy()
    raised.amounts[resource] = max(wanted, raised[resource])
    with with_queue(case.snapshot, replace(queue, capability=raised)):
        if not _runs(case).runs:
            return
    text, before = amount_text(wanted, resource), amount_text(queue.capability[resource], resource)
    yield _patched(
        f"raise the {resource} that queue {name} may have from {before} to {text}",
        _queue_object(name),
        "queue",
        [{"op": "replace", "path": f"/spec/capability/{escaped(resource)}", "value": text}],
    )


def _lower_guarantee(case: WaitingCase, found: Finding) -> Iterator[ProposedChange]:
    resource = str(found.facts["resource"])
    holders = [q for q in case.snapshot.queues.values() if q.guarantee is not None and q.guarantee[resource] > 0.0]
    with standing(case.snapshot, case.subject, let_in=True) as job, opened(case.snapshot, case.rules, job) as session:
        needed, total = needed_of(job)[resource], session.total[resource]
    guaranteed = sum(q.guarantee[resource] for q in holders if q.guarantee is not None)
    for queue in sorted(holders, key=lambda q: q.name):
        assert queue.guarantee is not None
        left = queue.guarantee[resource] - (guaranteed + needed - total)
        if left < 0.0:
            continue
        lowered = queue.guarantee.copy()
        lowered.amounts[resource] = left
        with with_queue(case.snapshot, replace(queue, guarantee=lowered)):
            if not _runs(case).runs:
                continue
        text = amount_text(left, resource)
        yield _patched(
            f"lower the {resource} that queue {queue.name} is guaranteed to {text}",
            _queue_object(queue.name),
            "queue",
            [{"op": "replace", "path": f"/spec/guarantee/resource/{escaped(resource)}", "value": text}],
        )
        return


def _patched(
    sentence: str,
    target: ChangedObject,
    resource: str,
    operations: list[Operation],
    others: list[ChangedObject] | None = None,
    by: str = ADMINISTRATOR,
) -> ProposedChange:
    names = [other.name for other in others or ()]
    command = patch_command(target, resource, operations, "patch", names)
    return ProposedChange(sentence, command, target, patch=operations, others=others or [], by=by)


# -- quotas -----------------------------------------------------------------------------------------------------------
def _raise_quota(case: WaitingCase, found: Finding) -> Iterator[ProposedChange]:
    """Its pods can be made then; whether they have room is tried."""
    if not attempt(case.snapshot, case.rules, case.subject, let_in=True).runs:
        return
    facts, namespace = found.facts, case.subject.group.namespace or "default"
    try:
        used, needed = parse_quantity(str(facts["used"])), parse_quantity(str(facts["needed"]))
        wanted = str(needed) if found.reason == "QuotaTooSmall" and case.existing else str(used + needed)
    except QuantityError:
        return
    resource, quota = str(facts["resource"]), str(facts["quota"])
    target = ChangedObject("v1", "ResourceQuota", quota, namespace)
    operations: list[Operation] = [{"op": "replace", "path": f"/spec/hard/{escaped(resource)}", "value": wanted}]
    yield _patched(f"raise {resource} of quota {quota} from {facts['hard']} to {wanted}", target, "quota", operations)


# -- nodes ------------------------------------------------------------------------------------------------------------
def _uncordon(case: WaitingCase, _found: Finding) -> Iterator[ProposedChange]:
    """As few nodes as are needed, of those that would suit."""
    snapshot, table = case.snapshot, case.snapshot.table
    with standing(snapshot, case.subject, let_in=True) as job:
        task = next(iter(job.by_status[Status.PENDING].values()), None)
        if task is None:
            return
        masks = node_masks(table, task)
        rows = [int(row) for row in np.flatnonzero(masks.cordoned & masks.labelled & masks.large)]
    chosen: list[int] = []
    for row in rows[:MAX_NODES_TRIED]:
        chosen.append(row)
        with uncordoned(snapshot, chosen):
            if not _runs(case).runs:
                continue
        names = [table.nodes[each].name for each in chosen]
        targets = [ChangedObject("v1", "Node", name) for name in names]
        yield ProposedChange(
            f"uncordon {named(names)}",
            f"kubectl uncordon {' '.join(names)}",
            targets[0],
            patch=[{"op": "add", "path": "/spec/unschedulable", "value": False}],
            others=targets[1:],
            by=ADMINISTRATOR,
        )
        return


@contextmanager
def uncordoned(snapshot: Snapshot, rows: list[int]) -> Iterator[None]:
    snapshot.table.unschedulable[rows] = False
    try:
        yield
    finally:
        snapshot.table.unschedulable[rows] = True


# -- objects that do not exist ----------------------------------------------------------------------------------------
def _create_claim(case: WaitingCase, found: Finding) -> Iterator[ProposedChange]:
    name, namespace = str(found.facts["claim"]), case.subject.group.namespace or "default"
    if not _runs(case, _without_claim(case.subject, name)).runs:
        return
    body: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    yield _created(f"create PersistentVolumeClaim {name}", body)


def _without_claim(subject: TriedJob, name: str) -> TriedJob:
    def without(pod: Pod) -> Pod:
        volumes = [
            v
            for v in pod.spec.volumes
            if v.persistent_volume_claim is None or v.persistent_volume_claim.claim_name != name
        ]
        return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, volumes=volumes))

    return replace(subject, pods=tuple(without(pod) for pod in subject.pods))


def _create_priority_class(case: WaitingCase, found: Finding) -> Iterator[ProposedChange]:
    body = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": str(found.facts["name"])},
        "value": 0,
    }
    yield _created(f"create PriorityClass {found.facts['name']}", body, by=ADMINISTRATOR)


def _create_account(case: WaitingCase, found: Finding) -> Iterator[ProposedChange]:
    yield _created(
        f"create ServiceAccount {found.facts['name']}",
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _named(case, found)},
    )


def _create_secret(case: WaitingCase, found: Finding) -> Iterator[ProposedChange]:
    kind = "Secret" if found.reason == "SecretNotFound" else "ConfigMap"
    metadata = _named(case, found)
    yield _created(f"create {kind} {metadata['name']}", {"apiVersion": "v1", "kind": kind, "metadata": metadata})


def _named(case: WaitingCase, found: Finding) -> dict[str, str]:
    return {"name": str(found.facts["name"]), "namespace": case.subject.group.namespace or "default"}


def _created(sentence: str, body: dict[str, Any], by: str = "you") -> ProposedChange:
    metadata = body["metadata"]
    target = ChangedObject(body["apiVersion"], body["kind"], metadata["name"], metadata.get("namespace", ""))
    return ProposedChange(sentence, create_command(body), target, CREATE, body=body, by=by)


# -- room that may not be taken ---------------------------------------------------------------------------------------
def _make_reclaimable(case: WaitingCase, _found: Finding) -> Iterator[ProposedChange]:
    for queue in {case.snapshot.queues[job.queue].name for job in (case.obstacle.victims if case.obstacle else ())}:
        with with_queue(case.snapshot, replace(case.snapshot.queues[queue], reclaimable=True)):
            if not _runs(case).runs:
                continue
        operations: list[Operation] = [{"op": "add", "path": "/spec/reclaimable", "value": True}]
        yield _patched(f"let others take back what queue {queue} borrows", _queue_object(queue), "queue", operations)


def _make_preemptable(case: WaitingCase, _found: Finding) -> Iterator[ProposedChange]:
    jobs = case.obstacle.victims if case.obstacle is not None else ()
    tasks = [task for job in jobs for task in job.by_status[Status.RUNNING].values() if not task.preemptable]
    with _preemptable(tasks):
        if not tasks or not _runs(case).runs:
            return
    key = "volcano.sh/preemptable"
    place = "annotations" if key in tasks[0].pod.annotations else "labels"
    targets = [ChangedObject("v1", "Pod", task.name, task.namespace) for task in tasks]
    operations: list[Operation] = [{"op": "add", "path": f"/metadata/{place}/{escaped(key)}", "value": "true"}]
    sentence = f"let the pods of {named([job.name for job in jobs])} be preempted"
    yield _patched(sentence, targets[0], "pod", operations, targets[1:])


@contextmanager
def _preemptable(tasks: list[Task]) -> Iterator[None]:
    for task in tasks:
        task.preemptable = True
    try:
        yield
    finally:
        for task in tasks:
            task.preemptable = False


def _add_action(case: WaitingCase, found: Finding) -> Iterator[ProposedChange]:
    action = "preempt" if found.reason == "NoPreemptAction" else "reclaim"
    if not _runs(case, rules=case.rules.with_actions(action)).runs:
        return
    line = ACTIONS_LINE.search(case.configuration)
    if line is None:
        return
    text = ACTIONS_LINE.sub(lambda m: f'{m[1]}"{m[3].strip()}, {action}"', case.configuration, count=1)
    operations: list[Operation] = [{"op": "replace", "path": "/data/volcano-scheduler.conf", "value": text}]
    yield _patched(f"add the action {action} to volcano-scheduler.conf", CONFIGURATION, "configmap", operations)


# -- the way into the queue -------------------------------------------------------------------------------------------
def _suspend_hopeless(case: WaitingCase, _found: Finding) -> Iterator[ProposedChange]:
    """Suspend what can never run; it was tried without those jobs when they were found."""
    if len(case.hopeless) != 1 or case.hopeless[0].group is None:
        return
    for owner in case.hopeless[0].group.metadata.owner_references:
        if owner.kind == "Job" and owner.api_version.startswith("batch.volcano.sh/"):
            namespace = case.hopeless[0].namespace
            yield ProposedChange(
                f"suspend {owner.name}",
                f"vcctl job suspend {owner.name} -n {namespace}",
                ChangedObject(owner.api_version, "Job", owner.name, namespace),
                COMMAND,
                body={"action": "AbortJob"},
                by=ADMINISTRATOR,
            )


_MAKERS: Final = {
    "LetInForEver": _suspend_hopeless,
    "QueueClosed": _open_queue,
    "QueueNotFound": _create_queue,
    "QueueTooSmall": _raise_capability,
    "QueueFull": _raise_capability,
    "OthersGuaranteed": _lower_guarantee,
    "QuotaTooSmall": _raise_quota,
    "QuotaUsed": _raise_quota,
    "NodesCordoned": _uncordon,
    "ClaimNotFound": _create_claim,
    "PriorityClassNotFound": _create_priority_class,
    "ServiceAccountNotFound": _create_account,
    "SecretNotFound": _create_secret,
    "ConfigMapNotFound": _create_secret,
    "QueueNotReclaimable": _make_reclaimable,
    "VictimNotPreemptable": _make_preemptable,
    "NoPreemptAction": _add_action,
    "NoReclaimAction": _add_action,
}
