"""What `volcano run` shows: a live view on a terminal, one line per event elsewhere.

Only the appearance is here; cli.live.job_follower calls it when something changes.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any, Protocol, TextIO

from volcano.api.batch import TASK_SPEC_KEY, Job
from volcano.api.core import FINISHED_POD_PHASES, Pod
from volcano.api.meta import Key
from volcano.cli.live.endings import ENDED_WITH_JOB, was_ended_with, was_stopped

SHADES = {
    "Completed": "green", "Running": "green", "Succeeded": "green", "Failed": "red", "Aborted": "red",
    "Terminated": "red", "Pending": "yellow", "Restarting": "yellow",
}  # fmt: skip
POD_PHASES = ("Pending", "Running", *FINISHED_POD_PHASES)
PREFIX_SHADES = ("cyan", "magenta", "blue", "yellow", "green", "bright_cyan", "bright_magenta", "bright_blue")
BAR_SHADES = (
    ("Succeeded", "green"), ("Running", "bright_green"), (ENDED_WITH_JOB, "dim green"), ("Failed", "red"),
    ("Pending", "yellow"),
)  # fmt: skip
PREFIX_NUMBERS = (36, 35, 34, 33, 32, 96, 95, 94)
"""The same colours, as terminals number them."""


class RunView(Protocol):
    """What a view of running jobs can be given."""

    def line(self, text: str) -> None: ...

    def log_line(self, pod: str, line: str) -> None: ...

    def job_changed(self, job: Job, pods: list[Pod]) -> None: ...

    def pod_changed(self, pod: Pod, job: Job | None) -> None: ...

    def close(self) -> None: ...


class AdvisedView(RunView, Protocol):
    """A view that also shows why a job will not go on by itself, and what to change."""

    def advise(self, job: Job, lines: list[str]) -> None:
        """The reason first; no lines when the job goes on by itself."""


class PlainView:
    """One line per event, nothing that moves."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._phases: dict[Key, tuple[str, str]] = {}
        self._pods: dict[Key, str] = {}
        self._advice: dict[Key, list[str]] = {}

    def line(self, text: str) -> None:
        print(text, file=self._out, flush=True)

    def log_line(self, pod: str, line: str) -> None:
        self.line(f"{pod} | {line}")

    def job_changed(self, job: Job, pods: list[Pod]) -> None:
        phase, why = job.status.state.phase or "Pending", waiting_for(job)
        before = self._phases.get(job.key)
        self._phases[job.key] = (phase, why)
        if before is None or before[0] != phase:
            self.line(f"job/{job.name} {phase}{f': {why}' if why else ''}")
        elif why and before[1] != why:
            self.line(f"job/{job.name} waits: {why}")

    def pod_changed(self, pod: Pod, job: Job | None) -> None:
        state = ENDED_WITH_JOB if was_ended_with(job, pod) else pod_state(pod)
        if self._pods.get(pod.key) != state:
            self._pods[pod.key] = state
            self.line(f"pod/{pod.name} {state}")

    def advise(self, job: Job, lines: list[str]) -> None:
        if lines and self._advice.get(job.key) != lines:
            self.line(f"job/{job.name} will not run without a change: {lines[0]}")
            for line in lines[1:]:
                self.line(f"  {line}")
        self._advice[job.key] = lines

    def close(self) -> None:
        return None


