"""The one client: typed reads, JSON writes, watches; over whichever transport it is given.

Requests are values made here without I/O; errors come back as volcano.api.errors. Retrying belongs to the callers
that know what may be repeated (machinery.apply, machinery.informer).
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final, Generic, TypeVar

import msgspec

from volcano.api.decode import Unreadable, decode
from volcano.api.errors import ApiError, error_from
from volcano.api.meta import JSON, Key, Resource
from volcano.api.resource_types import ResourceType
from volcano.machinery.transport import Request, Response, Transport

R = TypeVar("R", bound=Resource)

JSON_TYPE: Final = "application/json"
PATCH_TYPES: Final = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
MAX_WATCH_LINE_BYTES: Final = 8 * 1024 * 1024
PAGE_OBJECTS: Final = 500


class Page(msgspec.Struct, Generic[R]):
    """What a LIST answered: objects, the revision they are of, and where the next page begins."""

    items: list[R]
    resource_version: str = ""
    next: str = ""
    set_aside: list[Unreadable] = []  # why objects could not be read


class WatchEvent(msgspec.Struct):
    """One line of a watch: ADDED, MODIFIED, DELETED, BOOKMARK, with the object as it was sent."""

    type: str
    object: msgspec.Raw


class _ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _List(msgspec.Struct):
    metadata: _ListMeta = _ListMeta()
    items: list[msgspec.Raw] | None = None


_LIST: Final = msgspec.json.Decoder(_List)
_EVENT: Final = msgspec.json.Decoder(WatchEvent)
_ENCODER: Final = msgspec.json.Encoder()


class Client:
    """Speaks the Kubernetes API."""

    def __init__(self, transport: Transport, *, agent: str = "volcano") -> None:
        self._transport = transport
        self._headers: Mapping[str, str] = {"accept": "application/json", "user-agent": agent}
        self._headers_with_body = {
            media: {**self._headers, "content-type": media} for media in (JSON_TYPE, *PATCH_TYPES.values())
        }

    async def close(self) -> None:
        await self._transport.close()

    # -- reading ----------------------------------------------------------------------------------------------
    async def get(self, reader: type[R], key: Key) -> R:
        body = await self._send("GET", row_of(reader).path(key.namespace, key.name))
        return decode(reader, body)

    async def get_json(self, resource: ResourceType, key: Key, subresource: str = "") -> JSON:
        return _object(await self._send("GET", resource.path(key.namespace, key.name, subresource)))

    async def list(
        self,
        reader: type[R],
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        limit: int = 0,
        next_page: str = "",
        resource: ResourceType | None = None,
    ) -> Page[R]:
        """One page; everything when `limit` is 0. `resource` is for readers that read many kinds."""
        query = _query(labelSelector=labels, fieldSelector=fields, limit=str(limit or ""), **{"continue": next_page})
        body = await self._send("GET", (resource or row_of(reader)).path(namespace), query=query)
        found = _LIST.decode(body)
        page: Page[R] = Page([], found.metadata.resource_version, found.metadata.continue_)
        for raw in found.items or ():
            try:
                page.items.append(decode(reader, raw))
            except Unreadable as error:
                page.set_aside.append(error)
        return page

    async def list_json(self, resource: ResourceType, namespace: str = "", **parameters: str) -> JSON:
        return _object(await self._send("GET", resource.path(namespace), query=_query(**parameters)))

    @contextlib.asynccontextmanager
    async def watch(
        self, resource: ResourceType, namespace: str = "", **parameters: str
    ) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        """A stream of events. Parameters are the query's: resourceVersion, fieldSelector, timeoutSeconds, …"""
        query = _query(watch="true", allowWatchBookmarks="true", **parameters)
        async with self.stream(Request("GET", resource.path(namespace), query)) as chunks:
            yield _events(chunks)

    # -- writing ----------------------------------------------------------------------------------------------
    async def create(self, resource: ResourceType, body: JSON, **parameters: str) -> bytes:
        """The stored object, encoded: callers that only want success need not decode it."""
        namespace = body.get("metadata", {}).get("namespace", "") or ("default" if resource.namespaced else "")
        body = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
        return await self._send("POST", resource.path(namespace), body=body, query=_query(**parameters))

    async def create_sub(self, resource: ResourceType, key: Key, subresource: str, body: JSON) -> bytes:
        return await self._send("POST", resource.path(key.namespace, key.name, subresource), body=body)

    async def update(self, resource: ResourceType, body: JSON, subresource: str = "", **parameters: str) -> bytes:
        metadata = body["metadata"]
        path = resource.path(metadata.get("namespace", ""), metadata["name"], subresource)
        return await self._send("PUT", path, body=body, query=_query(**parameters))

    async def patch(
        self,
        resource: ResourceType,
        key: Key,
        body: Any,
        *,
        kind: str = "merge",
        subresource: str = "",
        **parameters: str,
    ) -> bytes:
        path = resource.path(key.namespace, key.name, subresource)
        return await self._send("PATCH", path, body=body, query=_query(**parameters), content_type=PATCH_TYPES[kind])

    async def delete(self, resource: ResourceType, key: Key, options: JSON | None = None) -> bytes:
        body = {"kind": "DeleteOptions", "apiVersion": "v1", **options} if options else None
        return await self._send("DELETE", resource.path(key.namespace, key.name), body=body)

    # -- anything ---------------------------------------------------------------------------------------------
    async def raw(self, request: Request) -> Response:
        """The whole answer to any request; an error answer is raised."""
        return await self._answer(msgspec.structs.replace(request, headers={**self._headers, **request.headers}))

    async def _answer(self, request: Request) -> Response:
        response = await self._transport.send(request)
        if response.status >= 400:
            raise await _error(response)
        return response

    @contextlib.asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        """The answer's body as it comes."""
        response = await self.raw(request)
        chunks = response.stream if response.stream is not None else _once(response.body)
        try:
            yield chunks
        finally:
            close = getattr(chunks, "aclose", None)
            if close is not None:
                await close()

    async def _send(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        query: tuple[tuple[str, str], ...] = (),
        content_type: str = JSON_TYPE,
    ) -> bytes:
        headers = self._headers if body is None else self._headers_with_body[content_type]
        encoded = b"" if body is None else _ENCODER.encode(body)
        response = await self._answer(Request(method, path, query, headers, encoded))
        return response.body


