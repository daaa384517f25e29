"""The history as commands ask for it: with the caller's own rights, of the API server or of `volcano history`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

import msgspec

from volcano.api.durations import DurationError, parse_duration
from volcano.api.errors import ApiError, NotFound
from volcano.api.history_records import HISTORY_PATH, HISTORY_SERVICE, JobPage, JobRecord, JobStory, UsageRow
from volcano.api.times import micro_timestamp, parse_timestamp, zoned_timestamp
from volcano.cli.command_line import Called
from volcano.cli.connection import ApiConnection, connect
from volcano.cli.failures import Failed
from volcano.cli.formats import utc_now
from volcano.machinery.local_zone import local_zone
from volcano.machinery.transport import Request

T = TypeVar("T")

PAGE_JOBS: Final = 1000
WHOLE_SECONDS: Final = len("2026-01-31T12:00:00")
NO_HISTORY: Final = """\
there is no history at {server}
The embedded system has one unless it was started with --history=off.
On a cluster name the address of `volcano history`: --history-server URL, or export VOLCANO_HISTORY=URL"""
_DAYS_AGO: Final = re.compile(r"(\d{1,5})d")
_DATE: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d))?)?")


class PastConnection:
    """Asks the history."""

    def __init__(self, connection: ApiConnection) -> None:
        self._connection = connection

    def ask(self, page: str, kind: type[T], **parameters: str) -> T:
        request = Request("GET", f"{HISTORY_PATH}/{page}", tuple((k, v) for k, v in parameters.items() if v))
        try:
            response = self._connection.attempt(self._connection.client.raw(request))
            return msgspec.json.decode(response.body, type=kind)
        except ApiError as error:
            if isinstance(error, NotFound) and error.details.get("group") != HISTORY_SERVICE:
                raise Failed(NO_HISTORY.format(server=self._connection.endpoint.server)) from error
            raise Failed(error.message) from error
        except (msgspec.MsgspecError, RecursionError) as error:
            raise Failed(f"the history's answer cannot be read: {error}") from error

    def jobs(self, limit: int, **parameters: str) -> Iterator[JobRecord]:
        """All that are asked for, page by page."""
        offset = 0
        while offset < limit:
            count = min(PAGE_JOBS, limit - offset)
            page = self.page(offset, count, **parameters)
            yield from page.jobs
            offset += len(page.jobs)
            if not page.jobs or offset >= page.total:
                return

    def page(self, offset: int, limit: int, **parameters: str) -> JobPage:
        return self.ask("jobs", JobPage, offset=str(offset), limit=str(limit), **parameters)

    def story(self, uid: str) -> JobStory:
        return self.ask(f"jobs/{uid}", JobStory)

    def newest(self, namespace: str, name: str) -> JobStory | None:
        """The last job of a name."""
        found = list(self.jobs(1, namespace=namespace, name=name))
        return self.story(found[0].uid) if found else None

    def usage(self, **parameters: str) -> list[UsageRow]:
        return self.ask("usage", list[UsageRow], **parameters)


def past_connection(called: Called) -> PastConnection:
    """By the flags of a command."""
    return past_at(connect(called), str(called.values.get("history-server") or ""))


def past_at(connection: ApiConnection, address: str) -> PastConnection:
    """At an address of `volcano history`, otherwise VOLCANO_HISTORY, or the API server itself."""
    address = address or os.environ.get("VOLCANO_HISTORY") or ""
    if not address:
        return PastConnection(connection)
    endpoint = msgspec.structs.replace(connection.endpoint, server=address.rstrip("/"))
    return PastConnection(ApiConnection(endpoint, source="Its address is the history's.\n"))


def moment(text: str, now: datetime) -> str:
    """A time as users write it, as the history reads it; empty stays empty. Times without a zone are local."""
    if not text:
        return ""
    try:
        return micro_timestamp(_moment(text.strip(), now))
    except (ValueError, DurationError, OverflowError) as error:
        raise Failed(
            f"{text[:64]!r} is not a time: write 2026-01-31, 2026-01-31T12:00, today, or how long ago: 90m, 8h, 2d"
        ) from error


def _moment(text: str, now: datetime) -> datetime:
    if text == "now":
        return now
    if text == "today":
        return now.astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
    text = text.removeprefix("now-")
    if days := _DAYS_AGO.fullmatch(text):
        return now - timedelta(days=int(days[1]))
    if date := _DATE.fullmatch(text):
        return datetime(*(int(part) for part in date.groups(default="0"))).astimezone()  # type: ignore[arg-type]
    if text[:1].isdigit() and text[-1:] in "smh":
        return now - parse_duration(text)
    return parse_timestamp(text)


def clock_time(moment_: datetime | None) -> str:
    """On the clock of this machine, without its zone."""
    return zoned_timestamp(moment_, local_zone())[:WHOLE_SECONDS] if moment_ is not None else "-"


def elapsed(duration: timedelta) -> str:
    """`[days-]hours:minutes:seconds`, as sacct writes it."""
    minutes, seconds = divmod(int(duration.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"{f'{days}-' if days else ''}{hours:02}:{minutes:02}:{seconds:02}"


def table(rows: list[list[Any]]) -> str:
    """Columns two blanks apart."""
    texts = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(cell) for cell in column) + 2 for column in zip(*texts, strict=True)]
    lines = ("".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in texts)
    return "\n".join(lines)


def csv_text(rows: list[list[Any]]) -> str:
    import csv
    import io

    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue().rstrip("\n")


def present() -> datetime:
    return utc_now()
