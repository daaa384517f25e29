"""The pages by address: which function makes what a page shows, which template draws it, which changes redraw it.

The same values are answered as JSON below /api/v1; dashboard.openapi describes them.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from volcano.dashboard import makers
from volcano.dashboard.actions import SubmitPage
from volcano.dashboard.decisions_page import DecisionsPage
from volcano.dashboard.flows_page import FlowDetails, FlowsPage
from volcano.dashboard.job_page import JobDetails
from volcano.dashboard.jobs_page import JobsPage
from volcano.dashboard.makers import EventsPart, LogPage, PageRequest, Text, WhyPart
from volcano.dashboard.nodes_page import NodeDetails, NodesPage
from volcano.dashboard.overview_page import ClusterOverview
from volcano.dashboard.queues_page import QueueDetails, QueueForm, QueuesPage
from volcano.dashboard.settings_page import SettingsPage
from volcano.dashboard.topology_page import TopologyPage
from volcano.dashboard.usage_page import QueueChart, UsageChart, UsagePage
from volcano.dashboard.watched import STARTS

NAME: Final = r"[a-z0-9A-Z][-a-zA-Z0-9.:_]{0,252}"
Maker = Callable[[PageRequest], Awaitable[Any]]
PastMaker = Callable[[PageRequest, datetime], Awaitable[Any]]


class WebPage(msgspec.Struct, frozen=True):
    """`section` is the entry of the menu; `topics` are the changes that redraw an open page.

    `shows` is the type of what `make` and `then` make; `query` has the parameters that they read, each in a sentence.
    """

    path: str
    template: str
    section: str
    title: str
    shows: type[msgspec.Struct]
    make: Maker
    topics: tuple[str, ...] = ()
    then: PastMaker | None = None  # makes the same values for a past moment
    query: Mapping[str, str] = {}
    has_json: bool = True
    is_of_objects: bool = False  # made of watched objects alone: the same for everybody with the same rights

    @property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(re.sub(r"\{(\w+)\}", rf"(?P<\1>{NAME})", self.path) + "/?")


JOB: Final = "/jobs/{namespace}/{name}"
PERIOD: Final = {
    "period": "1d, 7d, 30d or 90d, before now or before `at`; 7d by default.",
    "since": "Begin, as a time such as 2026-01-31T12:00:00Z; instead of a period.",
    "until": "End, as a time.",
    "by": "queue, user, namespace and day, separated by commas; queue by default.",
    "namespace": "Only of this namespace.",
    "queue": "Only of this queue.",
    "user": "Only of this user.",
    "zone": "The time zone in which days begin, such as Europe/Berlin; UTC by default.",
}
OF_JOBS: Final = {
    "q": "A part of the name, of the reason or of the user.",
    "state": "waiting, running, suspended, completed or failed; or a phase.",
    "namespace": "Only of this namespace.",
    "queue": "Only of this queue.",
    "user": "Only of this user.",
    "cause": "Only with this cause of waiting or failing.",
    "label": "KEY or KEY=VALUE.",
    "sort": "created, name, namespace, queue, user, state, pods, waited, ran or cpu; -created: newest first.",
    "group": "queue, user, state, namespace, cause or label:KEY: counts by that.",
    "page": "From 1 on.",
    "size": "Rows of a page: at most 100.",
}
OF_NODES: Final = {
    "q": "A part of the name.",
    "resource": "Which resource the map shows.",
    "state": "Ready, NotReady or closed.",
    "shape": "A pod to find room for, such as cpu=4,memory=8Gi.",
    "page": "From 1 on.",
}
OF_LOG: Final = {
    "pod": "Which pod of the job; the first by default.",
    "container": "Which container; the last by default.",
    "previous": "true: of the run before the last restart.",
    "lines": "How many of the last lines; 500 by default.",
    "q": "Only lines that have this part.",
}
PAGES: Final[tuple[WebPage, ...]] = (
    WebPage(
        "/", "overview.html", "overview", "Overview", ClusterOverview, makers.make_overview,
        ("jobs", "pods", "nodes"), makers.make_overview_then, is_of_objects=True,
    ),
    WebPage(
        "/jobs", "jobs.html", "jobs", "Jobs", JobsPage, makers.make_jobs, ("jobs",), makers.make_jobs_then, OF_JOBS,
        is_of_objects=True,
    ),
    WebPage(
        JOB, "job.html", "jobs", "{name}", JobDetails, makers.make_job, ("jobs", "pods"), makers.make_job_then
    ),
    WebPage(f"{JOB}/why", "why.html", "jobs", "Why {name} waits", WhyPart, makers.make_job_why, ("jobs",)),
    WebPage(f"{JOB}/events", "events.html", "jobs", "Events of {name}", EventsPart, makers.make_job_events),
    WebPage(f"{JOB}/yaml", "yaml.html", "jobs", "{name} as YAML", Text, makers.make_job_yaml),
    WebPage(f"{JOB}/log", "log.html", "jobs", "Log of {name}", LogPage, makers.make_job_log, query=OF_LOG),
    WebPage(
        "/queues", "queues.html", "queues", "Queues", QueuesPage, makers.make_queues,
        ("queues", "nodes", "reservations"), makers.make_queues_then,
        {"q": "A part of the name.", "page": "From 1 on."},
        is_of_objects=True,
    ),
    WebPage(
        "/queues/{name}", "queue.html", "queues", "Queue {name}", QueueDetails, makers.make_queue,
        ("queues", "jobs", "reservations", STARTS), makers.make_queue_then,
    ),
    WebPage("/queues/{name}/edit", "queue_edit.html", "queues", "Edit queue {name}", QueueForm, makers.make_queue_edit),
    WebPage(
        "/queues/{name}/chart", "queue_chart.html", "queues", "Share of {name}", QueueChart, makers.make_queue_chart,
        then=makers.make_queue_chart_then, query={"resource": "cpu by default."},
    ),
    WebPage(
        "/nodes", "nodes.html", "nodes", "Nodes", NodesPage, makers.make_nodes,
        ("nodes", "pods"), makers.make_nodes_then, OF_NODES, is_of_objects=True,
    ),
    WebPage(
        "/nodes/{name}", "node.html", "nodes", "Node {name}", NodeDetails, makers.make_node,
        ("nodes", "pods"), makers.make_node_then,
    ),
    WebPage(
        "/flows", "flows.html", "flows", "Flows", FlowsPage, makers.make_flows, ("flows",), makers.make_flows_then
    ),
    WebPage(
        "/flows/{namespace}/{name}", "flow.html", "flows", "Flow {name}", FlowDetails, makers.make_flow,
        ("flows", "jobs"), makers.make_flow_then,
    ),
    WebPage(
        "/topology", "topology.html", "topology", "Topology", TopologyPage, makers.make_topology,
        ("topology", "nodes", "pods"), makers.make_topology_then, is_of_objects=True,
    ),
    WebPage(
        "/decisions", "decisions.html", "decisions", "Decisions", DecisionsPage, makers.make_decisions,
        ("jobs", "pods"), makers.make_decisions_then,
        {"q": "Only cycles that name this job or pod.", "cycle": "The number of the cycle to open."},
    ),
    WebPage(
        "/usage", "usage.html", "usage", "Usage", UsagePage, makers.make_usage,
        then=makers.make_usage_then, query=PERIOD,
    ),
    WebPage(
        "/usage/chart", "usage_chart.html", "usage", "Usage", UsageChart, makers.make_usage_chart,
        then=makers.make_usage_chart_then, query=PERIOD,
    ),
    WebPage(
        "/settings", "settings.html", "settings", "Settings", SettingsPage, makers.make_settings,
        then=makers.make_settings_then,
    ),
    WebPage(
        "/submit", "submit.html", "jobs", "Submit a job", SubmitPage, makers.make_submit, has_json=False
    ),
)  # fmt: skip
