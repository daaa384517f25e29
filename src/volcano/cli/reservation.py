"""`vcctl reservation`: create, list, view and delete Reservations."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final

from volcano.api.cron.schedule import load_zone
from volcano.api.decode import decode, decode_object
from volcano.api.durations import DurationError, parse_duration
from volcano.api.meta import JSON
from volcano.api.reservation import Reservation, windows
from volcano.api.times import parse_timestamp, timestamp
from volcano.cli.command_line import Called, say
from volcano.cli.connection import ApiConnection, connect
from volcano.cli.failures import Failed
from volcano.cli.formats import local, parse_resource_list, utc_now
from volcano.cli.output import follow, show
from volcano.cli.resources import NODES, RESERVATIONS
from volcano.machinery.local_zone import local_zone

SHOWN_WINDOWS: Final = 3
MAX_SHOWN_NODES: Final = 8
HEADINGS: Final = ("Name", "Phase", "Start", "For", "Holder", "Nodes", "Kept", "Missing")
_CLOCK: Final = re.compile(r"(?P<hour>\d{1,2}):(?P<minute>\d{2})")


# -- create -----------------------------------------------------------------------------------------------------------
def create(called: Called) -> None:
    values, connection = called.values, connect(called)
    zone = _zone(values["time-zone"])
    spec: JSON = {field: values[field] for field in ("queue", "namespace", "user", "maintenance") if values[field]}
    spec |= _when(called, zone)
    spec |= _what(called, connection)
    name = values["name"] or (called.arguments[0] if called.arguments else "")
    holder = spec.get("queue") or spec.get("namespace") or spec.get("user") or "reservation"
    prefix = re.sub(r"[^a-z0-9-]+", "-", str(holder).lower()).strip("-") or "reservation"
    metadata: JSON = {"name": name} if name else {"generateName": f"{prefix}-"}
    made = decode(Reservation, connection.create(RESERVATIONS, {"metadata": metadata, "spec": spec}))
    say(f"reservation {made.name} created")


def _zone(name: str) -> tzinfo:
    if not name:
        return local_zone()
    zone = load_zone(name)
    if zone is None:
        raise Failed(f"--time-zone: there is no time zone {name!r}".replace("'", '"'))
    return zone


def _when(called: Called, zone: tzinfo) -> JSON:
    values = called.values
    if not values["for"]:
        raise Failed("--for: say how long it lasts, such as 2h")
    try:
        length = parse_duration(values["for"])
    except DurationError as error:
        raise Failed(f"--for: {error}") from error
    start = parse_moment("--from", values["from"], utc_now(), zone)
    spec: JSON = {"start": timestamp(start), "duration": values["for"]}
    if values["every"]:
        schedule, zone_name = _schedule(values["every"], start, zone)
        spec |= {"schedule": schedule, "timeZone": zone_name}
        if values["until"]:
            spec["until"] = timestamp(parse_moment("--until", values["until"], utc_now(), zone))
    elif values["until"]:
        raise Failed("--until: only a reservation with --every has an end of its own")
    if length <= timedelta(0):
        raise Failed("--for: must be above 0s")
    return spec


def parse_moment(flag: str, text: str, now: datetime, zone: tzinfo) -> datetime:
    """A time of day is the next one in the zone; a date without a zone is in it."""
    if text == "now":
        return now.replace(microsecond=0)
    match = _CLOCK.fullmatch(text)
    try:
        if match is not None:
            here = now.astimezone(zone)
            at = here.replace(hour=int(match["hour"]), minute=int(match["minute"]), second=0, microsecond=0)
            return (at if at >= here else at + timedelta(days=1)).astimezone(UTC)
        if re.search(r"(Z|[+-]\d{2}:\d{2})$", text):
            return parse_timestamp(text)
        return datetime.fromisoformat(text).replace(tzinfo=zone).astimezone(UTC)
    except ValueError as error:
        raise Failed(f"{flag}: {text!r} is not a time such as 14:00 or '2026-11-20 14:00'") from error


def _schedule(every: str, start: datetime, zone: tzinfo) -> tuple[str, str]:
    """The cron schedule and its zone; a zone without a name is replaced by UTC."""
    name = getattr(zone, "key", None) or "UTC"
    begins = start.astimezone(zone if name != "UTC" else UTC)
    if every == "day":
        return f"{begins.minute} {begins.hour} * * *", name
    if every == "week":
        return f"{begins.minute} {begins.hour} * * {begins.isoweekday() % 7}", name
    return every, name


def _what(called: Called, connection: ApiConnection) -> JSON:
    values, spec = called.values, dict[str, Any]()
    if values["all-nodes"] and values["nodes"]:
        raise Failed("--nodes and --all-nodes exclude each other")
    nodes = [name.strip() for name in values["nodes"].split(",") if name.strip()]
    if values["all-nodes"]:
        nodes = sorted(node["metadata"]["name"] for node in connection.list(NODES))
    if nodes:
        spec["nodes"] = nodes
    amounts = parse_resource_list(values["resources"])
    amounts |= {name: values[name] for name in ("cpu", "memory") if values[name]}
    if amounts:
        spec["resources"] = amounts
    return spec


# -- looking ----------------------------------------------------------------------------------------------------------
def list_reservations(called: Called) -> None:
    connection = connect(called)
    found, revision = connection.list_at(RESERVATIONS)
    show(called, RESERVATIONS, found, reservation_table, reservation_table)
    follow(called, connection, RESERVATIONS, "", revision, lambda each: say(reservation_table([each]).splitlines()[1]))


def reservation_table(found: list[JSON]) -> str:
    rows = [HEADINGS, *(_row(decode_object(Reservation, each)) for each in found)]
    widths = [max(len(row[at]) for row in rows) + 2 for at in range(len(HEADINGS))]
    return "\n".join("".join(f"{value:<{width}}" for value, width in zip(row, widths)).rstrip() for row in rows)


def _row(reservation: Reservation) -> tuple[str, ...]:
    spec, status = reservation.spec, reservation.status
    return (
        reservation.name,
        status.phase or "-",
        _shown(status.start) if status.start is not None else "-",
        spec.duration,
        reservation.holder or "-",
        str(status.node_count),
        _amounts(status.kept),
        _amounts(status.missing),
    )


def view(called: Called) -> None:
    connection = connect(called)
    name = called.values["name"] or (called.arguments[0] if called.arguments else "")
    if not name:
        raise Failed("name is mandatory to view a particular reservation")
    reservation = decode_object(Reservation, connection.get(RESERVATIONS, "", name))
    spec, status = reservation.spec, reservation.status
    ahead = windows(spec, utc_now(), SHOWN_WINDOWS)
    nodes = ", ".join(status.nodes[:MAX_SHOWN_NODES]) + (", …" if status.node_count > MAX_SHOWN_NODES else "")
    lines = {
        "Name": reservation.name,
        "Holder": reservation.holder or "-",
        "Schedule": f"{spec.schedule} ({spec.time_zone or 'UTC'})" if spec.schedule else "once",
        "For": spec.duration,
        "Phase": status.phase or "-",
        "Windows": "; ".join(f"{_shown(each.start)} to {_shown(each.end)}" for each in ahead) or "none to come",
        "Asked": ", ".join(spec.nodes[:MAX_SHOWN_NODES]) + (f" {_amounts(spec.resources)}" if spec.resources else ""),
        "Kept": _amounts(status.kept),
        "Missing": _amounts(status.missing),
        "Nodes": f"{status.node_count} ({nodes})" if status.nodes else "0",
    }
    for heading, value in lines.items():
        say(f"{heading + ':':<10} {value}".rstrip())


def delete(called: Called) -> None:
    connection = connect(called)
    names = [name for name in (called.values["name"], *called.arguments) if name]
    if not names:
        raise Failed("reservation name must be specified")
    for name in names:
        connection.delete(RESERVATIONS, "", name)


def _shown(moment: datetime) -> str:
    return local(moment).strftime("%Y-%m-%d %H:%M")


def _amounts(amounts: Any) -> str:
    return ",".join(f"{name}={amount}" for name, amount in sorted((amounts or {}).items())) or "-"
