"""What is read from the API server for one page view, with the caller's own client: YAML, events, logs, reasons."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from datetime import datetime
from typing import Final

import msgspec
import yaml

from volcano.api.core import Event, Pod
from volcano.api.errors import ApiError
from volcano.api.jobs.expected_starts import ExpectedStarts
from volcano.api.meta import JSON, Key
from volcano.api.scheme import ResourceType, resource_type
from volcano.api.times import timestamp_or_none
from volcano.api.why.answers import WhyAnswer
from volcano.cli.expected_starts import PATH as STARTS_PATH
from volcano.cli.expected_starts import SCHEDULER
from volcano.cli.explain import PATH as EXPLAIN_PATH
from volcano.cli.explain import recorded
from volcano.cli.explain_facts import gather
from volcano.cli.permitted_changes import with_permitted_changes
from volcano.machinery.client import Client
from volcano.machinery.transport import Request

PODS: Final = resource_type(Pod)
EVENTS: Final = resource_type(Event)
MAX_EVENTS: Final = 200
MAX_EVENTS_OF_NAMESPACE: Final = 500
MAX_LOG_LINES: Final = 2_000
MAX_LOG_BYTES: Final = 200_000
MAX_LINE_CHARACTERS: Final = 4_000


class EventLine(msgspec.Struct, frozen=True, rename="camel"):
    at: datetime | None
    type: str
    reason: str
    message: str
    about: str
    count: int


async def yaml_of(client: Client, row: ResourceType, key: Key) -> str:
    """The object as it is stored, without the bookkeeping of server-side apply."""
    body = await client.get_json(row, key)
    body.get("metadata", {}).pop("managedFields", None)
    return yaml.safe_dump(body, sort_keys=False, allow_unicode=True, width=120)


async def events_about(client: Client, namespace: str, names: Iterable[str], prefix: str = "") -> list[EventLine]:
    """Newest first: about objects of these names, or whose names begin with the prefix."""
    wanted = {*names}
    found = await client.list_json(EVENTS, namespace, limit=str(MAX_EVENTS_OF_NAMESPACE))
    items = [*(found.get("items") or ())]
    if (found.get("metadata") or {}).get("continue"):  # a full namespace: ask by name instead
        items = []
        for name in sorted(wanted)[:20]:
            answer = await client.list_json(EVENTS, namespace, fieldSelector=f"involvedObject.name={name}")
            items += answer.get("items") or ()
    lines = [_event_line(item) for item in items if _is_about(item, wanted, prefix)]
    lines.sort(key=lambda line: line.at.timestamp() if line.at else 0.0, reverse=True)
    return lines[:MAX_EVENTS]


def _is_about(event: JSON, names: set[str], prefix: str) -> bool:
    about = str((event.get("involvedObject") or {}).get("name") or "")
    return about in names or bool(prefix and about.startswith(prefix))


def _event_line(event: JSON) -> EventLine:
    about = event.get("involvedObject") or {}
    series = event.get("series") or {}
    moments = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    at = next((moment for text in moments if (moment := timestamp_or_none(text)) is not None), None)
    return EventLine(
        at or timestamp_or_none((event.get("metadata") or {}).get("creationTimestamp")),
        str(event.get("type") or "Normal"),
        str(event.get("reason") or ""),
        str(event.get("message") or event.get("note") or ""),
        f"{about.get('kind', '')}/{about.get('name', '')}",
        int(series.get("count") or event.get("count") or 1),
    )


async def log_lines(client: Client, key: Key, container: str, *, previous: bool = False, lines: int = 500) -> list[str]:
    """The last lines that a container printed."""
    query = [("tailLines", str(min(lines, MAX_LOG_LINES))), ("limitBytes", str(MAX_LOG_BYTES))]
    query += [("container", container)] if container else []
    query += [("previous", "true")] if previous else []
    answer = await client.raw(Request("GET", PODS.path(key.namespace, key.name, "log"), tuple(query)))
    return [line[:MAX_LINE_CHARACTERS] for line in answer.body.decode(errors="replace").splitlines()]


async def followed_log(client: Client, key: Key, container: str, lines: int) -> AsyncIterator[str]:
    """Lines as they come, until the container ends."""
    query = [("follow", "true"), ("tailLines", str(min(lines, MAX_LOG_LINES)))]
    query += [("container", container)] if container else []
    pending = b""
    request = Request("GET", PODS.path(key.namespace, key.name, "log"), tuple(query))
    async with client.stream(request) as chunks:
        async for chunk in chunks:
            *whole, pending = (pending + chunk).split(b"\n")
            if len(pending) > MAX_LOG_BYTES:
                whole, pending = [*whole, pending], b""
            for line in whole:
                yield line.decode(errors="replace")[:MAX_LINE_CHARACTERS]
    if pending:
        yield pending.decode(errors="replace")[:MAX_LINE_CHARACTERS]


async def why(client: Client, kind: str, key: Key) -> tuple[WhyAnswer | None, str]:
    """The scheduler's explanation, and what was in the way where it cannot be asked."""
    question = await gather(client, kind, key.namespace, key.name)
    headers = {"content-type": "application/json"}
    try:
        answer = await client.raw(Request("POST", EXPLAIN_PATH, headers=headers, body=msgspec.json.encode(question)))
        found = msgspec.json.decode(answer.body, type=WhyAnswer)
        return await with_permitted_changes(client, found, question.get("object")), ""
    except ApiError as error:
        return recorded(question), f"the scheduler cannot be asked: {error.message}"
    except (msgspec.MsgspecError, RecursionError) as error:
        return recorded(question), f"the scheduler's answer cannot be read: {error}"


async def starts(client: Client) -> ExpectedStarts | None:
    """When waiting jobs are expected to start; None where the caller may not ask the scheduler."""
    try:
        answer = await client.raw(Request("GET", STARTS_PATH))
        return msgspec.json.decode(answer.body, type=ExpectedStarts)
    except (ApiError, msgspec.MsgspecError, RecursionError):
        return None


async def of_scheduler(client: Client, path: str, query: tuple[tuple[str, str], ...] = ()) -> JSON:
    """One of the scheduler's own endpoints, through the API server's service proxy."""
    answer = await client.raw(Request("GET", f"{SCHEDULER}{path}", query))
    found: JSON = msgspec.json.decode(answer.body)
    return found
