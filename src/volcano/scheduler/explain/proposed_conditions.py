"""Candidates that give up a condition of the pods, or choose another queue."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from volcano.api.scheduling import ROOT_QUEUE
from volcano.scheduler.core.taints import untolerated
from volcano.scheduler.explain.causes_nodes import taint_text
from volcano.scheduler.explain.change_costs import CONDITION, OTHER_QUEUE, ChangeCandidate
from volcano.scheduler.explain.owners import ChangedOwner, escaped
from volcano.scheduler.explain.waiting_case import WaitingCase

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
MAX_QUEUES_TRIED: Final = 5


def condition_candidates(case: WaitingCase, owner: ChangedOwner) -> Iterator[ChangeCandidate]:
    for path in owner.pod_spec_paths():
        pod = owner.at(path) or {}
        yield from _tolerations(case, owner, path)
        selector = pod.get("nodeSelector") or {}
        for key, value in selector.items():
            where = f"{path}/nodeSelector/{escaped(key)}"
            yield ChangeCandidate(CONDITION, f"do not select {key}={value}", [{"op": "remove", "path": where}])
        if len(selector) > 1:
            yield ChangeCandidate(CONDITION, "select no nodes", [{"op": "remove", "path": f"{path}/nodeSelector"}])
        for kind, words in (
            ("nodeAffinity", "give up the required node affinity"),
            ("podAntiAffinity", "give up the required anti-affinity"),
            ("podAffinity", "give up the required pod affinity"),
        ):
            where = f"{path}/affinity/{kind}/{REQUIRED}"
            if owner.at(where):
                yield ChangeCandidate(CONDITION, words, [{"op": "remove", "path": where}])
        ports = [
            f"{path}/containers/{place}/ports/{number}/hostPort"
            for place, container in enumerate(pod.get("containers") or ())
            for number, port in enumerate(container.get("ports") or ())
            if port.get("hostPort")
        ]
        if ports:
            yield ChangeCandidate(CONDITION, "use no host port", [{"op": "remove", "path": each} for each in ports])
        for place, constraint in enumerate(pod.get("topologySpreadConstraints") or ()):
            if constraint.get("whenUnsatisfiable") != "ScheduleAnyway":
                where = f"{path}/topologySpreadConstraints/{place}/whenUnsatisfiable"
                operation = {"op": "replace", "path": where, "value": "ScheduleAnyway"}
                yield ChangeCandidate(CONDITION, f"prefer to spread over {constraint.get('topologyKey')}", [operation])
        if pod.get("nodeName"):
            yield ChangeCandidate(CONDITION, "name no node", [{"op": "remove", "path": f"{path}/nodeName"}])
        if pod.get("preemptionPolicy") == "Never":
            operation = {"op": "replace", "path": f"{path}/preemptionPolicy", "value": "PreemptLowerPriority"}
            yield ChangeCandidate(CONDITION, "let it preempt jobs of lower priority", [operation])
    yield from _tiers(case, owner)


def _tolerations(case: WaitingCase, owner: ChangedOwner, path: str) -> Iterator[ChangeCandidate]:
    pod = next((pod for pod in case.subject.pods), None)
    if pod is None:
        return
    seen = set()
    for taints in case.snapshot.table.taint_sets:
        taint = untolerated(taints, pod.spec.tolerations)
        if taint is None or taint in seen or taint.key.startswith("node.kubernetes.io/"):
            continue
        seen.add(taint)
        wanted: dict[str, Any] = {"key": taint.key, "operator": "Exists", "effect": taint.effect}
        if taint.value:
            wanted |= {"operator": "Equal", "value": taint.value}
        listed = owner.at(f"{path}/tolerations")
        operation = (
            {"op": "add", "path": f"{path}/tolerations/-", "value": wanted}
            if listed is not None
            else {"op": "add", "path": f"{path}/tolerations", "value": [wanted]}
        )
        yield ChangeCandidate(CONDITION, f"tolerate the taint {taint_text(taint)}", [operation])


def _tiers(case: WaitingCase, owner: ChangedOwner) -> Iterator[ChangeCandidate]:
    where = "/spec/networkTopology"
    stated = owner.at(where)
    if not isinstance(stated, dict) or stated.get("mode") == "soft":
        return
    highest = stated.get("highestTierAllowed")
    for tier in case.snapshot.domains.tiers:
        if highest is None or tier > highest:
            changed = {"mode": "hard", "highestTierAllowed": tier}
            sentence = f"allow HyperNodes up to tier {tier}"
            yield ChangeCandidate(CONDITION, sentence, [{"op": "replace", "path": where, "value": changed}])
    operation = {"op": "replace", "path": where, "value": {"mode": "soft"}}
    yield ChangeCandidate(CONDITION, "prefer to lie close together (mode soft)", [operation])


def queue_candidates(case: WaitingCase, owner: ChangedOwner) -> Iterator[ChangeCandidate]:
    if owner.kind not in ("Job", "PodGroup"):
        return
    current = case.subject.group.spec.queue or case.snapshot.default_queue
    parents = {queue.parent for queue in case.snapshot.queues.values()}
    others = [q for q in case.snapshot.queues.values() if q.is_open and q.name not in (current, ROOT_QUEUE, *parents)]
    for queue in sorted(others, key=lambda queue: (-queue.weight, queue.name))[:MAX_QUEUES_TRIED]:
        op = "replace" if owner.at("/spec/queue") is not None else "add"
        operation = {"op": op, "path": "/spec/queue", "value": queue.name}
        yield ChangeCandidate(OTHER_QUEUE, f"use queue {queue.name}", [operation])
