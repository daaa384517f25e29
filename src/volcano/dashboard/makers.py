"""What each page shows, made from a request: the views of now, and those of a past moment.

dashboard.pages has the addresses; the modules of the pages compute.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import msgspec

from volcano.api.batch import Job
from volcano.api.core import FINISHED_POD_PHASES
from volcano.api.errors import NotFound
from volcano.api.meta import Key
from volcano.api.scheme import resource_type
from volcano.api.why.answers import WhyAnswer
from volcano.dashboard.actions import EXAMPLE, SubmitPage
from volcano.dashboard.decisions_page import decisions_page
from volcano.dashboard.flows_page import flow_details, flows_page
from volcano.dashboard.job_page import job_page
from volcano.dashboard.jobs_page import jobs_page
from volcano.dashboard.nodes_page import node_details, nodes_page
from volcano.dashboard.object_reads import MAX_LOG_LINES, EventLine, events_about, log_lines, why, yaml_of
from volcano.dashboard.overview_page import overview
from volcano.dashboard.past_details import (
    decisions_then,
    flow_then,
    flows_then,
    node_details_then,
    queue_then,
    settings_then,
    topology_then,
)
from volcano.dashboard.past_pages import job_then, jobs_then, nodes_then, overview_then, queues_then
from volcano.dashboard.queues_page import queue_details, queue_form, queues_page
from volcano.dashboard.settings_page import settings_page
from volcano.dashboard.topology_page import topology_page
from volcano.dashboard.usage_page import queue_chart, usage_chart, usage_page
from volcano.dashboard.view import CallerView
from volcano.dashboard.web import API_PREFIX, WebRequest

DEFAULT_LOG_LINES: Final = 500


class PageRequest(msgspec.Struct, frozen=True):
    """Who asks for what: the view of the caller, the names in the path, and the query."""

    view: CallerView
    names: dict[str, str]
    web: WebRequest

    @property
    def query(self) -> dict[str, str]:
        return self.web.query

    @property
    def is_program(self) -> bool:
        """JSON is asked for: the reader does not follow changes."""
        return self.web.path.startswith(f"{API_PREFIX}/")

    @property
    def key(self) -> Key:
        return Key(self.names.get("namespace", ""), self.names["name"])


class Text(msgspec.Struct, frozen=True):
    """An object as text."""

    name: str
    namespace: str
    text: str


class WhyPart(msgspec.Struct, frozen=True):
    answer: WhyAnswer | None
    problem: str
    name: str
    namespace: str


class EventsPart(msgspec.Struct, frozen=True):
    events: list[EventLine]
    name: str
    namespace: str


class LogPage(msgspec.Struct, frozen=True, rename="camel"):
    namespace: str
    name: str
    pod: str
    container: str
    containers: list[str]
    pods: list[str]
    lines: list[str]
    search: str
    previous: bool
    is_over: bool


async def make_overview(asked: PageRequest) -> Any:
    return await overview(asked.view)


async def make_queues(asked: PageRequest) -> Any:
    return await queues_page(asked.view, asked.query)


async def make_queue(asked: PageRequest) -> Any:
    return await queue_details(asked.view, asked.names["name"], for_program=asked.is_program)


async def make_queue_edit(asked: PageRequest) -> Any:
    return await queue_form(asked.view, asked.names["name"])


async def make_nodes(asked: PageRequest) -> Any:
    return await nodes_page(asked.view, asked.query)


async def make_node(asked: PageRequest) -> Any:
    return await node_details(asked.view, asked.names["name"])


async def make_flows(asked: PageRequest) -> Any:
    return await flows_page(asked.view)


async def make_flow(asked: PageRequest) -> Any:
    return await flow_details(asked.view, asked.key)


async def make_topology(asked: PageRequest) -> Any:
    return await topology_page(asked.view)


async def make_decisions(asked: PageRequest) -> Any:
    return await decisions_page(asked.view, asked.query)


async def make_settings(asked: PageRequest) -> Any:
    return await settings_page(asked.view)


async def make_usage(asked: PageRequest) -> Any:
    return await usage_page(asked.view.caller.client, asked.query, asked.view.now)


async def make_usage_chart(asked: PageRequest) -> Any:
    return await usage_chart(asked.view.caller.client, asked.query, asked.view.now)


async def make_queue_chart(asked: PageRequest) -> Any:
    resource = asked.query.get("resource") or "cpu"
    return await queue_chart(asked.view.caller.client, asked.names["name"], resource, asked.view.now)


# -- the past --------------------------------------------------------------------------------------------------------
async def make_overview_then(asked: PageRequest, at: datetime) -> Any:
    return await overview_then(asked.view.caller.client, at)


async def make_jobs_then(asked: PageRequest, at: datetime) -> Any:
    return await jobs_then(asked.view.caller.client, asked.query, at)


async def make_job_then(asked: PageRequest, at: datetime) -> Any:
    return await job_then(asked.view.caller.client, asked.key, at, asked.view.now)


async def make_queues_then(asked: PageRequest, at: datetime) -> Any:
    return await queues_then(asked.view.caller.client, asked.query, at)


async def make_nodes_then(asked: PageRequest, at: datetime) -> Any:
    return await nodes_then(asked.view.caller.client, asked.query, at)


async def make_queue_then(asked: PageRequest, at: datetime) -> Any:
    return await queue_then(asked.view.caller.client, asked.names["name"], at)


async def make_queue_chart_then(asked: PageRequest, at: datetime) -> Any:
    resource = asked.query.get("resource") or "cpu"
    return await queue_chart(asked.view.caller.client, asked.names["name"], resource, at)


async def make_node_then(asked: PageRequest, at: datetime) -> Any:
    return await node_details_then(asked.view.caller.client, asked.names["name"], at)


async def make_flows_then(asked: PageRequest, at: datetime) -> Any:
    return await flows_then(asked.view, at)


async def make_flow_then(asked: PageRequest, at: datetime) -> Any:
    return await flow_then(asked.view, asked.key, at)


async def make_topology_then(asked: PageRequest, at: datetime) -> Any:
    return await topology_then(asked.view, at)


async def make_decisions_then(asked: PageRequest, at: datetime) -> Any:
    return await decisions_then(asked.view, asked.query, at)


async def make_usage_then(asked: PageRequest, at: datetime) -> Any:
    return await usage_page(asked.view.caller.client, asked.query, at)


async def make_usage_chart_then(asked: PageRequest, at: datetime) -> Any:
    return await usage_chart(asked.view.caller.client, asked.query, at)


async def make_settings_then(asked: PageRequest, at: datetime) -> Any:
    return await settings_then(asked.view, at)


async def make_submit(asked: PageRequest) -> Any:
    return SubmitPage(EXAMPLE)


async def make_jobs(asked: PageRequest) -> Any:
    return await jobs_page(asked.view, asked.query)


async def make_job(asked: PageRequest) -> Any:
    """One that is gone is shown as the history knows it."""
    try:
        return await job_page(asked.view, asked.key)
    except NotFound:
        return await job_then(asked.view.caller.client, asked.key, None, asked.view.now)


async def make_job_yaml(asked: PageRequest) -> Any:
    text = await yaml_of(asked.view.caller.client, resource_type(Job), asked.key)
    return Text(asked.key.name, asked.key.namespace, text)


async def make_job_why(asked: PageRequest) -> Any:
    await asked.view.get(Job, asked.key)
    answer, problem = await why(asked.view.caller.client, "vcjob", asked.key)
    return WhyPart(answer, problem, asked.key.name, asked.key.namespace)


async def make_job_events(asked: PageRequest) -> Any:
    job = await asked.view.get(Job, asked.key)
    pods = await asked.view.pods_of_job(asked.key)
    group = await asked.view.group_of(job)
    names = {job.name, *(pod.name for pod in pods), *([group.name] if group is not None else [])}
    events = await events_about(asked.view.caller.client, asked.key.namespace, names, f"{job.name}-")
    return EventsPart(events, asked.key.name, asked.key.namespace)


async def make_job_log(asked: PageRequest) -> Any:
    key, query, view = asked.key, asked.query, asked.view
    pods = await view.pods_of_job(key)
    names = [pod.name for pod in pods]
    pod = next((each for each in pods if each.name == query.get("pod")), pods[0] if pods else None)
    containers = [each.name for each in (*pod.spec.init_containers, *pod.spec.containers)] if pod is not None else []
    container = query.get("container") if query.get("container") in containers else (containers or [""])[-1]
    previous, lines = query.get("previous") == "true", list[str]()
    if pod is not None and pod.spec.node_name:
        wanted = int(query["lines"]) if query.get("lines", "").isdecimal() else DEFAULT_LOG_LINES
        lines = await log_lines(
            view.caller.client,
            pod.key,
            container or "",
            previous=previous,
            lines=min(wanted, MAX_LOG_LINES),
        )
    search = query.get("q", "")[:200]
    if search:
        lines = [line for line in lines if search.lower() in line.lower()]
    is_over = pod is None or pod.status.phase in FINISHED_POD_PHASES
    return LogPage(
        key.namespace,
        key.name,
        pod.name if pod is not None else "",
        container or "",
        containers,
        names,
        lines,
        search,
        previous,
        is_over,
    )
