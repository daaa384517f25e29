"""Pages from templates. Everything that templates insert is escaped; Jinja2 is imported with the first page."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

from volcano.api.ages import human_duration
from volcano.api.quantity import QuantityError, parse_quantity
from volcano.api.times import timestamp
from volcano.cli.human_units import human
from volcano.dashboard.charts import job_gantt

if TYPE_CHECKING:
    from jinja2 import Environment

PACKAGE: Final = "volcano.dashboard"


@cache
def environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    folder = resources.files(PACKAGE).joinpath("templates")
    made = Environment(
        loader=FileSystemLoader(str(folder)),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(
        stamp=timestamp, clock=clock_text, amount=amount_text, dur=duration_text, part=path_part, percent=percent
    )
    made.globals.update(address=address, merged=merged, timeline=job_gantt)
    return made


def render(template: str, values: Mapping[str, Any]) -> str:
    return environment().get_template(template).render(values)


def path_part(text: str) -> str:
    """A name as one part of a path."""
    return quote(str(text), safe="")


def address(path: str, query: Mapping[str, Any] | None = None, **changes: Any) -> str:
    """A path with its query; a change to None or "" removes a parameter."""
    merged = {**(query or {}), **changes}
    kept = {name: value for name, value in merged.items() if value not in (None, "")}
    return f"{path}?{urlencode(kept)}" if kept else path


def merged(query: Mapping[str, Any], name: str, value: str) -> dict[str, Any]:
    return {**query, name: value}


def clock_text(moment: datetime) -> str:
    """For readers without scripts; a script writes it in the reader's zone."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def duration_text(seconds: float | timedelta | None) -> str:
    if seconds is None:
        return "–"
    span = seconds if isinstance(seconds, timedelta) else timedelta(seconds=seconds)
    return human_duration(max(span, timedelta(0)))


def percent(share: float) -> str:
    return f"{round(100 * share)} %"


def amount_text(text: str | int | float, resource: str = "") -> str:
    """A quantity as it is written on the wire, for people."""
    try:
        return human(resource, parse_quantity(text))
    except QuantityError:
        return str(text)
