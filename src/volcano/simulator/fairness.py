"""Fairness between queues: what each held against what it deserved, as time passes.

What a queue deserves at a moment is computed by the plugin proportion's own distribution: the cluster by weight, no
queue more than it wants or may have, the rest to the others.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from volcano.api import scheduling
from volcano.scheduler.core.pour import pour
from volcano.scheduler.core.queue_shares import QueueShare, stated_capability
from volcano.scheduler.model import Queue, Resources
from volcano.scheduler.model.read import queue_from
from volcano.scheduler.model.resources import GREATEST
from volcano.simulator.timelines import Amounts, QueuePoint, Timelines

SAMPLES: Final = 240
MEASURED: Final = "cpu"
MILLI: Final = 1000.0


@dataclass(slots=True)
class ShareSample:
    """At one moment, of the cluster's cpus: the share a queue held, deserved and wanted."""

    seconds: float
    held: float
    deserved: float
    wanted: float


def share_samples(
    timelines: Timelines, queues: Sequence[scheduling.Queue], begin: float, end: float, samples: int = SAMPLES
) -> dict[str, list[ShareSample]]:
    """At equal distances; queues without any job are left out."""
    known = [queue_from(queue) for queue in queues if queue.name in timelines.queues]
    found: dict[str, list[ShareSample]] = {queue.name: [] for queue in known}
    for index in range(samples if end > begin else 0):
        moment = begin + (end - begin) * (index + 0.5) / samples
        total = _capacity_at(timelines.capacity, moment)
        cpus = total.get(MEASURED, 0.0)
        points = {queue.name: _point_at(timelines.queues[queue.name], moment) for queue in known}
        deserved = _deserved(total, known, points)
        for queue in known:
            point = points[queue.name]
            held, wanted = (point.held.get(MEASURED, 0.0), point.wanted.get(MEASURED, 0.0)) if point else (0.0, 0.0)
            share = deserved[queue.name]
            found[queue.name].append(
                ShareSample(moment, *((amount / cpus if cpus else 0.0) for amount in (held, share, wanted)))
            )
    return found


def _deserved(total: Amounts, queues: Iterable[Queue], points: Mapping[str, QueuePoint | None]) -> dict[str, float]:
    """By cpu alone, in thousandths as the scheduler counts it: the same distribution in one dimension."""
    whole = Resources({MEASURED: total.get(MEASURED, 0.0) * MILLI})
    shares = []
    for queue in queues:
        point = points[queue.name]
        share = QueueShare(queue, Resources(), stated_capability(queue))
        limit = share.capability[MEASURED] if share.capability is not None else GREATEST
        share.real_capability = Resources({MEASURED: min(limit, whole[MEASURED])})
        share.request = Resources({MEASURED: point.wanted.get(MEASURED, 0.0) * MILLI if point else 0.0})
        shares.append(share)
    pour(whole, [share for share in shares if share.request[MEASURED] > 0.0])
    return {share.name: share.deserved[MEASURED] / MILLI for share in shares}


def _point_at(points: Sequence[QueuePoint], moment: float) -> QueuePoint | None:
    place = bisect_right(points, moment, key=lambda point: point.seconds)
    return points[place - 1] if place else None


def _capacity_at(capacity: Sequence[tuple[float, Amounts]], moment: float) -> Amounts:
    place = bisect_right(capacity, moment, key=lambda point: point[0])
    return capacity[max(place - 1, 0)][1] if capacity else {}


def jain(values: Sequence[float]) -> float:
    """Jain's index: 1 when all are equal, 1/n when one has all; 1 without any."""
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 1.0


def satisfaction(samples: Iterable[ShareSample]) -> float | None:
    """What a queue held of what it deserved, over all samples where it deserved something; at most 1."""
    held = deserved = 0.0
    for sample in samples:
        if sample.deserved > 0.0:
            held += min(sample.held, sample.deserved)
            deserved += sample.deserved
    return held / deserved if deserved else None
