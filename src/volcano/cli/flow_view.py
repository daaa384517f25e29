"""`vcctl jobflow view NAME`: the graph of a flow with the state of each step; live on a terminal."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from volcano.api.ages import human_duration
from volcano.api.meta import JSON
from volcano.cli.command_line import Called, say
from volcano.cli.connection import connect
from volcano.cli.failures import Failed
from volcano.cli.formats import parse_time, utc_now
from volcano.cli.resources import JOB_FLOWS, JOBS

REFRESH_SECONDS = 1.0
MARKS = {
    "Completed": "✔", "Running": "▶", "Failed": "✘", "Terminated": "✘", "Aborted": "✘", "Pending": "…", "": "·",
}  # fmt: skip
SHADES = {"Completed": "green", "Running": "cyan", "Failed": "red", "Terminated": "red", "Aborted": "red"}
ENDED = ("Succeed", "Failed")


def view(called: Called) -> None:
    connection, values = connect(called), called.values
    name = values["name"]
    if not name:
        raise Failed("jobflow name is mandatory to view a particular jobflow")

    def look() -> tuple[JSON, dict[str, JSON]]:
        flow = connection.get(JOB_FLOWS, values["namespace"], name)
        label = f"volcano.sh/createdByJobFlow={values['namespace']}.{name}"
        jobs = connection.list(JOBS, values["namespace"], labelSelector=label)
        return flow, {job["metadata"]["name"]: job for job in jobs}

    flow, jobs = look()
    if not sys.stdout.isatty():
        say("\n".join(text for text, _ in lines(flow, jobs, utc_now())))
        return
    _live(look)


def _live(look: Any) -> None:
    from rich.live import Live
    from rich.text import Text

    from volcano.machinery.clock import wait_blocking

    with contextlib.suppress(KeyboardInterrupt), Live(auto_refresh=False) as live:
        while True:
            flow, jobs = look()
            drawn = Text("\n").join(Text(text, style=shade) for text, shade in lines(flow, jobs, utc_now()))
            live.update(drawn, refresh=True)
            if ((flow.get("status") or {}).get("state") or {}).get("phase") in ENDED:
                return
            wait_blocking(REFRESH_SECONDS)


def lines(flow: JSON, jobs: Mapping[str, JSON], now: datetime) -> list[tuple[str, str]]:
    """Text and shade, a line each: steps in layers, each below everything it waits for."""
    name = flow["metadata"]["name"]
    phase = ((flow.get("status") or {}).get("state") or {}).get("phase") or "Pending"
    steps = {step["name"]: step for step in (flow.get("spec") or {}).get("flows") or ()}
    layers = layered({step: _targets(body) for step, body in steps.items()})
    width = max((len(step) + 3 * depth for step, depth in layers.items()), default=0)
    drawn = [(f"{name}  {phase}", "bold")]
    for step, depth in layers.items():
        job = jobs.get(f"{name}-{step}")
        state = (((job or {}).get("status") or {}).get("state") or {}).get("phase") or ("Pending" if job else "")
        lead = "   " * (depth - 1) + "└─ " if depth else ""
        after = f"after {', '.join(_targets(steps[step]))}" if _targets(steps[step]) else ""
        text = f"  {MARKS.get(state, '…')} {lead + step:<{width}}  {state or 'waiting':<11} {_age(job, now):<8} {after}"
        drawn.append((text.rstrip(), SHADES.get(state, "yellow" if job else "dim")))
    return drawn


def layered(graph: Mapping[str, list[str]]) -> dict[str, int]:
    """Each step's depth, in an order in which every step comes after those it waits for; cycles end at depth 0."""
    depths: dict[str, int] = {}
    waiting = list(graph)
    while waiting:
        ready = [step for step in waiting if all(each in depths or each not in graph for each in graph[step])]
        for step in ready or waiting:
            depths[step] = max((depths[each] + 1 for each in graph[step] if each in depths), default=0)
        waiting = [step for step in waiting if step not in depths]
    return dict(sorted(depths.items(), key=lambda item: item[1]))


def _targets(step: JSON) -> list[str]:
    return list((step.get("dependsOn") or {}).get("targets") or ())


def _age(job: JSON | None, now: datetime) -> str:
    since = parse_time((job or {}).get("metadata", {}).get("creationTimestamp"))
    return human_duration(now - since) if since else ""