class LiveView:
    """A table that stays at the bottom of the terminal while logs scroll above it."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = Console(highlight=False)
        self._jobs: dict[Key, tuple[Job, list[Pod]]] = {}
        self._advice: dict[Key, list[str]] = {}
        self._live = Live(console=self._console, refresh_per_second=8, transient=False, get_renderable=self._render)
        self._live.start()

    def line(self, text: str) -> None:
        self._console.print(text, markup=False, style="dim")

    def log_line(self, pod: str, line: str) -> None:
        from rich.text import Text

        shade = PREFIX_SHADES[sum(pod.encode()) % len(PREFIX_SHADES)]
        self._console.print(Text.assemble((f"{pod} ", shade), ("│ ", "dim"), line))

    def job_changed(self, job: Job, pods: list[Pod]) -> None:
        self._jobs[job.key] = (job, pods)

    def pod_changed(self, pod: Pod, job: Job | None) -> None:
        return None

    def advise(self, job: Job, lines: list[str]) -> None:
        self._advice[job.key] = lines

    def close(self) -> None:
        self._live.refresh()
        self._live.stop()

    def _render(self) -> Any:
        from rich.console import Group

        return Group(*(part for job, pods in self._jobs.values() for part in self._parts(job, pods)))

    def _parts(self, job: Job, pods: list[Pod]) -> list[Any]:
        from rich.text import Text

        advice = self._advice.get(job.key) or []
        return [self._job_table(job, pods), *(Text(f"  {line}", style="yellow") for line in advice)]

    def _job_table(self, job: Job, pods: list[Pod]) -> Any:
        from rich.table import Table
        from rich.text import Text

        phase = job.status.state.phase or "Pending"
        title = Text.assemble((job.name, "bold"), "  ", (phase, SHADES.get(phase, "white")))
        if waiting_for(job):
            title.append(f"  {waiting_for(job)}", style="yellow")
        table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0), header_style="dim")
        for column in ("task", "pending", "running", "succeeded", "failed", ""):
            table.add_column(column, justify="left" if column in ("task", "") else "right")
        for task in job.spec.tasks:
            mine = [pod for pod in pods if pod.annotations.get(TASK_SPEC_KEY) == task.name]
            counts = Counter(ENDED_WITH_JOB if was_ended_with(job, pod) else pod.status.phase for pod in mine)
            shown = [str(counts[name]) if counts[name] else "·" for name in POD_PHASES]
            table.add_row(task.name, *shown, _bar(counts, task.replicas))
        return table


def prefix_colour(pod: str) -> int:
    """The colour of a pod's log lines, as a terminal's number."""
    return PREFIX_NUMBERS[sum(pod.encode()) % len(PREFIX_NUMBERS)]


def _bar(counts: Counter[str], replicas: int, width: int = 24) -> Any:
    from rich.text import Text

    bar, used = Text(), 0
    for phase, shade in BAR_SHADES:
        cells = round(width * counts[phase] / replicas) if replicas else 0
        cells = min(cells, width - used)
        bar.append(("█" if phase != "Pending" else "░") * cells, style=shade)
        used += cells
    return bar.append("·" * (width - used), style="dim")


def waiting_for(job: Job) -> str:
    """Why a job that has not started waits, as its status says."""
    state = job.status.state
    return (state.message or state.reason) if state.phase in ("", "Pending") else ""


def pod_state(pod: Pod) -> str:
    """`Running on node-1`, `Failed (exit code 3)`, `Pending: Unschedulable`."""
    phase = pod.status.phase or "Pending"
    ended = [s.state.terminated for s in pod.status.container_statuses if s.state.terminated is not None]
    codes = [str(each.exit_code) for each in ended if each.exit_code]
    if phase == "Failed" and pod.is_deleting and was_stopped(pod):
        return "stopped"
    if phase == "Failed":
        return f"Failed ({f'exit code {codes[0]}' if codes else pod.status.reason or 'no exit code'})"
    if phase == "Running":
        return f"Running on {pod.spec.node_name}"
    waits = [s.state.waiting.reason for s in pod.status.container_statuses if s.state.waiting is not None]
    if phase == "Pending" and any(waits) and waits[0] not in ("ContainerCreating", "PodInitializing"):
        return f"Pending: {waits[0]}"
    return phase


def make_view() -> AdvisedView:
    """Live on a terminal, plain elsewhere."""
    if sys.stdout.isatty():
        return LiveView()
    return PlainView()
