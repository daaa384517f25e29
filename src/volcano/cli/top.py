"""`vcctl top`: queues, jobs and nodes, live on a terminal, once elsewhere."""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from typing import Any

from volcano.api.core import FINISHED_POD_PHASES
from volcano.api.meta import JSON
from volcano.api.pods.amounts import Amounts, added, amounts_of
from volcano.api.pods.requests import pod_requests, read_resources
from volcano.api.quantity import NANO, Quantity
from volcano.cli.command_line import Called, say
from volcano.cli.connection import ApiConnection, connect
from volcano.cli.resources import JOBS, NODES, POD_GROUPS, PODS, QUEUES

REFRESH_SECONDS = 2.0
MAX_NODES, MAX_JOBS = 12, 15
ZERO, ONE = Quantity(0), Quantity(NANO)


class Picture:
    """The state of things at one moment."""

    def __init__(self, connection: ApiConnection) -> None:
        self.queues = connection.list(QUEUES)
        self.groups = connection.list(POD_GROUPS)
        self.jobs = connection.list(JOBS)
        self.nodes = connection.list(NODES)
        self.used = requested_by_node(connection.list(PODS))


def top(called: Called) -> None:
    connection = connect(called)
    if not sys.stdout.isatty():
        say("\n\n".join(_plain(title, rows) for title, rows in tables(Picture(connection))))
        return
    from rich.console import Group
    from rich.live import Live

    from volcano.machinery.clock import wait_blocking

    with contextlib.suppress(KeyboardInterrupt), Live(screen=True, auto_refresh=False) as live:
        while True:
            live.update(Group(*(_rich(title, rows) for title, rows in tables(Picture(connection)))), refresh=True)
            wait_blocking(REFRESH_SECONDS)


def tables(picture: Picture) -> list[tuple[str, list[list[str]]]]:
    """Titles and rows; the first row is the header."""
    return [
        (f"Queues ({len(picture.queues)})", _queues(picture)),
        (f"Jobs ({len(picture.jobs)})", _jobs(picture)),
        (f"Nodes ({len(picture.nodes)})", _nodes(picture)),
    ]


def _queues(picture: Picture) -> list[list[str]]:
    rows = [["NAME", "STATE", "WEIGHT", "INQUEUE", "PENDING", "RUNNING", "ALLOCATED"]]
    for queue in sorted(picture.queues, key=lambda each: each["metadata"]["name"]):
        name, spec, status = queue["metadata"]["name"], queue.get("spec") or {}, queue.get("status") or {}
        mine = [g for g in picture.groups if (g.get("spec") or {}).get("queue") == name]
        phases = Counter((group.get("status") or {}).get("phase", "") for group in mine)
        allocated = ",".join(f"{k}={v}" for k, v in sorted((status.get("allocated") or {}).items())) or "-"
        counts = [str(phases[phase]) for phase in ("Inqueue", "Pending", "Running")]
        rows.append([name, status.get("state", ""), str(spec.get("weight", 1)), *counts, allocated])
    return rows


def _jobs(picture: Picture) -> list[list[str]]:
    rows = [["NAMESPACE", "NAME", "QUEUE", "PHASE", "PENDING", "RUNNING", "SUCCEEDED", "FAILED", "WAITS FOR"]]
    waiting_first = sorted(picture.jobs, key=lambda job: (_rank(job), job["metadata"]["name"]))
    for job in waiting_first[:MAX_JOBS]:
        status = job.get("status") or {}
        state = status.get("state") or {}
        counts = [str(status.get(name, 0)) for name in ("pending", "running", "succeeded", "failed")]
        metadata = job["metadata"]
        rows.append(
            [
                metadata.get("namespace", ""),
                metadata["name"],
                job["spec"].get("queue", ""),
                state.get("phase", ""),
                *counts,
            ]
            + [(state.get("message") or "")[:60] if state.get("phase") == "Pending" else ""]
        )
    if len(picture.jobs) > MAX_JOBS:
        rows.append([f"… {len(picture.jobs) - MAX_JOBS} more", *[""] * 8])
    return rows


def _rank(job: JSON) -> int:
    phase = ((job.get("status") or {}).get("state") or {}).get("phase", "")
    return {"": 1, "Pending": 1, "Running": 0, "Restarting": 0}.get(phase, 2)


def _nodes(picture: Picture) -> list[list[str]]:
    rows = [["NAME", "CPU", "MEMORY", "PODS", "OTHER"]]
    busiest = sorted(picture.nodes, key=lambda node: (-_share(node, picture, "cpu"), node["metadata"]["name"]))
    for node in busiest[:MAX_NODES]:
        used, have = picture.used.get(node["metadata"]["name"], {}), _allocatable(node)
        others = [
            f"{name}={used.get(name, ZERO)}/{amount}"
            for name, amount in sorted(have.items())
            if name not in ("cpu", "memory", "pods", "ephemeral-storage")
            and not name.startswith("hugepages-")
            and amount
        ]
        cells = [_cell(used.get(name, ZERO), have.get(name, ZERO)) for name in ("cpu", "memory", "pods")]
        rows.append([node["metadata"]["name"], *cells, " ".join(others)])
    if len(picture.nodes) > MAX_NODES:
        rows.append([f"… {len(picture.nodes) - MAX_NODES} more", "", "", "", ""])
    return rows


def requested_by_node(pods: list[JSON]) -> dict[str, Amounts]:
    """What unfinished pods request on each node."""
    requested: dict[str, Amounts] = {}
    for pod in pods:
        spec = pod.get("spec") or {}
        node = spec.get("nodeName")
        if node and (pod.get("status") or {}).get("phase") not in FINISHED_POD_PHASES:
            requested[node] = added(requested.get(node, {}), pod_requests(read_resources(spec)), {"pods": ONE})
    return requested


def _cell(used: Quantity, have: Quantity) -> str:
    share = round(100 * used.nanos / have.nanos) if have.nanos else 0
    return f"{used}/{have} ({share}%)"


def _share(node: JSON, picture: Picture, resource: str) -> float:
    have = _allocatable(node).get(resource, ZERO)
    used = picture.used.get(node["metadata"]["name"], {}).get(resource, ZERO)
    return used.nanos / have.nanos if have.nanos else 0.0


def _allocatable(node: JSON) -> Amounts:
    return amounts_of((node.get("status") or {}).get("allocatable"))


def _plain(title: str, rows: list[list[str]]) -> str:
    widths = [max(len(cell) for cell in column) + 2 for column in zip(*rows)]
    return "\n".join([title, *("".join(f"{c:<{w}}" for c, w in zip(row, widths)).rstrip() for row in rows)])


def _rich(title: str, rows: list[list[str]]) -> Any:
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, header_style="dim", padding=(0, 2, 0, 0))
    for header in rows[0]:
        table.add_column(header)
    for row in rows[1:]:
        table.add_row(*row)
    return table
