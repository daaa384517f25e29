"""StartReservation: the time and the nodes at which a waiting job will start, as it stands on its PodGroup."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

RESERVATION_ANNOTATION: Final = "scheduling.volcano.sh/reservation"
MAX_WRITTEN_NODES: Final = 64
MAX_WRITTEN_JOBS: Final = 8
MAX_ANNOTATION_CHARACTERS: Final = 1024 * 1024
"""Kubernetes accepts a quarter of that; the rest is for PodGroups that exist only in memory."""
TOLERATED_SHIFT: Final = timedelta(seconds=1)
"""A start that moves by less is the same: times of pods are written in whole seconds."""


class StartReservation(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """`after` are jobs (namespace/PodGroup) that must end before. Room was sought in the order of `place`.

    `tasks` has for each of the nodes how many tasks of each role it will take. As written on a PodGroup, `nodes`,
    `tasks` and `after` are the first of many; `node_count` counts all nodes. `made` is when the job was first promised
    a start.
    """

    start: datetime
    nodes: tuple[str, ...] = ()
    node_count: int = 0
    after: tuple[str, ...] = ()
    place: int = 0
    tasks: tuple[dict[str, int], ...] = ()
    made: datetime | None = None

    def as_written(self) -> StartReservation:
        nodes, after = self.nodes[:MAX_WRITTEN_NODES], self.after[:MAX_WRITTEN_JOBS]
        tasks = self.tasks[:MAX_WRITTEN_NODES]
        return StartReservation(self.start, nodes, self.node_count, after, self.place, tasks, self.made)

    def says_the_same(self, written: StartReservation | None) -> bool:
        if written is None or abs(self.start - written.start) >= TOLERATED_SHIFT:
            return False
        mine = self.as_written()
        return (mine.nodes, mine.node_count, mine.place, mine.tasks) == (
            written.nodes,
            written.node_count,
            written.place,
            written.tasks,
        )


def encode_reservation(reservation: StartReservation) -> str:
    return msgspec.json.encode(reservation.as_written()).decode()


def encode_whole(reservation: StartReservation) -> str:
    """With all nodes: for PodGroups that exist only in memory."""
    return msgspec.json.encode(reservation).decode()


def decode_reservation(annotations: Mapping[str, str]) -> StartReservation | None:
    """None when there is none or it cannot be read."""
    text = annotations.get(RESERVATION_ANNOTATION, "")
    if not text or len(text) > MAX_ANNOTATION_CHARACTERS:
        return None
    try:
        read = msgspec.json.decode(text, type=StartReservation)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return read if read.start.tzinfo is not None else None
