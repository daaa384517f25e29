"""Queues: the tree with what each holds, and one queue with its waiting line and expected starts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import msgspec

from volcano.api.core import Node
from volcano.api.held_shares import HeldShare, children_of, queue_shares
from volcano.api.jobs.expected_starts import ExpectedStart
from volcano.api.jobs.reservations import decode_reservation
from volcano.api.meta import Key, Quantities
from volcano.api.pods.amounts import added, amounts_of
from volcano.api.quantity import Quantity
from volcano.api.scheduling import PodGroup, Queue
from volcano.dashboard.job_rows import WAITING, JobRow
from volcano.dashboard.reservation_rows import ReservationRow, reservation_rows
from volcano.dashboard.view import CallerView
from volcano.dashboard.watched import BY_QUEUE

MAX_DEPTH: Final = 64
QUEUES_OF_PAGE: Final = 60
MAX_LINE: Final = 200
MAX_USERS: Final = 20


class ShownShare(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A HeldShare as text, with the parts of its bar between 0 and 1."""

    resource: str
    allocated: str
    deserved: str = ""
    guarantee: str = ""
    capability: str = ""
    borrowed: str = ""
    whole: str = ""
    own_part: float = 0.0
    borrowed_part: float = 0.0
    deserved_at: float | None = None
    guarantee_at: float | None = None


