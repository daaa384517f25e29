"""/reservations/validate: a Reservation has a holder, a window to come and something to keep, which the cluster has.

Windows are compared as far as WINDOWS_COMPARED of each reach; a recurring one is checked again whenever it changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

from volcano.admission.queue_resources import Amounts, amounts, total
from volcano.admission.review import Reader, ReviewAnswer, Settings, read, refuse_all, section
from volcano.api.core import Namespace, Node
from volcano.api.cron.due import BadSchedule, timetable
from volcano.api.cron.schedule import Interval
from volcano.api.errors import FieldError
from volcano.api.field_errors import duplicate, forbidden, invalid, item, not_found, required, too_many
from volcano.api.meta import Key
from volcano.api.quantity import Quantity, QuantityError, parse_quantity
from volcano.api.reservation import Reservation, ReservationSpec, ReservedWindow, window_length, windows, zone_of
from volcano.api.scheduling import Queue
from volcano.api.times import timestamp, timestamp_or_none
from volcano.machinery.admission import Attributes

MAX_RESERVATIONS: Final = 1000
MAX_RESOURCES: Final = 64
WINDOWS_COMPARED: Final = 64
NONE: Final = Quantity(0)


def validate_reservation(attributes: Attributes, reader: Reader, _settings: Settings) -> ReviewAnswer:
    new = read(Reservation, attributes.object)
    if isinstance(new, ReviewAnswer):
        return new
    if attributes.old is not None and section(attributes.old, "spec") == section(attributes.object, "spec"):
        return refuse_all([])  # what was right when it was written stays, also when a node has left since
    now = attributes.at or timestamp_or_none(section(attributes.object, "metadata").get("creationTimestamp"))
    problems = [*_holder(new.spec, reader), *_time(new.spec, now), *_what(new.spec, reader)]
    if not problems:
        problems += _beside_others(new, reader, now or datetime(1970, 1, 1, tzinfo=UTC))
    return refuse_all([str(problem) for problem in problems])


# -- for whom ---------------------------------------------------------------------------------------------------------
def _holder(spec: ReservationSpec, reader: Reader) -> Iterator[FieldError]:
    holders = {"queue": spec.queue, "namespace": spec.namespace, "user": spec.user}
    stated = [kind for kind, name in holders.items() if name]
    if spec.maintenance:
        yield from (forbidden(f"spec.{name}", "a maintenance window has no holder") for name in stated)
    elif not stated:
        yield required("spec", "a queue, a namespace, a user or maintenance must be stated")
    if spec.queue and reader.get(Queue, Key("", spec.queue)) is None:
        yield not_found("spec.queue", spec.queue)
    if spec.namespace and reader.get(Namespace, Key("", spec.namespace)) is None:
        yield not_found("spec.namespace", spec.namespace)


# -- when -------------------------------------------------------------------------------------------------------------
def _time(spec: ReservationSpec, now: datetime | None) -> Iterator[FieldError]:
    found = [*_length(spec), *_recurrence(spec)]
    yield from found
    if found or now is None or windows(spec, now):
        return
    if spec.schedule:
        yield invalid("spec.schedule", spec.schedule, "no window of it is to come")
    elif spec.start is not None:
        ended = timestamp(spec.start + window_length(spec))
        yield invalid("spec.start", timestamp(spec.start), f"the window has ended at {ended}")


def _length(spec: ReservationSpec) -> Iterator[FieldError]:
    try:
        window_length(spec)
    except ValueError as error:
        yield invalid("spec.duration", spec.duration, str(error))


def _recurrence(spec: ReservationSpec) -> Iterator[FieldError]:
    if not spec.schedule:
        if spec.start is None:
            yield required("spec.start", "the window begins at this time, or a schedule says when")
        if spec.until is not None:
            yield forbidden("spec.until", "only windows of a schedule end")
    if zone_of(spec) is None:
        yield invalid("spec.timeZone", spec.time_zone, "there is no such time zone")
    elif spec.schedule:
        known = timetable(spec.schedule, spec.time_zone or None, UTC)
        if isinstance(known, BadSchedule):
            yield invalid("spec.schedule", spec.schedule, known.message)
        elif isinstance(known.schedule, Interval):
            yield invalid("spec.schedule", spec.schedule, "must name times, such as `0 14 * * *`, and not an interval")


# -- what -------------------------------------------------------------------------------------------------------------
def _what(spec: ReservationSpec, reader: Reader) -> Iterator[FieldError]:
    if not spec.nodes and spec.resources is None:
        yield required("spec", "nodes or resources must be stated")
    seen: set[str] = set()
    for index, name in enumerate(spec.nodes):
        path = item("spec.nodes", index)
        if name in seen:
            yield duplicate(path, name)
        elif reader.get(Node, Key("", name)) is None:
            yield not_found(path, name)
        seen.add(name)
    yield from _amounts(spec)


def _amounts(spec: ReservationSpec) -> Iterator[FieldError]:
    if spec.resources is None:
        return
    if not spec.resources:
        yield required("spec.resources", "at least one resource")
    if len(spec.resources) > MAX_RESOURCES:
        yield too_many("spec.resources", len(spec.resources), MAX_RESOURCES)
    for name, text in spec.resources.items():
        try:
            if parse_quantity(text) <= NONE:
                yield invalid(item("spec.resources", name), str(text), "must be greater than 0")
        except QuantityError as error:
            yield invalid(item("spec.resources", name), str(text), str(error))


# -- beside others ----------------------------------------------------------------------------------------------------
def _beside_others(new: Reservation, reader: Reader, now: datetime) -> Iterator[FieldError]:
    every = reader.all(Reservation)
    others = [other for other in every if other.name != new.name]
    if len(others) >= MAX_RESERVATIONS:
        yield too_many("spec", len(others) + 1, MAX_RESERVATIONS)
        return
    mine = windows(new.spec, now, WINDOWS_COMPARED)
    beside = [other for other in others if _overlap(mine, windows(other.spec, now, WINDOWS_COMPARED))]
    yield from _shared_nodes(new, beside)
    yield from _too_much(new, beside, {node.name: node for node in reader.all(Node)})


def _overlap(mine: list[ReservedWindow], theirs: list[ReservedWindow]) -> bool:
    """Both lists are in order of time."""
    at = 0
    for window in mine:
        while at < len(theirs) and theirs[at].end <= window.start:
            at += 1
        if at < len(theirs) and window.overlaps(theirs[at]):
            return True
    return False


def _shared_nodes(new: Reservation, beside: Iterable[Reservation]) -> Iterator[FieldError]:
    """A node that one of two keeps whole cannot be named by the other."""
    for other in beside:
        shared = set(new.spec.nodes) & set(other.spec.nodes)
        if not shared or (new.spec.resources is not None and other.spec.resources is not None):
            continue
        index = next(index for index, name in enumerate(new.spec.nodes) if name in shared)
        detail = f"reservation {other.name} has it in a window that overlaps"
        yield invalid(item("spec.nodes", index), new.spec.nodes[index], detail)


def _too_much(new: Reservation, beside: list[Reservation], nodes: dict[str, Node]) -> Iterator[FieldError]:
    """Amounts on named nodes count against these nodes, and all amounts against the whole cluster."""
    whole = {name for other in (new, *beside) if other.spec.resources is None for name in other.spec.nodes}
    wanted = amounts(new.spec.resources)
    if wanted and new.spec.nodes:
        named = set(new.spec.nodes)
        rivals = [each for each in beside if named & set(each.spec.nodes)]
        found = [*_lacking(wanted, "of these nodes", _total_of(nodes, named - whole), rivals)]
        yield from found
        if found:
            return
    has = _total_of(nodes, nodes.keys() - whole)
    if wanted:
        yield from _lacking(wanted, "of the cluster", has, beside)
        return
    for name, kept in total(amounts(each.spec.resources) for each in beside).items():
        if kept > has.get(name, NONE):
            left = f"leaves {has.get(name, NONE)} {name}, and overlapping reservations keep {kept}"
            yield invalid("spec.nodes", list(new.spec.nodes), left)
            return


def _lacking(wanted: Amounts, words: str, has: Amounts, rivals: Iterable[Reservation]) -> Iterator[FieldError]:
    kept = total(amounts(each.spec.resources) for each in rivals)
    for name, amount in wanted.items():
        if amount + kept.get(name, NONE) > has.get(name, NONE):
            beside = f", and overlapping reservations keep {kept[name]}" if name in kept else ""
            detail = f"exceeds the {has.get(name, NONE)} {words}{beside}"
            yield invalid(item("spec.resources", name), str(amount), detail)


def _total_of(nodes: dict[str, Node], names: Iterable[str]) -> Amounts:
    return total(amounts(nodes[name].status.allocatable) for name in names if name in nodes)
