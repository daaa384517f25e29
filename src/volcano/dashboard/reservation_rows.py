"""Reservations of nodes or amounts ahead of time, one line each, as the Queues page shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from volcano.api.meta import Quantities
from volcano.api.reservation import ENDED, Reservation
from volcano.dashboard.view import CallerView

MAX_RESERVATIONS: Final = 50
MAX_NODES: Final = 8


class ReservationRow(msgspec.Struct, frozen=True, rename="camel"):
    """`start` and `end` are of the window that is open or comes next; `missing` is what could not be kept free."""

    name: str
    phase: str
    holder: str
    start: datetime | None
    end: datetime | None
    schedule: str
    kept: dict[str, str]
    missing: dict[str, str]
    nodes: list[str]
    node_count: int


async def reservation_rows(view: CallerView, queue: str = "") -> list[ReservationRow]:
    """Those that have a window to come, the earliest first; with `queue` only those for it."""
    found = [each for each in await view.all(Reservation) if each.status.phase != ENDED]
    if queue:
        found = [each for each in found if each.spec.queue == queue]
    rows = [_row(each) for each in found]
    rows.sort(key=lambda row: (row.start is None, row.start.timestamp() if row.start else 0.0, row.name))
    return rows[:MAX_RESERVATIONS]


def _row(reservation: Reservation) -> ReservationRow:
    spec, status = reservation.spec, reservation.status
    nodes = status.nodes or spec.nodes
    return ReservationRow(
        reservation.name,
        status.phase or "Pending",
        reservation.holder,
        status.start or spec.start,
        status.end,
        spec.schedule,
        _texts(status.kept or spec.resources),
        _texts(status.missing),
        list(nodes[:MAX_NODES]),
        max(status.node_count, len(nodes)),
    )


def _texts(amounts: Quantities | None) -> dict[str, str]:
    return {name: str(amount) for name, amount in (amounts or {}).items()}
