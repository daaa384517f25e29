"""Where the parts of a chart go, as numbers; templates draw them as SVG, so that charts need no script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from volcano.dashboard.job_page import JobDetails
from volcano.dashboard.job_rows import STATE_OF_PHASE, WAITING

WIDTH: Final = 960
LABEL: Final = 150
ROW: Final = 18
AXIS: Final = 22
TICKS: Final = 5
MAX_GANTT_ROWS: Final = 30
TONES: Final = {"waiting": "wait", "running": "run", "suspended": "off", "completed": "ok", "failed": "bad"}
POD_TONES: Final = {"Running": "run", "Succeeded": "ok", "Failed": "bad", "Unknown": "off", "Ending": "off"}


class GanttBar(msgspec.Struct, frozen=True):
    x: float
    width: float
    tone: str
    title: str


class GanttRow(msgspec.Struct, frozen=True):
    label: str
    y: float
    bars: list[GanttBar]


class Tick(msgspec.Struct, frozen=True):
    x: float
    at: datetime
    text: str


class Gantt(msgspec.Struct, frozen=True):
    width: int
    height: int
    rows: list[GanttRow]
    ticks: list[Tick]
    more: int


class _Scale(msgspec.Struct, frozen=True):
    begin: datetime
    seconds: float

    def x(self, moment: datetime) -> float:
        share = (moment - self.begin).total_seconds() / self.seconds
        return round(LABEL + min(max(share, 0.0), 1.0) * (WIDTH - LABEL - 8), 1)


def job_gantt(model: JobDetails) -> Gantt | None:
    """The phases of a job, and its pods from creation over start to end."""
    if not model.phases:
        return None
    begin = min([model.phases[0].began, *(pod.created for pod in model.bars if pod.created)])
    last = model.phases[-1]
    is_over = STATE_OF_PHASE.get(last.phase, WAITING) not in ("waiting", "running")
    ends = [pod.ended for pod in model.bars if pod.ended]
    end = max([last.began, *ends]) + timedelta(seconds=1) if is_over else model.at
    scale = _Scale(begin, max((end - begin).total_seconds(), 1.0))
    rows = [
        GanttRow("Job", AXIS, [_phase_bar(scale, span.phase, span.began, span.ended or end) for span in model.phases])
    ]
    for pod in model.bars[:MAX_GANTT_ROWS]:
        bars = []
        if pod.created is not None:
            until = pod.started or pod.ended or end
            bars.append(_bar(scale, pod.created, until, "wait", f"{pod.name}: waits"))
        if pod.started is not None:
            tone = POD_TONES.get(pod.state, "wait")
            bars.append(_bar(scale, pod.started, pod.ended or end, tone, f"{pod.name}: {pod.state} on {pod.node}"))
        rows.append(GanttRow(pod.name, AXIS + ROW * len(rows), bars))
    return Gantt(WIDTH, AXIS + ROW * len(rows) + 4, rows, _ticks(scale), max(0, len(model.bars) - MAX_GANTT_ROWS))


def _phase_bar(scale: _Scale, phase: str, began: datetime, ended: datetime) -> GanttBar:
    state = STATE_OF_PHASE.get(phase, WAITING)
    return _bar(scale, began, ended, TONES[state], phase)


def _bar(scale: _Scale, began: datetime, ended: datetime, tone: str, title: str) -> GanttBar:
    left, right = scale.x(began), scale.x(ended)
    return GanttBar(left, round(max(right - left, 2.0), 1), tone, title)


def _ticks(scale: _Scale) -> list[Tick]:
    found = []
    for number in range(TICKS + 1):
        seconds = scale.seconds * number / TICKS
        moment = scale.begin + timedelta(seconds=seconds)
        found.append(Tick(scale.x(moment), moment, f"+{span_text(seconds)}"))
    return found


def span_text(seconds: float) -> str:
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f}".rstrip("0").rstrip(".") + f" {unit}"
    return f"{seconds:.0f} s"


# -- lines over time --------------------------------------------------------------------------------------------------
PLOT_HEIGHT: Final = 180
PLOT_LEFT: Final = 56
PLOT_BOTTOM: Final = 24
PLOT_TOP: Final = 8
MAX_POINTS: Final = 1_000
"""Of a line: more than a screen has columns would only make the page large."""


class PlotLine(msgspec.Struct, frozen=True):
    label: str
    path: str
    area: str
    colour: int
    last: float


class Plot(msgspec.Struct, frozen=True):
    width: int
    height: int
    lines: list[PlotLine]
    ticks: list[Tick]
    levels: list[tuple[float, str]]


def thinned(points: Sequence[tuple[datetime, float]]) -> Sequence[tuple[datetime, float]]:
    """At most MAX_POINTS: of each part of a longer line the least and the most, so that peaks stay."""
    if len(points) <= MAX_POINTS:
        return points
    width = -(-len(points) // (MAX_POINTS // 2 - 1))
    found = [points[0]]
    for begin in range(1, len(points) - 1, width):
        part = points[begin : min(begin + width, len(points) - 1)]
        low, high = min(part, key=lambda each: each[1]), max(part, key=lambda each: each[1])
        found += sorted({low, high})
    return [*found, points[-1]]


def plot(series: Mapping[str, Sequence[tuple[datetime, float]]], begin: datetime, end: datetime) -> Plot | None:
    """Values over time, each line with the area below it; None where there is nothing to draw."""
    values = [value for points in series.values() for _, value in points]
    if not values or end <= begin:
        return None
    top = max(*values, 0.0) or 1.0
    seconds, floor = (end - begin).total_seconds(), PLOT_HEIGHT - PLOT_BOTTOM

    def x(moment: datetime) -> float:
        share = min(max((moment - begin).total_seconds() / seconds, 0.0), 1.0)
        return round(PLOT_LEFT + share * (WIDTH - PLOT_LEFT - 12), 1)

    def y(value: float) -> float:
        return round(floor - value / top * (floor - PLOT_TOP), 1)

    lines = []
    for number, (label, given) in enumerate(series.items()):
        points = thinned(given)
        if not points:
            continue
        path = "".join(f"{'L' if at else 'M'}{x(moment)} {y(value)}" for at, (moment, value) in enumerate(points))
        area = f"{path}L{x(points[-1][0])} {floor}L{x(points[0][0])} {floor}Z"
        lines.append(PlotLine(label, path, area, number % 6, points[-1][1]))
    ticks = [
        Tick(x(moment), moment, "")
        for number in range(TICKS + 1)
        for moment in [begin + timedelta(seconds=seconds * number / TICKS)]
    ]
    levels = [(y(top * share), f"{top * share:.3g}") for share in (0.0, 0.5, 1.0)]
    return Plot(WIDTH, PLOT_HEIGHT, lines, ticks, levels)
