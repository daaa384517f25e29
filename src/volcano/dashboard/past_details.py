"""One queue, one node, the topology, flows, decisions and settings at a past moment, as far as the history knows them.

HyperNodes, JobFlows and the scheduler's configuration are not part of the history: those of now are shown, and the page
says so. dashboard.past_pages has the lists.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Final

import msgspec

from volcano.api.errors import NotFound
from volcano.api.flow import CREATED_BY_FLOW, JobFlow
from volcano.api.history_records import PastPod
from volcano.api.meta import Key
from volcano.api.pods.amounts import added, amounts_of
from volcano.api.topology import HyperNode
from volcano.dashboard.decisions_page import DecisionsPage, decisions_page
from volcano.dashboard.flows_page import FlowDetails, FlowRow, FlowsPage, drawn, flow_row
from volcano.dashboard.job_rows import COMPLETED, FAILED, RUNNING, STATE_OF_PHASE, WAITING
from volcano.dashboard.nodes_page import MAX_PODS, NodeDetails
from volcano.dashboard.past_pages import PHASES_OF_STATE, cell_of, entry_of, node_then, row_of
from volcano.dashboard.past_reads import past_counts, past_jobs, past_moment, past_pods_on
from volcano.dashboard.queues_page import MAX_LINE, MAX_USERS, LinePlace, QueueDetails
from volcano.dashboard.settings_page import SettingsPage, settings_page
from volcano.dashboard.topology_page import TopologyPage, domain_rows
from volcano.dashboard.view import CallerView
from volcano.machinery.client import Client

MAX_FLOW_JOBS: Final = 1_000


async def queue_then(client: Client, name: str, at: datetime) -> QueueDetails:
    moment = await past_moment(client, at)
    sample = next((queue for queue in moment.queues if queue.queue == name and not queue.gone), None)
    if sample is None:
        raise NotFound(f"there was no queue {name} at that time, or you may not list queues")
    total = added(*(amounts_of({**node.allocatable}) for node in moment.nodes if not node.gone))
    found = {}
    for state in (WAITING, RUNNING):
        found[state] = await past_jobs(
            client, at=at, queue=name, phases=PHASES_OF_STATE[state], sort="created", descending=False, limit=MAX_LINE
        )
    users: Counter[str] = Counter()
    for count in await past_counts(client, "user", at=at, queue=name, phases=PHASES_OF_STATE[RUNNING]):
        users[count.group or "–"] += count.count
    return QueueDetails(
        at,
        entry_of(sample, 0, total),
        [LinePlace(place, row_of(record, at)) for place, record in enumerate(found[WAITING].jobs, 1)],
        max(0, found[WAITING].total - MAX_LINE),
        [row_of(record, at) for record in found[RUNNING].jobs],
        False,
        False,
        None,
        dict(users.most_common(MAX_USERS)),
        found[WAITING].total + found[RUNNING].total,
    )


async def node_details_then(client: Client, name: str, at: datetime) -> NodeDetails:
    moment = await past_moment(client, at)
    sample = next((node for node in moment.nodes if node.node == name and not node.gone), None)
    if sample is None:
        raise NotFound(f"there was no node {name} at that time, or you may not list nodes")
    pods = await past_pods_on(client, name, at)
    listed = [(pod.namespace, job_name(pod), cell_of(pod, at)) for pod in pods[:MAX_PODS]]
    return NodeDetails(at, node_then(sample), listed, max(0, len(pods) - MAX_PODS), {}, {})


def job_name(pod: PastPod) -> str:
    """Pods of a Volcano Job are named JOB-ROLE-INDEX."""
    before, found, _ = pod.name.rpartition(f"-{pod.role}-{pod.index}")
    return before if found and pod.role else ""


async def topology_then(view: CallerView, at: datetime) -> TopologyPage:
    moment = await past_moment(view.caller.client, at)
    nodes = [node for node in moment.nodes if not node.gone]
    labels: dict[str, Mapping[str, str]] = {node.node: {} for node in nodes}
    labels |= {node.name: node.labels for node in await view.nodes() if node.name in labels}
    have = {node.node: amounts_of({**node.allocatable}) for node in nodes}
    loads = {node.node: amounts_of({**node.requested, "pods": node.pods}) for node in nodes}
    rows, more = domain_rows(await view.all(HyperNode), labels, have, loads)
    return TopologyPage(at, rows, more, True, has_tree_of_now=True)


# -- flows -----------------------------------------------------------------------------------------------------------
async def flows_then(view: CallerView, at: datetime) -> FlowsPage:
    flows = [flow for flow in await view.all(JobFlow) if _existed(flow, at)]
    found = await past_jobs(view.caller.client, at=at, label=CREATED_BY_FLOW, limit=MAX_FLOW_JOBS)
    phases = {Key(job.namespace, job.name): job.phase for job in found.jobs}
    rows = [_row_then(flow, phases) for flow in flows]
    rows.sort(key=lambda row: (row.created is None, row.created), reverse=True)
    return FlowsPage(at, rows, len(rows))


async def flow_then(view: CallerView, key: Key, at: datetime) -> FlowDetails:
    flow = await view.get(JobFlow, key)
    if not _existed(flow, at):
        raise NotFound(f"there was no flow {key} at that time")
    found = await past_jobs(
        view.caller.client, at=at, namespace=key.namespace, label=CREATED_BY_FLOW, limit=MAX_FLOW_JOBS
    )
    phases = {Key(job.namespace, job.name): job.phase for job in found.jobs}
    names = {name.name: phase or "Pending" for name, phase in phases.items()}
    return drawn(flow, names, _row_then(flow, phases), at)


def _existed(flow: JobFlow, at: datetime) -> bool:
    created = flow.metadata.creation_timestamp
    return created is None or created <= at


def _row_then(flow: JobFlow, phases: Mapping[Key, str]) -> FlowRow:
    mine = [phases.get(Key(flow.namespace, f"{flow.name}-{step.name}")) for step in flow.spec.flows]
    states = Counter(STATE_OF_PHASE.get(phase, FAILED) for phase in mine if phase is not None)
    if states[FAILED]:
        phase = "Failed"
    elif mine and states[COMPLETED] == len(mine):
        phase = "Succeed"
    else:
        phase = "Running" if states else "Pending"
    return msgspec.structs.replace(
        flow_row(flow), phase=phase, done=states[COMPLETED], running=states[RUNNING], failed=states[FAILED]
    )


# -- the scheduler ---------------------------------------------------------------------------------------------------
async def decisions_then(view: CallerView, query: Mapping[str, str], at: datetime) -> DecisionsPage:
    """The cycles up to then that the scheduler still remembers."""
    page = await decisions_page(view, query, until=at)
    return msgspec.structs.replace(page, at=at)


async def settings_then(view: CallerView, at: datetime) -> SettingsPage:
    return msgspec.structs.replace(await settings_page(view), at=at, is_of_now=True)
