"""What is written together (history.commit): rows of all tables, and how far each watch has been read."""

from __future__ import annotations

from datetime import datetime

import msgspec

from volcano.api.history_records import (
    EvictionRecord,
    GapRecord,
    JobRecord,
    NodeSample,
    PastPod,
    QueueSample,
    StateRecord,
)
from volcano.api.meta import Key
from volcano.history.fold import Folded


class Position(msgspec.Struct, frozen=True):
    """Up to which revision of which cluster the changes of a kind are in the database, and when that was so."""

    kind: str
    cluster: str
    revision: str
    at: datetime


class Measured(msgspec.Struct, frozen=True):
    """What a pod used in a time: core-milliseconds and MiB-seconds."""

    pod_uid: str
    milliseconds: int
    cpu_milli_seconds: int
    memory_mib_seconds: int


class RowBatch:
    """Rows of the same object replace each other, so that a burst of changes is one write."""

    def __init__(self) -> None:
        self.jobs: dict[str, JobRecord] = {}
        self.pods: dict[str, PastPod] = {}
        self.states: list[StateRecord] = []
        self.evictions: dict[str, EvictionRecord] = {}
        self.groups: list[tuple[Key, str]] = []
        self.vanished: list[tuple[str, str, datetime]] = []  # table, uid, when that was noticed
        self.positions: dict[str, Position] = {}
        self.gaps: list[GapRecord] = []
        self.queues: list[QueueSample] = []
        self.nodes: list[NodeSample] = []
        self.measured: list[Measured] = []

    def add(self, folded: Folded) -> None:
        if folded.job is not None:
            self.jobs[folded.job.uid] = folded.job
            if folded.group is not None:
                self.groups.append((folded.group, folded.job.uid))
        self.states += folded.states
        if folded.pod is not None:
            self.pods[folded.pod.uid] = folded.pod
        if folded.eviction is not None:
            self.evictions[folded.eviction.pod_uid] = folded.eviction

    @property
    def rows(self) -> int:
        objects = len(self.jobs) + len(self.pods) + len(self.states) + len(self.evictions) + len(self.vanished)
        samples = len(self.queues) + len(self.nodes) + len(self.measured)
        return objects + samples + len(self.groups) + len(self.positions) + len(self.gaps)
