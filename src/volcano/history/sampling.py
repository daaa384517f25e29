"""Samples of queues and nodes: what each has and gives at a moment, kept when it differs from the last one. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TypeVar

import msgspec

from volcano.api.core import Node
from volcano.api.history_records import NodeSample, QueueSample
from volcano.api.meta import Quantities
from volcano.api.pods.amounts import Amounts, added, amounts_of, to_wire
from volcano.api.scheduling import ROOT_QUEUE, Queue
from volcano.history.fold import ObservedPod

S = TypeVar("S", QueueSample, NodeSample)


def queue_sample(queue: Queue, at: datetime) -> QueueSample:
    spec, status = queue.spec, queue.status
    return QueueSample(
        at=at,
        queue=queue.name,
        parent=spec.parent or ("" if queue.name == ROOT_QUEUE else ROOT_QUEUE),
        state=status.state,
        weight=spec.weight,
        allocated=_wire(status.allocated),
        deserved=_wire(spec.deserved),
        guarantee=_wire(spec.guarantee.resource if spec.guarantee is not None else None),
        capability=_wire(spec.capability),
        pending=status.pending,
        inqueue=status.inqueue,
        running=status.running,
    )


def node_samples(nodes: Iterable[Node], pods: Iterable[ObservedPod], at: datetime) -> list[NodeSample]:
    held: dict[str, list[Amounts]] = {}
    for pod in pods:
        if pod.node and pod.ended is None:
            held.setdefault(pod.node, []).append(pod.requests)
    return [
        NodeSample(
            at=at,
            node=node.name,
            allocatable=_wire(node.status.allocatable),
            requested=to_wire(added(*held.get(node.name, ()))),
            pods=len(held.get(node.name, ())),
            ready=any(each.type == "Ready" and each.status == "True" for each in node.status.conditions),
            schedulable=not node.spec.unschedulable,
        )
        for node in nodes
    ]


def news(samples: Iterable[S], last: Mapping[str, S], *, name: str, at: datetime) -> list[S]:
    """The samples that differ from the last of their name, and the last word on names that are gone."""
    present: set[str] = set()
    found: list[S] = []
    for sample in samples:
        key = getattr(sample, name)
        present.add(key)
        before = last.get(key)
        if before is None or msgspec.structs.replace(before, at=at) != sample:
            found.append(sample)
    return found + [
        msgspec.structs.replace(sample, at=at, gone=True)
        for key, sample in last.items()
        if key not in present and not sample.gone
    ]


def _wire(quantities: Quantities | None) -> dict[str, str]:
    return to_wire(amounts_of(quantities))
