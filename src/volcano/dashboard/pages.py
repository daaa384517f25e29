"""The pages by address: which function makes what a page shows, which template draws it, which changes redraw it.

The same values are answered as JSON below /api/v1.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, Final

import msgspec

from volcano.api.batch import Job
from volcano.api.core import FINISHED_POD_PHASES
from volcano.api.errors import NotFound
from volcano.api.meta import Key
from volcano.api.scheme import resource_type
from volcano.dashboard.actions import EXAMPLE, SubmitPage
from volcano.dashboard.decisions_page import decisions_page
from volcano.dashboard.flows_page import flow_details, flows_page
from volcano.dashboard.job_page import job_page
from volcano.dashboard.jobs_page import jobs_page
from volcano.dashboard.nodes_page import node_details, nodes_page
from volcano.dashboard.object_reads import MAX_LOG_LINES, events_about, log_lines, why, yaml_of
from volcano.dashboard.overview_page import overview
from volcano.dashboard.past_pages import job_then, jobs_then, nodes_then, overview_then, queues_then
from volcano.dashboard.queues_page import queue_details, queue_form, queues_page
from volcano.dashboard.settings_page import settings_page
from volcano.dashboard.topology_page import topology_page
from volcano.dashboard.usage_page import queue_chart, usage_chart, usage_page
from volcano.dashboard.view import CallerView
from volcano.dashboard.web import WebRequest

DEFAULT_LOG_LINES: Final = 500
NAME: Final = r"[a-z0-9A-Z][-a-zA-Z0-9.:_]{0,252}"


class PageRequest(msgspec.Struct, frozen=True):
    """Who asks for what: the view of the caller, the names in the path, and the query."""

    view: CallerView
    names: dict[str, str]
    web: WebRequest

    @property
    def query(self) -> dict[str, str]:
        return self.web.query

    @property
    def key(self) -> Key:
        return Key(self.names.get("namespace", ""), self.names["name"])


Maker = Callable[[PageRequest], Awaitable[Any]]
PastMaker = Callable[[PageRequest, datetime], Awaitable[Any]]


class WebPage(msgspec.Struct, frozen=True):
    """`section` is the entry of the menu; `topics` are the changes that redraw an open page."""

    path: str
    template: str
    section: str
    title: str
    make: Maker
    topics: tuple[str, ...] = ()
    then: PastMaker | None = None  # makes the same values for a past moment
    has_json: bool = True

    @property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(re.sub(r"\{(\w+)\}", rf"(?P<\1>{NAME})", self.path) + "/?")


class Text(msgspec.Struct, frozen=True):
    """An object as text."""

    name: str
    namespace: str
    text: str


class WhyPart(msgspec.Struct, frozen=True):
    answer: Any
    problem: str
    name: str
    namespace: str


class EventsPart(msgspec.Struct, frozen=True):
    events: list[Any]
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


async def _overview(asked: PageRequest) -> Any:
    return await overview(asked.view)


async def _queues(asked: PageRequest) -> Any:
    return await queues_page(asked.view)


async def _queue(asked: PageRequest) -> Any:
    return await queue_details(asked.view, asked.names["name"])


async def _queue_edit(asked: PageRequest) -> Any:
    return await queue_form(asked.view, asked.names["name"])


async def _nodes(asked: PageRequest) -> Any:
    return await nodes_page(asked.view, asked.query)


async def _node(asked: PageRequest) -> Any:
    return await node_details(asked.view, asked.names["name"])


async def _flows(asked: PageRequest) -> Any:
    return await flows_page(asked.view)


async def _flow(asked: PageRequest) -> Any:
    return await flow_details(asked.view, asked.key)


async def _topology(asked: PageRequest) -> Any:
    return await topology_page(asked.view)


async def _decisions(asked: PageRequest) -> Any:
    return await decisions_page(asked.view, asked.query)


async def _settings(asked: PageRequest) -> Any:
    return await settings_page(asked.view)


async def _usage(asked: PageRequest) -> Any:
    return await usage_page(asked.view.caller.client, asked.query, asked.view.now)


async def _usage_chart(asked: PageRequest) -> Any:
    return await usage_chart(asked.view.caller.client, asked.query, asked.view.now)


async def _queue_chart(asked: PageRequest) -> Any:
    resource = asked.query.get("resource") or "cpu"
    return await queue_chart(asked.view.caller.client, asked.names["name"], resource, asked.view.now)


# -- the past --------------------------------------------------------------------------------------------------------
async def _overview_then(asked: PageRequest, at: datetime) -> Any:
    return await overview_then(asked.view.caller.client, at)


async def _jobs_then(asked: PageRequest, at: datetime) -> Any:
    return await jobs_then(asked.view.caller.client, asked.query, at)


async def _job_then(asked: PageRequest, at: datetime) -> Any:
    return await job_then(asked.view.caller.client, asked.key, at, asked.view.now)


async def _queues_then(asked: PageRequest, at: datetime) -> Any:
    return await queues_then(asked.view.caller.client, at)


async def _nodes_then(asked: PageRequest, at: datetime) -> Any:
    return await nodes_then(asked.view.caller.client, asked.query, at)


async def _submit(asked: PageRequest) -> Any:
    return SubmitPage(EXAMPLE)


async def _jobs(asked: PageRequest) -> Any:
    return await jobs_page(asked.view, asked.query)


async def _job(asked: PageRequest) -> Any:
    """One that is gone is shown as the history knows it."""
    try:
        return await job_page(asked.view, asked.key)
    except NotFound:
        return await job_then(asked.view.caller.client, asked.key, None, asked.view.now)


async def _job_yaml(asked: PageRequest) -> Any:
    text = await yaml_of(asked.view.caller.client, resource_type(Job), asked.key)
    return Text(asked.key.name, asked.key.namespace, text)


async def _job_why(asked: PageRequest) -> Any:
    await asked.view.get(Job, asked.key)
    answer, problem = await why(asked.view.caller.client, "vcjob", asked.key)
    return WhyPart(answer, problem, asked.key.name, asked.key.namespace)


async def _job_events(asked: PageRequest) -> Any:
    job = await asked.view.get(Job, asked.key)
    pods = await asked.view.pods_of_job(asked.key)
    group = await asked.view.group_of(job)
    names = {job.name, *(pod.name for pod in pods), *([group.name] if group is not None else [])}
    events = await events_about(asked.view.caller.client, asked.key.namespace, names, f"{job.name}-")
    return EventsPart(events, asked.key.name, asked.key.namespace)


async def _job_log(asked: PageRequest) -> Any:
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


JOB: Final = "/jobs/{namespace}/{name}"
PAGES: Final[tuple[WebPage, ...]] = (
    WebPage("/", "overview.html", "overview", "Overview", _overview, ("jobs", "pods", "nodes"), _overview_then),
    WebPage("/jobs", "jobs.html", "jobs", "Jobs", _jobs, ("jobs",), _jobs_then),
    WebPage(JOB, "job.html", "jobs", "{name}", _job, ("jobs", "pods"), _job_then),
    WebPage(f"{JOB}/why", "why.html", "jobs", "Why {name} waits", _job_why, ("jobs",)),
    WebPage(f"{JOB}/events", "events.html", "jobs", "Events of {name}", _job_events),
    WebPage(f"{JOB}/yaml", "yaml.html", "jobs", "{name} as YAML", _job_yaml),
    WebPage(f"{JOB}/log", "log.html", "jobs", "Log of {name}", _job_log),
    WebPage("/queues", "queues.html", "queues", "Queues", _queues, ("queues", "nodes"), _queues_then),
    WebPage("/queues/{name}", "queue.html", "queues", "Queue {name}", _queue, ("queues", "jobs")),
    WebPage("/queues/{name}/edit", "queue_edit.html", "queues", "Edit queue {name}", _queue_edit),
    WebPage("/nodes", "nodes.html", "nodes", "Nodes", _nodes, ("nodes", "pods"), _nodes_then),
    WebPage("/nodes/{name}", "node.html", "nodes", "Node {name}", _node, ("nodes", "pods")),
    WebPage("/flows", "flows.html", "flows", "Flows", _flows, ("flows",)),
    WebPage("/flows/{namespace}/{name}", "flow.html", "flows", "Flow {name}", _flow, ("flows", "jobs")),
    WebPage("/topology", "topology.html", "topology", "Topology", _topology, ("topology", "nodes", "pods")),
    WebPage("/decisions", "decisions.html", "decisions", "Decisions", _decisions, ("jobs", "pods")),
    WebPage("/queues/{name}/chart", "queue_chart.html", "queues", "Share of {name}", _queue_chart),
    WebPage("/usage", "usage.html", "usage", "Usage", _usage),
    WebPage("/usage/chart", "usage_chart.html", "usage", "Usage", _usage_chart),
    WebPage("/settings", "settings.html", "settings", "Settings", _settings),
    WebPage("/submit", "submit.html", "jobs", "Submit a job", _submit, has_json=False),
)
