"""Reservation: nodes or amounts that are kept for one holder in a window of time, once or recurring; and its windows.

Of a recurring reservation every due time of its cron schedule begins a window. Which windows there are depends only on
the object and on the time that is asked about.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Annotated, Final

import msgspec

from volcano.api.durations import DurationError, parse_duration
from volcano.api.jobs.estimates import SUBMITTER_KEY
from volcano.api.meta import Model, Quantities, Resource
from volcano.api.schema_annotations import Count, Duration, Name253, wire

MAX_NODES: Final = 5000
MAX_WINDOW: Final = timedelta(days=366)
"""The longest window. A longer one is a mistake in the unit more often than a plan."""
MAX_WRITTEN_NODES: Final = 64
WAITING, ACTIVE, ENDED = "Waiting", "Active", "Ended"


class ReservationSpec(Model, frozen=True):
    queue: Name253 = ""
    namespace: Name253 = ""
    user: Name253 = ""
    maintenance: bool = False
    start: datetime | None = None
    duration: Annotated[Duration, wire(required=True)] = ""
    schedule: Annotated[str, wire(maxLength=1024)] = ""
    time_zone: Name253 = ""
    until: datetime | None = None
    nodes: Annotated[list[Name253], wire(maxItems=MAX_NODES)] = []
    resources: Quantities | None = None


class ReservationStatus(Model, frozen=True):
    phase: Annotated[str, wire(enum=(WAITING, ACTIVE, ENDED))] = ""
    start: datetime | None = None
    end: datetime | None = None
    kept: Quantities | None = None
    missing: Quantities | None = None
    nodes: list[str] = []
    node_count: Count = 0


class Reservation(Resource, frozen=True):
    spec: ReservationSpec = ReservationSpec()
    status: ReservationStatus = ReservationStatus()

    @property
    def holder(self) -> str:
        """For whom it is kept, in words."""
        spec = self.spec
        if spec.maintenance:
            return "maintenance"
        named = (("queue", spec.queue), ("namespace", spec.namespace), ("user", spec.user))
        return ", ".join(f"{kind} {name}" for kind, name in named if name)

    def is_held_by(self, *, queues: frozenset[str], namespace: str, annotations: dict[str, str]) -> bool:
        """Whether a job with this line of queues is the holder's: everything that is stated must hold."""
        spec = self.spec
        if spec.maintenance or not (spec.queue or spec.namespace or spec.user):
            return False
        return (
            (not spec.queue or spec.queue in queues)
            and (not spec.namespace or spec.namespace == namespace)
            and (not spec.user or spec.user == annotations.get(SUBMITTER_KEY, ""))
        )


class ReservedWindow(msgspec.Struct, frozen=True, order=True):
    start: datetime
    end: datetime

    def overlaps(self, other: ReservedWindow) -> bool:
        return self.start < other.end and other.start < self.end


def window_length(spec: ReservationSpec) -> timedelta:
    """ValueError when it is not a duration that a window may have."""
    rule = f"must be a duration above 0s and of at most {MAX_WINDOW // timedelta(hours=1)}h, such as 2h"
    try:
        length = parse_duration(spec.duration)
    except DurationError as error:
        raise ValueError(rule) from error
    if not timedelta(0) < length <= MAX_WINDOW:
        raise ValueError(rule)
    return length


def windows(spec: ReservationSpec, now: datetime, limit: int = 1) -> list[ReservedWindow]:
    """The windows that have not ended, the next ones first; none when the object cannot be read."""
    try:
        length = window_length(spec)
    except ValueError:
        return []
    if not spec.schedule:
        if spec.start is None or spec.start + length <= now:
            return []
        return [ReservedWindow(spec.start, spec.start + length)]
    from volcano.api.cron.due import BadSchedule, timetable  # most programs know the kind and ask for no window

    known = timetable(spec.schedule, spec.time_zone or None, UTC)
    if isinstance(known, BadSchedule):
        return []
    after = now - length
    if spec.start is not None:
        after = max(after, spec.start - timedelta(seconds=1))
    found: list[ReservedWindow] = []
    while len(found) < limit:
        due = known.schedule.next(after)
        if due is None or (spec.until is not None and due >= spec.until):
            break
        found.append(ReservedWindow(due, due + length))
        after = due
    return [window for window in found if window.end > now]


def zone_of(spec: ReservationSpec) -> tzinfo | None:
    """None when there is no such zone."""
    from volcano.api.cron.schedule import load_zone

    return load_zone(spec.time_zone) if spec.time_zone else UTC
