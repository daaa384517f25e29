"""One screen of `vcctl top`: summary, tabs, the table or an object, and the keys, as lines of text."""

from __future__ import annotations

from collections import Counter
from typing import Final

from volcano.api.pods.amounts import added
from volcano.cli.formats import local
from volcano.cli.human_units import human
from volcano.cli.node import node_state
from volcano.cli.top.browser import Browser
from volcano.cli.top.cluster_picture import ClusterPicture
from volcano.cli.top.details import detail_lines
from volcano.cli.top.drawing import BOLD, DIM, REVERSED, Line, Span, Style, bar, cut, plain, table_lines, text_of
from volcano.cli.top.sheets import JOBS, KINDS, NODES, QUEUES, RED, ZERO, load_colour

LINES_AROUND: Final = 5
"""Summary, tabs, an empty line and the heading above the rows; the keys below them."""
SUMMARY_BAR: Final = 10
TABLE_KEYS: Final = "q quit  1-3 or ←→ tabs  ↑↓ select  Enter open  s sort  r reverse"
DETAIL_KEYS: Final = "q quit  1-3 or ←→ tabs  ↑↓ scroll  Esc back"
ASCII_ARROWS: Final = str.maketrans({"←": "<", "→": ">", "↑": "^", "↓": "v"})
MIN_LINES: Final = 2


def page_of(height: int) -> int:
    """How many rows a screen of this height shows."""
    return max(height - LINES_AROUND, 1)


def screen_lines(
    browser: Browser, picture: ClusterPicture, size: tuple[int, int], style: Style = Style(), error: str = ""
) -> list[str]:
    """Exactly as many lines as the terminal has, each no wider than it."""
    width, height = size
    page = page_of(height)
    head = [_summary(picture, style), _tabs(browser, picture), []]
    selected = -1
    if browser.detail is not None:
        body = detail_lines(browser.kind, browser.detail, picture, width, style)
        browser.detail_line = max(0, min(browser.detail_line, len(body) - page))
        body = body[browser.detail_line : browser.detail_line + page + 1]
    else:
        table, rows = browser.table(picture)
        first = browser.scroll(rows, page)
        body = table_lines(table.columns, rows, width, style, browser.sort_column(table))
        body = [body[0], *body[1 + first : 1 + first + page]]
        selected = len(head) + 1 + browser.place(rows) - first if rows else -1
        if not rows:
            body.append([Span(f"No {browser.kind}", DIM)])
    lines = [*head, *body][: max(height - 1, 0)]
    lines += [[] for _ in range(height - 1 - len(lines))]
    lines.append(_foot(browser, error, style))
    return [
        text_of(cut(line, width), style, is_selected=number == selected, width=width)
        for number, line in enumerate(lines[-height:])
    ]


def _summary(picture: ClusterPicture, style: Style) -> Line:
    ready = sum(node_state(node) == "Ready" for node in picture.nodes)
    phases = Counter(((job.get("status") or {}).get("state") or {}).get("phase") or "Pending" for job in picture.jobs)
    line = [Span(f"{local(picture.at):%H:%M:%S}  ", DIM), Span(f"nodes {ready}/{len(picture.nodes)} ready  ")]
    used = added(*picture.used.values())
    for resource in ("cpu", "memory"):
        taken, whole = used.get(resource, ZERO), picture.total.get(resource, ZERO)
        share = taken.nanos / whole.nanos if whole.nanos else 0.0
        line += [Span(f"{resource} "), *bar(share, SUMMARY_BAR, load_colour(share), style)]
        line.append(Span(f" {human(resource, taken)}/{human(resource, whole)}  "))
    counted = ", ".join(f"{phases[phase]} {phase.lower()}" for phase in ("Running", "Pending") if phases[phase])
    line.append(Span(f"jobs {counted or 'none running'}"))
    return line


def _tabs(browser: Browser, picture: ClusterPicture) -> Line:
    counts = {JOBS: len(picture.jobs), QUEUES: len(picture.queues), NODES: len(picture.nodes)}
    line: Line = []
    for number, kind in enumerate(KINDS, start=1):
        text = f" {number} {kind.capitalize()} ({counts[kind]}) "
        line += [Span(text, f"{BOLD};{REVERSED}" if kind == browser.kind else ""), Span(" ")]
    return line


def _foot(browser: Browser, error: str, style: Style) -> Line:
    if error:
        return [Span(plain(error), RED)]
    text = TABLE_KEYS if browser.detail is None else DETAIL_KEYS
    return [Span(text if style.has_blocks else text.translate(ASCII_ARROWS), DIM)]
