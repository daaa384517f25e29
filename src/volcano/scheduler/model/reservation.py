"""Reservation: the time and the nodes at which a waiting job is expected to start, as it stands on its PodGroup."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from volcano.scheduler.model.resources import Resources

RESERVATION_ANNOTATION: Final = "scheduling.volcano.sh/reservation"
MAX_WRITTEN_NODES: Final = 64


@dataclass(slots=True, frozen=True)
class Reservation:
    """`spare` is what others may take now and keep beyond `start` without delaying the job."""

    start: datetime
    nodes: tuple[str, ...]
    spare: Resources


class _Written(msgspec.Struct, frozen=True):
    start: datetime
    nodes: list[str] = []
    spare: dict[str, float] = {}


def encode_reservation(reservation: Reservation) -> str:
    """The annotation's text; of very many nodes only the first are written."""
    written = _Written(reservation.start, list(reservation.nodes[:MAX_WRITTEN_NODES]), dict(reservation.spare.amounts))
    return msgspec.json.encode(written).decode()


def decode_reservation(text: str | None) -> Reservation | None:
    """None when there is none or it cannot be read."""
    if not text:
        return None
    try:
        written = msgspec.json.decode(text, type=_Written)
    except (msgspec.MsgspecError, ValueError):
        return None
    return Reservation(written.start, tuple(written.nodes), Resources(written.spare))
