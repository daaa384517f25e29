"""List, then watch, for ever: keeps a Mirror in step with the API server.

Dropped streams, restarts of the server and 410 Gone neither lose nor double a change: a new list is compared with the
Mirror, and only the differences become changes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Final, Generic, TypeVar

import msgspec

from volcano.api.decode import Unreadable, decode_shared
from volcano.api.errors import ApiError, Gone
from volcano.api.meta import Key, Resource
from volcano.api.scheme import ResourceType, resource_type
from volcano.machinery.client import PAGE_OBJECTS, Client, WatchEvent
from volcano.machinery.clock import Clock
from volcano.machinery.world import Mirror, is_newer

log = logging.getLogger(__name__)
R = TypeVar("R", bound=Resource)

WATCH_SECONDS: Final = 290  # the server ends a watch after this long, and we resume where it ended
SHORT_WATCH_SECONDS: Final = 1.0
"""A watch that the server ends sooner, without any event, is opened again with back-off like one that broke."""
FIRST_BACKOFF: Final = timedelta(milliseconds=50)
MAX_BACKOFF: Final = timedelta(seconds=15)


class Informer(Generic[R]):
    """One kind, in one namespace or in all, into a Mirror."""

    def __init__(
        self,
        client: Client,
        mirror: Mirror,
        clock: Clock,
        reader: type[R],
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        on_error: Callable[[str, Exception], None] | None = None,
        resource: ResourceType | None = None,
        finish: Callable[[R], R] | None = None,
    ) -> None:
        """`resource` and `finish` are for a reader of many kinds: which one to follow, and how to adapt its objects."""
        self._client, self._mirror, self._clock = client, mirror, clock
        self._reader, self._resource = reader, resource or resource_type(reader)
        self._finish = finish or (lambda found: found)
        self._follows_all_of_reader = resource is None
        self._present: set[Key] = set()
        self._namespace, self._labels, self._fields = namespace, labels, fields
        self._on_error = on_error or (lambda message, _error: log.warning("%s", message))
        self._synced = asyncio.Event()
        self._last_seen = ""

    async def synced(self) -> None:
        """Returns once the first list is in the Mirror."""
        await self._synced.wait()

    async def run(self) -> None:
        """Until cancelled."""
        revision, backoff = "", FIRST_BACKOFF
        while True:
            try:
                if not revision:
                    revision = await self._list()
                    self._synced.set()
                    backoff = FIRST_BACKOFF
                began, seen = self._clock.monotonic(), revision
                revision = await self._watch(revision)
                if revision != seen or self._clock.monotonic() - began >= SHORT_WATCH_SECONDS:
                    backoff = FIRST_BACKOFF
                    continue
            except Gone:
                revision = ""
            except (ApiError, ConnectionError, TimeoutError, OSError, msgspec.DecodeError, RecursionError) as error:
                # A watch that broke resumes at the last revision seen; only Gone needs a new list.
                self._on_error(f"following {self._resource.qualified}: {type(error).__name__}: {error}", error)
                revision = self._last_seen or revision
                if isinstance(error, ApiError) and error.status_code < 500 and error.status_code != 429:
                    revision = ""
            await self._clock.sleep(backoff)
            backoff = min(backoff * 2, MAX_BACKOFF)

    async def _list(self) -> str:
        present: set[Key] = set()
        revision, next_page = "", ""
        while True:
            page = await self._client.list(
                self._reader,
                self._namespace,
                labels=self._labels,
                fields=self._fields,
                limit=PAGE_OBJECTS,
                next_page=next_page,
                resource=self._resource,
            )
            revision = revision or page.resource_version
            for unreadable in page.set_aside:
                self._on_error(f"a {self._resource.kind} is set aside: {unreadable}", unreadable)
            for item in page.items:
                resource = self._finish(item)
                present.add(resource.key)
                self._mirror.put(resource)
                await self._clock.give_way()
            next_page = page.next
            if not next_page:
                break
        for key in self._known_before():
            if key not in present and not self._came_after(revision, key):
                self._mirror.remove(self._reader, key)
        self._present = present
        self._last_seen = revision
        return revision

    def _came_after(self, revision: str, key: Key) -> bool:
        """Whether the answer to a write put the object into the Mirror after the list was made."""
        known = self._mirror.get(self._reader, key)
        return known is not None and revision.isdecimal() and is_newer(known, than=revision)

    def _known_before(self) -> list[Key]:
        """The keys this informer keeps: those in its namespace, or those it has put into the Mirror itself."""
        if not self._follows_all_of_reader:
            return list(self._present)
        return [key for key in self._mirror.keys(self._reader) if self._namespace in ("", key.namespace)]

    async def _watch(self, revision: str) -> str:
        self._last_seen = revision
        parameters = {
            "resourceVersion": revision,
            "labelSelector": self._labels,
            "fieldSelector": self._fields,
            "timeoutSeconds": str(WATCH_SECONDS),
        }
        give_way = self._clock.give_way
        async with self._client.watch(self._resource, self._namespace, **parameters) as events:
            async for event in events:
                self._take(event)
                await give_way()
        return self._last_seen

    def _take(self, event: WatchEvent) -> None:
        try:
            resource = self._finish(decode_shared(self._reader, event.object))
        except Unreadable as error:
            self._on_error(f"a {self._resource.kind} is set aside: {error}", error)
            return
        self._last_seen = resource.metadata.resource_version or self._last_seen
        match event.type:
            case "ADDED" | "MODIFIED":
                if not self._follows_all_of_reader:
                    self._present.add(resource.key)
                self._mirror.put(resource)
            case "DELETED":
                self._present.discard(resource.key)
                known = self._mirror.get(self._reader, resource.key)
                if known is not None and known.uid == resource.uid:
                    self._mirror.remove(self._reader, resource.key, resource)
