"""Who used what: requested amounts times the time in which pods held nodes, by group and day; and how long jobs waited.

Whole days of the past come from sums that are kept (history.daily_sums), the rest from the records.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from volcano.api.history_records import UsageRow
from volcano.history.daily_sums import DayRange, add_kept, kept_days
from volcano.history.database import Database
from volcano.history.questions import QuestionRefused, UsageQuestion
from volcano.history.usage_sums import EPOCH_DAY, Found, SpanSums, UsageSpan, usage_row


def usage(database: Database, question: UsageQuestion, now: datetime) -> list[UsageRow]:
    has_days = "day" in question.by
    groups = [name for name in question.by if name != "day"]
    found: Found = {}
    with database.reading():
        is_first = True
        for span in _spans(question, now):
            for piece in _pieces(database, span, has_days=has_days):
                with_earlier_pods = is_first or has_days
                if isinstance(piece, DayRange):
                    add_kept(database, question, piece, found, with_earlier_pods=with_earlier_pods)
                else:
                    SpanSums(database, question, piece, found).add(with_earlier_pods=with_earlier_pods)
                is_first = False
    rows = [usage_row(key, groups, totals, has_days=has_days) for key, totals in found.items()]
    return sorted(rows, key=lambda row: (row.day, row.queue, row.user, row.namespace))


def _pieces(database: Database, span: UsageSpan, *, has_days: bool) -> Iterator[UsageSpan | DayRange]:
    """The span in the order of time, cut where days begin and end whose sums are kept."""
    begin = span.begin
    if not has_days or (span.only is None and not span.offset):  # days that are asked for begin at midnight of UTC
        for days in kept_days(database, span.begin, span.end):
            if begin < days.begin:
                yield span._replace(begin=begin, end=days.begin)
            yield days
            begin = days.end
    if begin < span.end:
        yield span._replace(begin=begin)


def _spans(question: UsageQuestion, now: datetime) -> Iterator[UsageSpan]:
    """A day on which clocks change is a span of its own: it is longer or shorter than others."""
    until = min(question.until, max(now, question.since))
    if "day" not in question.by:
        yield UsageSpan(question.since, until, only=0)
        return
    try:
        zone = ZoneInfo(question.zone)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise QuestionRefused(f"zone: {question.zone[:64]!r} is not a time zone such as Europe/Berlin") from error
    current: UsageSpan | None = None
    begin = question.since
    while begin < until:
        local = begin.astimezone(zone)
        midnight = datetime.combine(local.date() + timedelta(days=1), datetime.min.time(), zone).astimezone(UTC)
        end, offset = min(midnight, until), local.utcoffset() or timedelta(0)
        is_usual = (end - timedelta(milliseconds=1)).astimezone(zone).utcoffset() == offset
        if current is not None and is_usual and current.offset == offset:
            current = current._replace(end=end)
        else:
            if current is not None:
                yield current
            current = UsageSpan(begin, end, offset)
        if not is_usual:
            yield current._replace(only=local.date().toordinal() - EPOCH_DAY)
            current = None
        begin = end
    if current is not None:
        yield current
