"""`vcctl top`: keys and redrawing on a terminal, a thread that reads the cluster; plain tables elsewhere."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable
from typing import Final

from volcano.api.durations import parse_duration
from volcano.api.nearest_words import did_you_mean
from volcano.cli.command_line import Called, say
from volcano.cli.connection import ApiConnection, connect
from volcano.cli.failures import Failed
from volcano.cli.top.browser import Browser
from volcano.cli.top.cluster_picture import ClusterPicture, read_picture
from volcano.cli.top.drawing import Style, plain
from volcano.cli.top.screen import page_of, screen_lines
from volcano.cli.top.sheets import JOBS, KINDS, NODES, QUEUES, TITLES, Sheet, ordered, sheet
from volcano.machinery.clock import Stopwatch, wait_blocking

MIN_INTERVAL_SECONDS: Final = 0.5
BUSY_SHARE: Final = 5
"""After a reading, at least this many times its duration passes, so that a large cluster is not asked all the time."""
OVERVIEW_ROWS: Final = 15
NO_TERMINALS: Final = ("", "dumb")


def top(called: Called) -> None:
    kind = _kind(called.arguments)
    interval = max(MIN_INTERVAL_SECONDS, parse_duration(called.values["interval"]).total_seconds())
    connection = connect(called)
    sort = _sort(called.values["sort"], kind)
    if called.values["once"] or not _is_interactive():
        _once(read_picture(connection), kind, sort)
        return
    browser = Browser(kind or JOBS)
    if sort:
        browser.sort[browser.kind] = sort
    _interact(PictureReader(connection, interval), browser)


def _kind(arguments: tuple[str, ...]) -> str:
    """`nodes`, also as `node`; empty for all."""
    if not arguments:
        return ""
    kind = arguments[0] if arguments[0] in KINDS else f"{arguments[0]}s"
    if kind not in KINDS:
        raise Failed(f"unknown table {arguments[0]!r}, one of {', '.join(KINDS)}{did_you_mean(arguments[0], KINDS)}")
    return kind


def _sort(given: str, kind: str) -> str:
    """The title of the column, of the first table when none is named."""
    if not given:
        return ""
    titles = TITLES[kind or JOBS]
    wanted = given.upper().replace("-", " ")
    if wanted not in titles:
        known = [title.lower().replace(" ", "-") for title in titles]
        raise Failed(f"unknown column {given!r}, one of {', '.join(known)}{did_you_mean(given, known)}")
    return wanted


def _is_interactive() -> bool:
    return sys.stdout.isatty() and sys.stdin.isatty() and os.environ.get("TERM", "") not in NO_TERMINALS


# -- once ---------------------------------------------------------------------------------------------------------
def _once(picture: ClusterPicture, kind: str, sort: str) -> None:
    if kind:
        say(plain_table(sheet(kind, picture), sort))
        return
    parts = []
    for each in (QUEUES, JOBS, NODES):
        table = sheet(each, picture)
        title = f"{each.capitalize()} ({len(table.rows)})"
        parts.append(f"{title}\n{plain_table(table, sort if each == JOBS else '', OVERVIEW_ROWS)}")
    say("\n\n".join(parts))


def plain_table(table: Sheet, sort: str = "", most: int = 0) -> str:
    """Columns wide enough for their texts, without bars and colours, for programs and pipes."""
    column = sort if any(each.title == sort for each in table.columns) else table.first_sort
    rows = ordered(table, column)
    shown = rows[:most] if most else rows
    cells = [[each.title for each in table.columns], *([plain(cell.text) for cell in row.cells] for row in shown)]
    widths = [max(len(cell) for cell in column) + 2 for column in zip(*cells)]
    lines = ["".join(f"{cell:<{width}}" for cell, width in zip(row, widths)).rstrip() for row in cells]
    if len(rows) > len(shown):
        lines.append(f"… {len(rows) - len(shown)} more: vcctl top {table.kind}")
    return "\n".join(lines)


# -- on a terminal ------------------------------------------------------------------------------------------------
def _interact(reader: PictureReader, browser: Browser) -> None:
    from volcano.cli.top.terminal_session import TerminalSession

    picture = reader.read()  # before the screen is taken: a system that is not there is said in the usual way
    style = terminal_style()
    with contextlib.suppress(KeyboardInterrupt, EOFError), TerminalSession() as terminal:
        reader.start(terminal.wake)
        while not browser.is_over:
            picture = reader.newest or picture
            size = terminal.size()
            terminal.draw(screen_lines(browser, picture, size, style, reader.error))
            for key in terminal.wait():
                browser.pressed(key, picture, page_of(size[1]))
            reader.look_at(browser.looked_at())


def terminal_style() -> Style:
    """Colours unless NO_COLOR asks for none; blocks and arrows where the encoding has them."""
    return Style(
        has_colours=not os.environ.get("NO_COLOR"),
        has_blocks=(sys.stdout.encoding or "").lower().replace("-", "") == "utf8",
    )


class PictureReader:
    """Reads the cluster again and again in a thread, so that keys answer while a server is slow."""

    def __init__(self, connection: ApiConnection, interval: float) -> None:
        self._connection, self._interval = connection, interval
        self._looked_at: tuple[str, str] | None = None
        self._hurry = threading.Event()
        self.newest: ClusterPicture | None = None
        self.error = ""

    def read(self) -> ClusterPicture:
        return read_picture(self._connection, self._looked_at)

    def start(self, wake: Callable[[], None]) -> None:
        """Never joined: a request that hangs must not keep the program."""
        threading.Thread(target=self._run, args=(wake,), daemon=True).start()

    def look_at(self, job: tuple[str, str] | None) -> None:
        """Events of this job are wanted, at once when it is another."""
        if job != self._looked_at:
            self._looked_at = job
            self._hurry.set()

    def _run(self, wake: Callable[[], None]) -> None:
        while True:
            watch = Stopwatch()
            try:
                self.newest, self.error = self.read(), ""
            except Failed as failure:
                self.error = str(failure).splitlines()[0]
            wake()
            wait_blocking(MIN_INTERVAL_SECONDS)
            self._hurry.wait(max(self._interval, BUSY_SHARE * watch.seconds()))
            self._hurry.clear()
