"""The table at the end of a simulation: one column for each policy, the best figure of each row marked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

BEST: Final = " *"


@dataclass(slots=True, frozen=True)
class Row:
    title: str
    value: Callable[[Mapping[str, Any]], float]
    shown: Callable[[float], str]
    larger_is_better: bool = False


def seconds(value: float) -> str:
    return f"{value:,.1f} s"


ROWS: Final[tuple[Row, ...]] = (
    Row("finished", lambda of: of["finished"], lambda value: f"{value:,.0f}", larger_is_better=True),
    Row("bounded slowdown", lambda of: of["bounded_slowdown"]["mean"], lambda value: f"{value:,.2f}"),
    Row("wait, mean", lambda of: of["wait"]["mean"], seconds),
    Row("wait, p50", lambda of: of["wait"]["p50"], seconds),
    Row("wait, p95", lambda of: of["wait"]["p95"], seconds),
    Row("wait, p99", lambda of: of["wait"]["p99"], seconds),
    Row("makespan", lambda of: of["makespan"], seconds),
    Row("utilisation, cpu", lambda of: of["utilisation"]["cpu"], lambda value: f"{value:.1%}", larger_is_better=True),
    Row("fairness, Jain", lambda of: of["fairness"]["jain"], lambda value: f"{value:.3f}", larger_is_better=True),
    Row("longest wait", lambda of: of["starvation"]["longest_wait"], seconds),
    Row("fragmentation, cpu", lambda of: of["fragmentation"].get("cpu", 0.0), lambda value: f"{value:.1%}"),
    Row("evictions", lambda of: of["evictions"], lambda value: f"{value:,.0f}"),
    Row("lost pod seconds", lambda of: of["lost_pod_seconds"], lambda value: f"{value:,.0f}"),
)


def table(report: Mapping[str, Any]) -> str:
    """Differences are to the first policy."""
    policies: Mapping[str, Mapping[str, Any]] = report["policies"]
    lines = [
        ["", *(name + " " * len(BEST) for name in policies)],
        *(_cells(row, list(policies.values())) for row in ROWS),
    ]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    text = [
        "  ".join(
            [line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))]
        )
        for line in lines
    ]
    if len(policies) > 1:
        text.append(f"{BEST.strip()} best of its row; percentages are differences to {next(iter(policies))}")
    return "\n".join(line.rstrip() for line in text)


def rows(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The same rows for a page: title, and the text of each cell with whether it is the best."""
    cells = [_cells(row, list(report["policies"].values())) for row in ROWS]
    return [
        {
            "title": title,
            "cells": [{"text": cell.removesuffix(BEST).rstrip(), "best": cell.endswith(BEST)} for cell in of_row],
        }
        for title, *of_row in cells
    ]


def _cells(row: Row, policies: Sequence[Mapping[str, Any]]) -> list[str]:
    values = [row.value(of) for of in policies]
    best = max(values) if row.larger_is_better else min(values)
    differ = len(set(values)) > 1
    return [row.title, *(_cell(row, value, values[0], is_best=differ and value == best) for value in values)]


def _cell(row: Row, value: float, first: float, *, is_best: bool) -> str:
    difference = "" if value == first or not first else f" ({(value - first) / first:+.1%})"
    return f"{row.shown(value)}{difference}{BEST if is_best else ' ' * len(BEST)}"
