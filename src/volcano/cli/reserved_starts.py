"""Reservations of waiting jobs, as `vcctl queue view` and `vcctl job view` show them."""

from __future__ import annotations

from collections.abc import Iterable

from volcano.api.jobs.reservations import StartReservation, decode_reservation
from volcano.api.meta import JSON
from volcano.cli.command_line import Called, say
from volcano.cli.connection import ApiConnection, connect
from volcano.cli.formats import local
from volcano.cli.queue import queue_name, queue_table
from volcano.cli.resources import POD_GROUPS, QUEUES

MAX_SHOWN_NODES = 4


def view(called: Called) -> None:
    """`vcctl queue view`: the queue's line, and which of its jobs have reserved room."""
    connection = connect(called)
    name = queue_name(called, "name is mandatory to view a particular queue")
    queue, groups = connection.get(QUEUES, "", name), connection.list(POD_GROUPS)
    say(queue_table([queue], groups))
    reserved = [each for each in _reserved(groups) if (each[0].get("spec") or {}).get("queue") == name]
    if reserved:
        say("\nReservations:")
    for group, reservation in sorted(reserved, key=lambda each: each[1].start):
        say(f"  {job_of(group)}: {described(reservation)}")


def reservation_of(connection: ApiConnection, job: JSON) -> StartReservation | None:
    """That of a job's PodGroup, if it has one."""
    uid, namespace = job["metadata"].get("uid"), job["metadata"].get("namespace", "")
    for group, reservation in _reserved(connection.list(POD_GROUPS, namespace)):
        if any(owner.get("uid") == uid for owner in group["metadata"].get("ownerReferences") or ()):
            return reservation
    return None


def described(reservation: StartReservation) -> str:
    """`2026-01-02 15:04:05 on 12 nodes (n1, n2, …) after default/a`."""
    count, names = reservation.node_count, reservation.nodes[:MAX_SHOWN_NODES]
    shown = ", ".join(names) + (", …" if count > len(names) else "")
    after = f" after {', '.join(reservation.after)}" if reservation.after else ""
    start = local(reservation.start).strftime("%Y-%m-%d %H:%M:%S")
    return f"{start} on {count} node{'s' * (count != 1)} ({shown}){after}"


def job_of(group: JSON) -> str:
    """The Job that a PodGroup belongs to, or its own name, with the namespace."""
    metadata = group["metadata"]
    owners = [owner["name"] for owner in metadata.get("ownerReferences") or () if owner.get("kind") == "Job"]
    return f"{metadata.get('namespace', '')}/{owners[-1] if owners else metadata['name']}"


def _reserved(groups: Iterable[JSON]) -> list[tuple[JSON, StartReservation]]:
    found = ((group, decode_reservation(group["metadata"].get("annotations") or {})) for group in groups)
    return [(group, reservation) for group, reservation in found if reservation is not None]
