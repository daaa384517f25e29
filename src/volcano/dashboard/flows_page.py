"""JobFlows: the list, and the graph of one with the state of each step."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import msgspec

from volcano.api.batch import Job
from volcano.api.flow import JobFlow
from volcano.api.meta import Key
from volcano.cli.flow_view import layered
from volcano.dashboard.view import CallerView

MAX_FLOWS: Final = 500
MAX_STEPS: Final = 400
STEP_WIDTH, STEP_HEIGHT, GAP_X, GAP_Y = 170, 44, 56, 16


class FlowRow(msgspec.Struct, frozen=True, rename="camel"):
    namespace: str
    name: str
    phase: str
    created: datetime | None
    steps: int
    done: int
    running: int
    failed: int


class FlowsPage(msgspec.Struct, frozen=True, rename="camel"):
    at: datetime
    flows: list[FlowRow]
    total: int


class DrawnStep(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    job: str
    phase: str
    x: int
    y: int
    needs: list[str]


class FlowEdge(msgspec.Struct, frozen=True, rename="camel"):
    path: str


class FlowDetails(msgspec.Struct, frozen=True, rename="camel"):
    at: datetime
    flow: FlowRow
    steps: list[DrawnStep]
    edges: list[FlowEdge]
    width: int
    height: int


async def flows_page(view: CallerView) -> FlowsPage:
    flows = await view.all(JobFlow)
    rows = sorted((flow_row(flow) for flow in flows), key=lambda row: (row.created is None, row.created), reverse=True)
    return FlowsPage(view.now, rows[:MAX_FLOWS], len(rows))


def flow_row(flow: JobFlow) -> FlowRow:
    status = flow.status
    return FlowRow(
        flow.namespace,
        flow.name,
        status.state.phase or "Pending",
        flow.metadata.creation_timestamp,
        len(flow.spec.flows),
        len(status.completed_jobs),
        len(status.running_jobs),
        len(status.failed_jobs) + len(status.terminated_jobs),
    )


async def flow_details(view: CallerView, key: Key) -> FlowDetails:
    flow = await view.get(JobFlow, key)
    sight = await view.sight(Job)
    found = {}
    for step in flow.spec.flows[:MAX_STEPS] if sight.sees(flow.namespace) else ():
        job = view.watched.get(Job, Key(flow.namespace, f"{flow.name}-{step.name}"))
        if job is not None:
            found[job.name] = job.status.state.phase or "Pending"
    return drawn(flow, found, flow_row(flow), view.now)


def drawn(flow: JobFlow, phases: Mapping[str, str], row: FlowRow, at: datetime) -> FlowDetails:
    """Steps stand in columns, each right of all that it needs; `phases` are of the jobs that there are, by name."""
    graph = {
        step.name: list(step.depends_on.targets) if step.depends_on else [] for step in flow.spec.flows[:MAX_STEPS]
    }
    layers = layered(graph)
    rows: dict[int, int] = {}
    steps: dict[str, DrawnStep] = {}
    for name in graph:
        layer = layers.get(name, 0)
        place = rows.get(layer, 0)
        rows[layer] = place + 1
        job = f"{flow.name}-{name}"
        x, y = layer * (STEP_WIDTH + GAP_X) + 2, place * (STEP_HEIGHT + GAP_Y) + 2
        steps[name] = DrawnStep(name, job if job in phases else "", phases.get(job, ""), x, y, graph[name])
    edges = []
    for step in steps.values():
        for need in step.needs:
            if need in steps:
                x1, y1 = steps[need].x + STEP_WIDTH, steps[need].y + STEP_HEIGHT // 2
                x2, y2 = step.x, step.y + STEP_HEIGHT // 2
                middle = (x1 + x2) // 2
                edges.append(FlowEdge(f"M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}"))
    width = (max(layers.values(), default=0) + 1) * (STEP_WIDTH + GAP_X)
    height = max(rows.values(), default=1) * (STEP_HEIGHT + GAP_Y) + 4
    return FlowDetails(at, row, list(steps.values()), edges, width, height)
