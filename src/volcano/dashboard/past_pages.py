"""Pages at a past moment: the values of the live pages, made from the history instead of the watched objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from volcano.api.core import FINISHED_POD_PHASES
from volcano.api.errors import NotFound
from volcano.api.held_shares import children_of, queue_shares
from volcano.api.history_records import JobRecord, JobStory, NodeSample, PastPod, QueueSample
from volcano.api.meta import Key
from volcano.api.pods.amounts import added, amounts_of
from volcano.dashboard.job_page import JobDetails, JobRole, PhaseSpan, PodCell
from volcano.dashboard.job_rows import FAILED, STATE_OF_PHASE, STATES, WAITING, JobRow
from volcano.dashboard.jobs_page import DEFAULT_SIZE, JobGroup, JobsPage
from volcano.dashboard.nodes_page import BANDS, MAX_LISTED, NodeCell, NodeRow, NodesPage
from volcano.dashboard.overview_page import ClusterOverview, ordered_resources, reason_counts, resource_uses
from volcano.dashboard.past_reads import past_counts, past_job, past_jobs, past_moment
from volcano.dashboard.queues_page import QueueEntry, QueuesPage, page_of_queues, share_text
from volcano.machinery.client import Client

MAX_OLDEST: Final = 8
PHASES_OF_STATE: Final = {
    state: tuple(str(phase) for phase, of in STATE_OF_PHASE.items() if of == state and phase) for state in STATES
}
SORTS: Final = {"created": "created", "name": "name", "namespace": "namespace", "queue": "queue", "user": "user",
                "state": "phase", "waited": "waited", "ran": "ran", "cpu": "cpu"}  # fmt: skip


def row_of(record: JobRecord, at: datetime) -> JobRow:
    state = STATE_OF_PHASE.get(record.phase, FAILED if record.ended else WAITING)
    return JobRow(
        record.namespace,
        record.name,
        record.queue,
        record.phase or "Pending",
        state,
        record.user,
        record.created,
        record.started if record.started and record.started <= at else None,
        record.ended if record.ended and record.ended <= at else None,
        record.pods,
        record.min_available,
        retries=record.retries,
        priority_class=record.priority_class,
        reason=record.message if state in (WAITING, FAILED) else "",
        cause=record.reason if state in (WAITING, FAILED) else "",
        requests=record.requests,
        labels=record.labels,
    )


async def overview_then(client: Client, at: datetime) -> ClusterOverview:
    moment = await past_moment(client, at)
    states = Counter(dict.fromkeys(STATES, 0))
    for each in moment.jobs:
        states[STATE_OF_PHASE.get(each.phase, FAILED)] += each.count
    waiting = await past_jobs(
        client, at=at, phases=PHASES_OF_STATE[WAITING], sort="created", descending=False, limit=200
    )
    rows = [row_of(record, at) for record in waiting.jobs]
    nodes = [node for node in moment.nodes if not node.gone]
    return ClusterOverview(
        at,
        dict(states),
        resource_uses(
            added(*(amounts_of({**node.allocatable}) for node in nodes)),
            added(*(amounts_of({**node.requested, "pods": node.pods}) for node in nodes)),
        ),
        len(nodes),
        sum(node.ready for node in nodes),
        rows[:MAX_OLDEST],
        reason_counts(rows),
        [],
    )


async def jobs_then(client: Client, query: Mapping[str, str], at: datetime) -> JobsPage:
    sort = query.get("sort", "-created")
    size, asked = DEFAULT_SIZE, query.get("page", "1")
    page = max(int(asked), 1) if asked.isascii() and asked.isdigit() and len(asked) < 7 else 1
    chosen: dict[str, Any] = {name: query.get(name, "") for name in ("namespace", "queue", "user", "label")}
    chosen |= {"text": query.get("q", ""), "at": at}
    state = query.get("state", "")
    phases = PHASES_OF_STATE.get(state, (state,) if state else ())
    order = SORTS.get(sort.lstrip("-"), "created")
    found = await past_jobs(
        client,
        **chosen,
        phases=phases,
        sort=order,
        descending=sort.startswith("-"),
        offset=(page - 1) * size,
        limit=size,
    )
    counts = Counter(dict.fromkeys(STATES, 0))
    for count in await past_counts(client, "kind", **chosen):
        counts[STATE_OF_PHASE.get(count.phase, FAILED)] += count.count
    group = query.get("group", "")
    by = "phase" if group == "state" else group
    known = by in ("queue", "user", "namespace", "phase") or by.startswith("label:")
    groups: dict[str, Counter[str]] = {}
    for each in await past_counts(client, by, **chosen, phases=phases) if known else ():
        groups.setdefault(each.group or "(none)", Counter())[STATE_OF_PHASE.get(each.phase, FAILED)] += each.count
    listed = [JobGroup(value, each.total(), dict(each)) for value, each in groups.items()]
    return JobsPage(
        at,
        [row_of(record, at) for record in found.jobs],
        found.total,
        page,
        max(1, -(-found.total // size)),
        size,
        sort.lstrip("-"),
        sort.startswith("-"),
        dict(counts),
        sorted(listed, key=lambda each: -each.jobs),
        group if known else "",
        {field: [query[field]] if query.get(field) else [] for field in ("namespace", "queue", "user")},
    )


async def job_then(client: Client, key: Key, at: datetime | None, now: datetime) -> JobDetails:
    """A job at a moment, or one that is gone, as it was last."""
    story = await past_job(client, key.namespace, key.name, at)
    if story is None:
        raise NotFound(f"there is no job {key}{' at that time' if at else ', and the history knows of none'}")
    return details(story, at or story.job.gone or story.job.ended or now)


def details(story: JobStory, at: datetime) -> JobDetails:
    states = [state for state in story.states if state.at <= at]
    job = row_of(story.job, at)
    if states:
        last = states[-1]
        state = STATE_OF_PHASE.get(last.phase, FAILED)
        reason = (last.message, last.reason) if state in (WAITING, FAILED) else ("", "")
        job = msgspec.structs.replace(
            job, phase=last.phase or "Pending", state=state, reason=reason[0], cause=reason[1]
        )
    spans: list[PhaseSpan] = []
    for each in states:
        if not spans or spans[-1].phase != (each.phase or "Pending"):
            if spans:
                spans[-1] = msgspec.structs.replace(spans[-1], ended=each.at)
            spans.append(PhaseSpan(each.phase or "Pending", each.at, None))
    pods = [pod for pod in story.pods if pod.created <= at]
    roles = []
    for role in story.job.roles:
        cells = sorted(
            (cell_of(pod, at) for pod in pods if pod.role == role.name), key=lambda cell: (cell.index, cell.name)
        )
        counts = Counter(cell.state for cell in cells)
        roles.append(JobRole(role.name, role.count, role.count, dict(counts), cells))
    bars = [cell for role in roles for cell in role.pods][:60]
    return JobDetails(at, job, roles, spans, "", "", None, [], 0, bars, True, story.job.uid)


def cell_of(pod: PastPod, at: datetime) -> PodCell:
    ended = pod.ended if pod.ended and pod.ended <= at else None
    started = pod.started if pod.started and pod.started <= at else None
    if ended is not None:
        state = pod.phase if pod.phase in FINISHED_POD_PHASES else "Ending"
    else:
        state = "Running" if started else "Starting" if pod.bound and pod.bound <= at else "Waiting"
    node = pod.node if pod.bound and pod.bound <= at else ""
    return PodCell(
        pod.name, pod.index, state, pod.reason if ended else "", node, pod.restarts, pod.created, started, ended,
        pod.exit_code if ended else None, [],
    )  # fmt: skip


async def queues_then(client: Client, query: Mapping[str, str], at: datetime) -> QueuesPage:
    moment = await past_moment(client, at)
    queues = {queue.queue: queue for queue in moment.queues if not queue.gone}
    total = added(*(amounts_of({**node.allocatable}) for node in moment.nodes if not node.gone))
    below = children_of((queue.queue, queue.parent) for queue in queues.values())
    entries: list[QueueEntry] = []
    waiting = [(name, 0) for name in reversed(below.get("", []))]
    while waiting and len(entries) <= len(queues):
        name, depth = waiting.pop()
        entries.append(entry_of(queues[name], depth, total))
        waiting += [(child, depth + 1) for child in reversed(below.get(name, []))]
    return page_of_queues(at, entries, query)


def entry_of(queue: QueueSample, depth: int, total: Mapping[str, Any]) -> QueueEntry:
    shares = queue_shares({**queue.deserved}, {**queue.guarantee}, {**queue.capability}, {**queue.allocated}, total)
    return QueueEntry(
        queue.queue, depth, queue.parent, queue.state or "Open", queue.weight, 0, True,
        [share_text(share) for share in shares], queue.pending, queue.inqueue, queue.running,
    )  # fmt: skip


async def nodes_then(client: Client, query: Mapping[str, str], at: datetime) -> NodesPage:
    moment = await past_moment(client, at)
    text = query.get("q", "").lower()
    nodes = sorted((node for node in moment.nodes if not node.gone and text in node.node.lower()), key=lambda n: n.node)
    names = ordered_resources({name for node in nodes for name in node.allocatable})
    resource = query.get("resource") or (names[0] if names else "cpu")
    rows = [node_then(node) for node in nodes]
    shares = [next((use.share for use in row.uses if use.name == resource), 0.0) for row in rows]
    cells = [NodeCell(row.name, row.state, each, min(round(each * BANDS), BANDS)) for row, each in zip(rows, shares)]
    bands = Counter(min(int(each * BANDS), BANDS - 1) for each in shares)
    histogram = [bands[number] for number in range(BANDS)]
    return NodesPage(at, resource, names, cells, histogram, rows[:MAX_LISTED], len(rows), 1, 1, [], {}, "", True)


def node_then(node: NodeSample) -> NodeRow:
    state = ("Ready" if node.ready else "NotReady") + ("" if node.schedulable else ", closed")
    uses = resource_uses(amounts_of({**node.allocatable}), amounts_of({**node.requested, "pods": node.pods}))
    return NodeRow(node.node, state, uses, {}, [])