class QueueEntry(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    depth: int
    parent: str
    state: str
    weight: int
    priority: int
    reclaimable: bool
    shares: list[ShownShare]
    pending: int
    inqueue: int
    running: int


class QueuesPage(msgspec.Struct, frozen=True, rename="camel"):
    """`total` counts what the search leaves; `queues` is one page of that, in the order of the tree."""

    at: datetime
    queues: list[QueueEntry]
    total: int
    page: int
    pages: int
    reservations: list[ReservationRow] = []


class LinePlace(msgspec.Struct, frozen=True, rename="camel"):
    """A waiting job; its place is the order in which the scheduler expects to start them."""

    place: int
    job: JobRow
    start: datetime | None = None
    earliest: datetime | None = None
    latest: datetime | None = None
    after: list[str] = []
    reserved: datetime | None = None


class QueueDetails(msgspec.Struct, frozen=True, rename="camel"):
    at: datetime
    queue: QueueEntry
    line: list[LinePlace]
    more: int
    running: list[JobRow]
    knows_starts: bool
    awaits_starts: bool
    starts_at: datetime | None
    users: dict[str, int]
    groups: int
    reservations: list[ReservationRow] = []


def page_of_queues(at: datetime, entries: list[QueueEntry], query: Mapping[str, str]) -> QueuesPage:
    text = query.get("q", "").strip().lower()
    found = [entry for entry in entries if text in entry.name.lower()]
    pages = max(1, -(-len(found) // QUEUES_OF_PAGE))
    asked = query.get("page", "1")
    page = min(max(int(asked), 1), pages) if asked.isascii() and asked.isdigit() and len(asked) < 7 else 1
    return QueuesPage(at, found[(page - 1) * QUEUES_OF_PAGE : page * QUEUES_OF_PAGE], len(found), page, pages)


async def queues_page(view: CallerView, query: Mapping[str, str]) -> QueuesPage:
    queues = {queue.name: queue for queue in await view.all(Queue)}
    total = await _total(view)
    rows: list[QueueEntry] = []
    below = children_of((queue.name, queue.spec.parent) for queue in queues.values())
    waiting = [(name, 0) for name in reversed(below.get("", []))]
    seen: set[str] = set()
    while waiting:
        name, depth = waiting.pop()
        if name in seen or depth > MAX_DEPTH:
            continue
        seen.add(name)
        rows.append(queue_row(queues[name], depth, total))
        waiting += [(child, depth + 1) for child in reversed(below.get(name, []))]
    rows += [queue_row(queue, 0, total) for name, queue in sorted(queues.items()) if name not in seen]  # in a cycle
    found = page_of_queues(view.now, rows, query)
    return msgspec.structs.replace(found, reservations=await reservation_rows(view))


async def _total(view: CallerView) -> Mapping[str, Quantity]:
    return added(*(amounts_of(node.status.allocatable) for node in await view.all(Node)))


def queue_row(queue: Queue, depth: int, total: Mapping[str, Quantity]) -> QueueEntry:
    spec, status = queue.spec, queue.status
    guarantee = spec.guarantee.resource if spec.guarantee is not None else None
    shares = queue_shares(spec.deserved, guarantee, spec.capability, status.allocated, total)
    return QueueEntry(
        queue.name,
        depth,
        spec.parent,
        status.state or "Open",
        spec.weight,
        spec.priority,
        spec.reclaimable is not False,
        [share_text(share) for share in shares],
        status.pending,
        status.inqueue,
        status.running,
    )


def share_text(share: HeldShare) -> ShownShare:
    def part(amount: Quantity | None) -> float:
        return min(amount.nanos / share.whole.nanos, 1.0) if amount is not None and share.whole.nanos else 0.0

    def text(amount: Quantity | None) -> str:
        return str(amount) if amount is not None else ""

    lent = part(share.borrowed)
    return ShownShare(
        share.resource,
        str(share.allocated),
        text(share.deserved),
        text(share.guarantee),
        text(share.capability),
        str(share.borrowed) if share.borrowed else "",
        str(share.whole),
        max(part(share.allocated) - lent, 0.0),
        lent,
        part(share.deserved) if share.deserved is not None else None,
        part(share.guarantee) if share.guarantee is not None else None,
    )


async def queue_details(view: CallerView, name: str, *, for_program: bool = False) -> QueueDetails:
    queue = await view.get(Queue, Key("", name))
    rows = [row for row in await view.job_rows() if row.queue == name]
    waiting = [row for row in rows if row.state == WAITING]
    expected = await view.starts.known(for_program=for_program) if waiting else None
    reserved = {
        Key(group.namespace, owner.name): reservation.start
        for group in await _groups(view, name)
        if (reservation := decode_reservation(group.annotations)) is not None
        for owner in group.metadata.owner_references
        if owner.kind == "Job"
    }
    known = expected.jobs if expected is not None else {}
    waiting.sort(key=lambda row: _order(row, known.get(f"{row.namespace}/{row.name}")))
    line = []
    for place, row in enumerate(waiting[:MAX_LINE], 1):
        start = known.get(f"{row.namespace}/{row.name}") or ExpectedStart()
        when = reserved.get(row.key)
        line.append(LinePlace(place, row, start.start, start.earliest, start.latest, list(start.after), when))
    users: dict[str, int] = {}
    for row in rows:
        if row.state == "running":
            users[row.user or "–"] = users.get(row.user or "–", 0) + 1
    ranked = dict(sorted(users.items(), key=lambda each: -each[1])[:MAX_USERS])
    running = sorted((row for row in rows if row.state == "running"), key=lambda row: row.name)
    return QueueDetails(
        view.now,
        queue_row(queue, 0, await _total(view)),
        line,
        max(0, len(waiting) - MAX_LINE),
        running[:MAX_LINE],
        expected is not None,
        bool(waiting) and view.starts.is_pending,
        expected.at if expected is not None else None,
        ranked,
        len(rows),
        await reservation_rows(view, name),
    )


async def _groups(view: CallerView, queue: str) -> list[PodGroup]:
    sight = await view.sight(PodGroup)
    return [each for each in view.watched.where(PodGroup, BY_QUEUE, queue) if sight.sees(each.namespace)]


def _order(row: JobRow, expected: ExpectedStart | None) -> tuple[bool, float, float, str]:
    start = expected.start if expected is not None else None
    created = row.created.timestamp() if row.created else 0.0
    return (start is None, start.timestamp() if start else 0.0, created, row.name)


class QueueForm(msgspec.Struct, frozen=True, rename="camel"):
    """What the form to edit a queue shows: every resource that the queue or a node names."""

    name: str
    weight: int
    priority: int
    parent: str
    reclaimable: bool
    resources: list[str]
    guarantee: dict[str, str]
    deserved: dict[str, str]
    capability: dict[str, str]


async def queue_form(view: CallerView, name: str) -> QueueForm:
    queue = await view.get(Queue, Key("", name))
    spec = queue.spec
    guarantee = spec.guarantee.resource if spec.guarantee is not None else None
    stated = [_texts(each) for each in (guarantee, spec.deserved, spec.capability)]
    names = {"cpu", "memory", *(await _total(view)), *(key for each in stated for key in each)}
    hidden = {each for each in names if each.startswith("hugepages-") or each == "ephemeral-storage"}
    order = ["cpu", "memory", *sorted(names - {"cpu", "memory", "pods"} - hidden)]
    return QueueForm(
        name,
        spec.weight,
        spec.priority,
        spec.parent,
        spec.reclaimable is not False,
        order,
        stated[0],
        stated[1],
        stated[2],
    )


def _texts(amounts: Quantities | None) -> dict[str, str]:
    return {name: str(text) for name, text in (amounts or {}).items()}
