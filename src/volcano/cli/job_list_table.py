"""`vcctl job list` on a terminal: queue, phase, pods, age, start, and what each waiting job waits for."""

from __future__ import annotations

from datetime import datetime

from volcano.api.ages import human_duration
from volcano.api.meta import JSON
from volcano.cli.formats import local, parse_time

HEADERS = ["NAME", "QUEUE", "PHASE", "PODS", "AGE", "STARTED", "WAITS FOR"]
COLOURS = {
    "Completed": 32, "Running": 32, "Failed": 31, "Aborted": 31, "Terminated": 31, "Pending": 33, "Restarting": 33,
}  # fmt: skip
PHASE = HEADERS.index("PHASE")
MIN_REASON_CHARACTERS = 20


def terminal_table(jobs: list[JSON], now: datetime, *, width: int, everywhere: bool, colours: bool = True) -> str:
    """Rows no wider than the terminal: the reason is cut, nothing else."""
    headers = ["NAMESPACE", *HEADERS] if everywhere else HEADERS
    rows = [headers]
    for job in jobs:
        cells = job_cells(job, now)
        rows.append([job["metadata"].get("namespace", ""), *cells] if everywhere else cells)
    widths = [max(len(row[column]) for row in rows) + 2 for column in range(len(headers) - 1)]
    room = max(MIN_REASON_CHARACTERS, width - sum(widths))
    phase = headers.index("PHASE")
    lines = []
    for number, row in enumerate(rows):
        cells = [f"{cell:<{size}}" for cell, size in zip(row, widths)]
        if colours and number:
            cells[phase] = f"\033[{COLOURS.get(row[phase], 37)}m{cells[phase]}\033[0m"
        reason = row[-1] if len(row[-1]) <= room else f"{row[-1][: room - 1]}…"
        lines.append(("".join(cells) + reason).rstrip())
    return "\n".join(lines)


def job_cells(job: JSON, now: datetime) -> list[str]:
    status = job.get("status") or {}
    state = status.get("state") or {}
    phase = state.get("phase") or "Pending"
    wanted = sum(task.get("replicas", 0) for task in job["spec"].get("tasks") or ())
    ready = status.get("running", 0) + status.get("succeeded", 0)
    created = parse_time(job["metadata"].get("creationTimestamp"))
    return [
        job["metadata"]["name"],
        job["spec"].get("queue") or "default",
        phase,
        f"{ready}/{wanted}",
        human_duration(now - created) if created else "-",
        _started(status),
        str(state.get("message") or state.get("reason") or "") if phase == "Pending" else "",
    ]


def _started(status: JSON) -> str:
    """When it last began to run, in the local zone."""
    for condition in reversed(status.get("conditions") or ()):
        moment = parse_time(condition.get("lastTransitionTime"))
        if condition.get("status") == "Running" and moment is not None:
            return local(moment).strftime("%b %d %H:%M")
    return "-"
