"""What docs/time.md promises about time: starts that are promised to waiting jobs, and nodes that a Reservation keeps.

Only looked at while nothing goes wrong, and with clocks that are right: a scheduler whose clock is wrong, or that does
not see what runs, promises what it believes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Final

import msgspec

from volcano.api.core import Node, Pod
from volcano.api.jobs.reservations import decode_reservation
from volcano.api.meta import Key
from volcano.api.scheduling import GROUP_NAME_ANNOTATION, PodGroup, Queue
from volcano.machinery.clock import EPOCH

LATE_SECONDS: Final = 10.0
"""A promised start may be so late: pods end, are noticed and are followed by others within some seconds."""

UNKNOWN_SECONDS: Final = 0.0
"""Of a job that states no estimate: the scheduler learns one from runs like it, and may learn too short a time."""


class NodesKeptInTime(msgspec.Struct, frozen=True):
    """Nodes that are kept for the jobs of a queue, in seconds of the run."""

    queue: str
    nodes: tuple[str, ...]
    begin: float
    end: float


class PromisedStart(msgspec.Struct):
    group_uid: str
    start: float
    made: float


class TimePromises:
    def __init__(
        self, violated: Callable[[str], None], estimates: dict[str, float], window: NodesKeptInTime | None
    ) -> None:
        self._violated, self._estimates, self._window = violated, estimates, window
        self._promised: dict[Key, PromisedStart] = {}
        self._bound: dict[str, tuple[float, float]] = {}  # pods that run: when they were bound, and for how long
        self._last_reason = 0.0  # to plan anew: other jobs, nodes, queues, or a job that runs longer than estimated

    def forget(self) -> None:
        """What was promised before a fault may be broken by it."""
        self._promised.clear()

    # -- changes -------------------------------------------------------------------------------------------------
    def pod(self, old: Pod | None, new: Pod, group: PodGroup | None, job: str, *, now: float) -> None:
        if new.is_finished or new.is_deleting:
            self.ended(new, now=now)
        elif new.spec.node_name and new.uid not in self._bound:
            self._bound[new.uid] = (now, self._estimates.get(job, UNKNOWN_SECONDS))
            if group is not None and (old is None or not old.spec.node_name):
                self._window_is_kept(new, group, job, now)

    def ended(self, pod: Pod, *, now: float) -> None:
        self._bound.pop(pod.uid, None)
        if not pod.is_finished:
            self._last_reason = now

    def other(self, old: Node | Queue | None, new: Node | Queue, *, now: float) -> None:
        if old is None or old.spec != new.spec:
            self._last_reason = now

    def group(self, old: PodGroup | None, new: PodGroup, *, now: float) -> None:
        if old is None or old.uid != new.uid:
            self._last_reason = now
        reservation = decode_reservation(new.annotations)
        known = self._promised.get(new.key)
        if reservation is None:
            return
        start = (reservation.start - EPOCH) / timedelta(seconds=1)
        if known is None or known.group_uid != new.uid or known.made <= self._last_reason:
            self._promised[new.key] = PromisedStart(new.uid, start, now)
        else:
            known.start = min(known.start, start)

    # -- what must hold ------------------------------------------------------------------------------------------
    def check(self, groups: Callable[[Key], PodGroup | None], pods: Callable[[], Iterable[Pod]], now: float) -> None:
        """After every commit: a job has its minimum by the time that it was promised."""
        due = [key for key, promise in self._promised.items() if now > promise.start + LATE_SECONDS]
        if not due:
            return
        if any(now > since + estimate for since, estimate in self._bound.values()):
            self._last_reason = now
        for key in due:
            promise, group = self._promised.pop(key), groups(key)
            if group is None or group.uid != promise.group_uid or promise.made <= self._last_reason:
                continue
            members = [each for each in pods() if each.annotations.get(GROUP_NAME_ANNOTATION) == group.name]
            if sum(bool(each.spec.node_name) for each in members) < group.spec.min_member:
                self._violated(f"gang {key} was promised a start at {promise.start:.0f}, and waits")

    def _window_is_kept(self, pod: Pod, group: PodGroup, job: str, now: float) -> None:
        window = self._window
        if window is None or pod.spec.node_name not in window.nodes or group.queue == window.queue:
            return
        ends = now + self._estimates.get(job, UNKNOWN_SECONDS)
        if now < window.end and ends > window.begin:
            self._violated(f"pod {pod.key} runs on {pod.spec.node_name}, which is kept for queue {window.queue}")