def _query(**parameters: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in parameters.items() if value)


def _object(body: bytes) -> JSON:
    found: JSON = msgspec.json.decode(body)
    return found


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body


async def _error(response: Response) -> ApiError:
    body = response.body
    if response.stream is not None:
        body = b"".join([chunk async for chunk in response.stream])
    try:
        status = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        status = None
    text = body[:500].decode(errors="replace")
    error = error_from(response.status, status if isinstance(status, dict) else None, text)
    wait = response.headers.get("retry-after", "")
    if wait.isdecimal():
        error.details.setdefault("retryAfterSeconds", int(wait))
    return error


async def _events(chunks: AsyncIterator[bytes]) -> AsyncIterator[WatchEvent]:
    """Lines from chunks; an ERROR line is raised."""
    pending = b""
    async for chunk in chunks:
        *lines, pending = (pending + chunk).split(b"\n")
        if len(pending) > MAX_WATCH_LINE_BYTES:
            raise ConnectionError(f"a watch event over {MAX_WATCH_LINE_BYTES} bytes")
        for line in lines:
            if line:
                yield _event(line)


def _event(line: bytes) -> WatchEvent:
    event = _EVENT.decode(line)
    if event.type == "ERROR":
        status = _object(bytes(event.object))
        raise error_from(int(status.get("code", 500)), status)
    return event


def row_of(reader: type[Resource]) -> ResourceType:
    """Imports all structs that read resources, which commands that pass objects on do without."""
    from volcano.api.scheme import resource_type

    return resource_type(reader)
