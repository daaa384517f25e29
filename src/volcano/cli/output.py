"""`-o json|yaml|wide|name` and `--watch`: what any list can be shown as, beyond Volcano's own table."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from volcano.api.errors import ApiError, error_from
from volcano.api.meta import JSON
from volcano.api.resource_types import ResourceType
from volcano.cli.command_line import Called, say
from volcano.cli.connection import ApiConnection
from volcano.cli.failures import Failed
from volcano.cli.formats import NONE_FOUND
from volcano.machinery.transport import Request

FORMS = ("", "json", "yaml", "name", "wide", "volcano")
"""`volcano`: its own table, which is also what programs get that read the output."""
Rows = Callable[[list[JSON]], str]


def form_of(called: Called) -> str:
    form = str(called.values.get("output") or "")
    if form not in FORMS:
        raise Failed(f"unable to match a printer for the output format {form!r}, allowed: json, name, wide, yaml")
    return form


def show(called: Called, resource: ResourceType, items: list[JSON], table: Rows, wide: Rows) -> None:
    """A list in the wanted form; the plain table unless something else was asked for."""
    form = form_of(called)
    if form in ("json", "yaml"):
        say(as_text(_list_object(resource, items), form).rstrip("\n"))
    elif form == "name":
        for item in items:
            say(qualified_name(resource, item))
    elif items:
        say((wide if form == "wide" else table)(items))
    elif not called.values.get("watch"):
        say(NONE_FOUND)


def follow(
    called: Called,
    connection: ApiConnection,
    resource: ResourceType,
    namespace: str,
    since: str,
    changed: Callable[[JSON], None],
) -> None:
    """Print every later change until the user interrupts."""
    if not called.values.get("watch"):
        return
    query = (("watch", "true"), ("allowWatchBookmarks", "false"), ("resourceVersion", since))
    with contextlib.suppress(KeyboardInterrupt):
        for event in _events(connection, Request("GET", resource.path(namespace), query)):
            if event.get("type") in ("ADDED", "MODIFIED", "DELETED"):
                changed(event["object"])


def _events(connection: ApiConnection, request: Request) -> Iterator[JSON]:
    response = connection.do(connection.client.raw(request))
    pending = b""
    stream: Any = response.stream
    while (chunk := connection.do(_next(stream))) is not None:
        *lines, pending = (pending + chunk).split(b"\n")
        for line in filter(None, lines):
            event = msgspec.json.decode(line)
            if event.get("type") == "ERROR":
                raise Failed(_status(event["object"]).message)
            yield event


async def _next(stream: Any) -> bytes | None:
    found: bytes | None = await anext(stream, None)
    return found


def _status(body: JSON) -> ApiError:
    return error_from(int(body.get("code", 500)), body)


def _list_object(resource: ResourceType, items: list[JSON]) -> JSON:
    return {"apiVersion": "v1", "kind": "List", "metadata": {}, "items": [cleaned(resource, item) for item in items]}


def cleaned(resource: ResourceType, item: JSON) -> JSON:
    """Without managedFields, with apiVersion and kind."""
    metadata = {name: value for name, value in item["metadata"].items() if name != "managedFields"}
    return {**item, "apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}


def as_text(value: JSON, form: str) -> str:
    if form == "json":
        return msgspec.json.format(msgspec.json.encode(value, order="sorted"), indent=2).decode() + "\n"
    import yaml  # takes longer than a plain list

    return str(yaml.safe_dump(value, sort_keys=True, default_flow_style=False, allow_unicode=True, width=2**16))


def qualified_name(resource: ResourceType, item: JSON) -> str:
    kind = f"{resource.kind.lower()}.{resource.group}" if resource.group else resource.kind.lower()
    return f"{kind}/{item['metadata']['name']}"
