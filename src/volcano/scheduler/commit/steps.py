"""Single steps of plans: volumes before a bind, the report of a failed bind, gates, shards, conditions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from volcano.api import core
from volcano.api.meta import JSON, Key
from volcano.api.scheme import resource_type
from volcano.api.times import timestamp
from volcano.api.topology import NodeShard
from volcano.machinery.plan import Patch, Plan, Record, Ref, Step, ref
from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.framework.decisions import Decisions
from volcano.scheduler.framework.record import VolumeChoice
from volcano.scheduler.model.task import QUEUE_GATE

MAX_MESSAGE_CHARACTERS: Final = 1024
VOLUMES: Final = resource_type(core.PersistentVolume)


def bind_failed(pod: core.Pod, reason: str, now: datetime) -> Plan:
    """The event and the condition of a pod whose bind failed; not the condition if the pod has changed since."""
    stated = condition("PodScheduled", "False", "SchedulerError", reason[:MAX_MESSAGE_CHARACTERS], now)
    return (
        Record(ref(pod), "FailedScheduling", reason[:MAX_MESSAGE_CHARACTERS], "Warning"),
        Patch(ref(pod, fresh=True), {"status": {"conditions": [stated]}}, kind="strategic", subresource="status"),
    )


def shard_status(own: NodeShard, used: Collection[str], now: datetime) -> Patch | None:
    """The status of this scheduler's shard with the nodes a cycle used; None when it is current."""
    desired = set(own.spec.nodes_desired)
    lists = {
        "nodesInUse": sorted(used),
        "nodesToRemove": sorted(set(used) - desired),
        "nodesToAdd": sorted(desired - set(used)),
    }
    stated = own.status
    if [*lists.values()] == [sorted(stated.nodes_in_use), sorted(stated.nodes_to_remove), sorted(stated.nodes_to_add)]:
        return None
    return Patch(ref(own), {"status": {**lists, "lastUpdateTime": timestamp(now)}}, subresource="status")


def volume_steps(volumes: Iterable[VolumeChoice], snapshot: Snapshot) -> Iterator[Step]:
    """Ask the volume controller to bind a claim to a volume, or to provision one for a node."""
    around = snapshot.cluster
    for choice in volumes:
        claim = around.claims.get(choice.claim)
        if claim is None:
            continue
        if not choice.volume:
            body: JSON = {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": choice.node}}}
            yield Patch(ref(claim), body, gone_ok=False)
            continue
        reference = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": choice.claim.namespace,
            "name": choice.claim.name,
            "uid": claim.uid,
        }
        body = {
            "metadata": {"annotations": {"pv.kubernetes.io/bound-by-controller": "yes"}},
            "spec": {"claimRef": reference},
        }
        yield Patch(Ref(VOLUMES, Key("", choice.volume)), body, gone_ok=False)


def gate_steps(decisions: Decisions, snapshot: Snapshot) -> Iterator[Step]:
    waiting = set(decisions.gates_to_remove)
    for task in snapshot.tasks.values() if waiting else ():
        if task.key in waiting and task.gates == (QUEUE_GATE,):
            body = {"spec": {"schedulingGates": [{"$patch": "delete", "name": QUEUE_GATE}]}}
            yield Patch(ref(task.pod), body, kind="strategic")


def condition(kind: str, status: str, reason: str, message: str, now: datetime) -> JSON:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastProbeTime": None,
        "lastTransitionTime": timestamp(now),
    }


def current(pod: core.Pod, kind: str) -> Any:
    return next((stated for stated in pod.status.conditions if stated.type == kind), None)
