"""Candidates that correct a name: of a scheduler, queue, class, label, resource, claim or topology key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from volcano.api.meta import JSON
from volcano.api.nearest_words import nearest_word
from volcano.api.scheduling import ROOT_QUEUE
from volcano.scheduler.core.node_view import NodeView
from volcano.scheduler.explain.causes_nodes import nearest_label
from volcano.scheduler.explain.change_costs import CONDITION, NAME, ChangeCandidate
from volcano.scheduler.explain.owners import ChangedOwner, Operation, escaped
from volcano.scheduler.explain.waiting_case import WaitingCase
from volcano.scheduler.model import EPSILON

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def name_candidates(case: WaitingCase, owner: ChangedOwner) -> Iterator[ChangeCandidate]:
    snapshot, body = case.snapshot, owner.body
    spec = body.get("spec") or {}
    names = snapshot.scheduler_names or frozenset({"volcano"})
    if owner.kind == "Job" and spec.get("schedulerName") and spec["schedulerName"] not in names:
        ours = nearest_word(spec["schedulerName"], names) or sorted(names)[0]
        operation = {"op": "replace", "path": "/spec/schedulerName", "value": ours}
        yield ChangeCandidate(NAME, f"use the scheduler {ours}", [operation])
    queue = spec.get("queue")
    if queue and queue not in snapshot.queues:
        near = nearest_word(queue, [q.name for q in snapshot.queues.values() if q.is_open and q.name != ROOT_QUEUE])
        if near:
            yield ChangeCandidate(NAME, f"use queue {near}", [{"op": "replace", "path": "/spec/queue", "value": near}])
    yield from _class_names(case, spec, "/spec")
    for path in owner.pod_spec_paths():
        yield from _names_in_pod(case, owner, path)


def _class_names(case: WaitingCase, spec: JSON, path: str) -> Iterator[ChangeCandidate]:
    classes, stated = case.snapshot.cluster.priority_classes, spec.get("priorityClassName")
    if not stated or stated in classes or str(stated).startswith("system-"):
        return
    near, where = nearest_word(stated, classes), f"{path}/priorityClassName"
    if near:
        yield ChangeCandidate(NAME, f"use PriorityClass {near}", [{"op": "replace", "path": where, "value": near}])
    yield ChangeCandidate(CONDITION, "give up the PriorityClass", [{"op": "remove", "path": where}])


def _names_in_pod(case: WaitingCase, owner: ChangedOwner, path: str) -> Iterator[ChangeCandidate]:
    snapshot, table = case.snapshot, case.snapshot.table
    pod = owner.at(path) or {}
    names = snapshot.scheduler_names or frozenset({"volcano"})
    if owner.kind != "Job" and pod.get("schedulerName") and pod["schedulerName"] not in names:
        ours = nearest_word(pod["schedulerName"], names) or sorted(names)[0]
        operation = {"op": "replace", "path": f"{path}/schedulerName", "value": ours}
        yield ChangeCandidate(NAME, f"use the scheduler {ours}", [operation])
    if owner.kind != "Pod":  # whose own spec was looked at
        yield from _class_names(case, pod, path)
    for key, value in (pod.get("nodeSelector") or {}).items():
        if not table.labels.labelled({key: str(value)}).any():
            near = nearest_label(table, key, str(value))
            if near is not None:
                yield ChangeCandidate(
                    NAME, f"select {near[0]}={near[1]}", _relabelled(f"{path}/nodeSelector", key, *near)
                )
    yield from _affinity_names(case, owner, path)
    yield from _resource_names(case, path, pod)
    yield from _claim_names(case, owner, path, pod)
    labels = {name for node in table.nodes for name in node.labels}
    for place, constraint in enumerate(pod.get("topologySpreadConstraints") or ()):
        key = constraint.get("topologyKey", "")
        if key not in labels and (near_key := nearest_word(key, labels)):
            where = f"{path}/topologySpreadConstraints/{place}/topologyKey"
            yield ChangeCandidate(
                NAME, f"spread over {near_key}", [{"op": "replace", "path": where, "value": near_key}]
            )


def _resource_names(case: WaitingCase, path: str, pod: JSON) -> Iterator[ChangeCandidate]:
    table = case.snapshot.table
    view = NodeView(table)
    known = [name for name in table.resources if (view.allocatable[name] >= EPSILON).any()]
    for place, container in enumerate(pod.get("containers") or ()):
        for section in ("requests", "limits"):
            for name in (container.get("resources") or {}).get(section) or {}:
                if section == "limits" and name in ((container.get("resources") or {}).get("requests") or {}):
                    continue
                near_name = nearest_word(name, known) if name not in known and "/" in name else ""
                if near_name:
                    operations = _renamed(container, f"{path}/containers/{place}/resources", name, near_name)
                    yield ChangeCandidate(NAME, f"ask for {near_name} instead of {name}", operations)


def _claim_names(case: WaitingCase, owner: ChangedOwner, path: str, pod: JSON) -> Iterator[ChangeCandidate]:
    claims = [key.name for key in case.snapshot.cluster.claims if key.namespace == _namespace(owner)]
    for place, volume in enumerate(pod.get("volumes") or ()):
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        near = nearest_word(claim, claims) if claim and claim not in claims else ""
        if near:
            where = f"{path}/volumes/{place}/persistentVolumeClaim/claimName"
            yield ChangeCandidate(NAME, f"use claim {near}", [{"op": "replace", "path": where, "value": near}])


def _affinity_names(case: WaitingCase, owner: ChangedOwner, path: str) -> Iterator[ChangeCandidate]:
    table = case.snapshot.table
    where = f"{path}/affinity/nodeAffinity/{REQUIRED}/nodeSelectorTerms"
    for number, term in enumerate(owner.at(where) or ()):
        for place, expression in enumerate(term.get("matchExpressions") or ()):
            values = expression.get("values") or []
            if expression.get("operator") != "In" or len(values) != 1:
                continue
            key = expression.get("key", "")
            if not table.labels.labelled({key: str(values[0])}).any():
                near = nearest_label(table, key, str(values[0]))
                if near is not None:
                    at = f"{where}/{number}/matchExpressions/{place}"
                    operations: list[Operation] = [
                        {"op": "replace", "path": f"{at}/key", "value": near[0]},
                        {"op": "replace", "path": f"{at}/values", "value": [near[1]]},
                    ]
                    yield ChangeCandidate(NAME, f"ask for {near[0]}={near[1]} in the node affinity", operations)


def _namespace(owner: ChangedOwner) -> str:
    return (owner.body.get("metadata") or {}).get("namespace") or "default"


def _relabelled(path: str, key: str, new_key: str, value: str) -> list[Operation]:
    if key == new_key:
        return [{"op": "replace", "path": f"{path}/{escaped(key)}", "value": value}]
    return [
        {"op": "remove", "path": f"{path}/{escaped(key)}"},
        {"op": "add", "path": f"{path}/{escaped(new_key)}", "value": value},
    ]


def _renamed(container: dict[str, Any], path: str, name: str, new: str) -> list[Operation]:
    operations: list[Operation] = []
    for section in ("requests", "limits"):
        stated = (container.get("resources") or {}).get(section) or {}
        if name in stated:
            operations.append({"op": "remove", "path": f"{path}/{section}/{escaped(name)}"})
            operations.append({"op": "add", "path": f"{path}/{section}/{escaped(new)}", "value": stated[name]})
    return operations
