"""The status of Reservations: the present or next window, and what is kept in it."""

from __future__ import annotations

from collections.abc import Iterator

from volcano.api.meta import JSON, Quantities
from volcano.api.reservation import ACTIVE, ENDED, MAX_WRITTEN_NODES, WAITING, Reservation
from volcano.api.times import timestamp
from volcano.machinery.plan import Patch, ref
from volcano.scheduler.commit.queues import quantities_from
from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.framework.decisions import Decisions
from volcano.scheduler.framework.record import KeptStatus
from volcano.scheduler.model import PODS, Resources


def reservation_patches(decisions: Decisions, snapshot: Snapshot) -> Iterator[tuple[Reservation, Patch, bool]]:
    """For every one whose status is not current: the object, the patch, and whether it has another phase or window."""
    for reservation in snapshot.cluster.reservations.values():
        wanted = _status(decisions.kept.get(reservation.name))
        stated = _stated(reservation)
        if wanted != stated:
            body: JSON = {"status": _merge(wanted, stated)}
            is_new = any(wanted.get(name) != stated.get(name) for name in ("phase", "start"))
            yield reservation, Patch(ref(reservation), body, subresource="status"), is_new


def _status(kept: KeptStatus | None) -> JSON:
    if kept is None:
        return {"phase": ENDED}
    status: JSON = {
        "phase": ACTIVE if kept.is_active else WAITING,
        "start": timestamp(kept.start),
        "end": timestamp(kept.end),
        "kept": _amounts(kept.kept),
        "missing": _amounts(kept.missing),
        "nodes": list(kept.nodes[:MAX_WRITTEN_NODES]),
        "nodeCount": len(kept.nodes),
    }
    return {name: value for name, value in status.items() if value}


def _amounts(amount: Resources) -> Quantities:
    present = Resources({name: max(value, 0.0) for name, value in amount.amounts.items() if name != PODS})
    return {name: text for name, text in quantities_from(present).items() if text != "0"}


def _stated(reservation: Reservation) -> JSON:
    status = reservation.status
    stated: JSON = {
        "phase": status.phase,
        "start": timestamp(status.start) if status.start is not None else "",
        "end": timestamp(status.end) if status.end is not None else "",
        "kept": status.kept or {},
        "missing": status.missing or {},
        "nodes": list(status.nodes),
        "nodeCount": status.node_count,
    }
    return {name: value for name, value in stated.items() if value}


def _merge(wanted: JSON, stated: JSON) -> JSON:
    """A merge patch from what is stated: what is gone becomes null, also inside of amounts."""
    body: JSON = {name: None for name in stated if name not in wanted}
    for name, value in wanted.items():
        gone = stated.get(name, {})
        body[name] = {**dict.fromkeys(gone), **value} if isinstance(value, dict) and isinstance(gone, dict) else value
    return body
