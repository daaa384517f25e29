"""One kind, read completely: resumed at a stored revision where the server still has it, listed again where not.

Unlike machinery.informer, which keeps a mirror of the present, every change is passed on with its revision, so that
the reader can store how far it has come.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final, Generic, TypeVar

import msgspec

from volcano.api.decode import Unreadable, decode
from volcano.api.errors import ApiError, Gone, NotFound
from volcano.api.meta import Resource
from volcano.api.scheme import resource_type
from volcano.machinery.client import PAGE_OBJECTS, Client, WatchEvent
from volcano.machinery.clock import Clock
from volcano.machinery.informer import FIRST_BACKOFF, MAX_BACKOFF, WATCH_SECONDS

log = logging.getLogger(__name__)
R = TypeVar("R", bound=Resource)

ABSENT_KIND_PAUSE: Final = timedelta(minutes=1)
DELETED: Final = "DELETED"
BOOKMARK: Final = "BOOKMARK"


class Seen(msgspec.Struct, Generic[R]):
    """A change: the object as it is now, or as it last was. None: only the revision has advanced."""

    object: R | None
    revision: str
    is_deleted: bool = False


class Listed(msgspec.Struct, Generic[R]):
    """A page of a list. The last one has the list's revision, and `present`, the UIDs of the whole list."""

    items: list[R]
    revision: str = ""
    present: frozenset[str] | None = None


class KindWatch(Generic[R]):
    """Passes on everything that happens to one kind, in its order, until cancelled."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        reader: type[R],
        take: Callable[[Seen[R] | Listed[R]], Awaitable[None]],
        *,
        revision: str = "",
    ) -> None:
        self._client, self._clock, self._reader, self._take = client, clock, reader, take
        self._resource = resource_type(reader)
        self._revision = revision
        self.is_watching = False

    async def run(self) -> None:
        backoff = FIRST_BACKOFF
        if self._revision:
            await self._check_revision()
        while True:
            pause = backoff
            try:
                if not self._revision:
                    await self._list()
                await self._watch()
                backoff = FIRST_BACKOFF
                continue
            except Gone:
                self._revision = ""
            except NotFound:  # the kind is not installed, or not any more
                self._revision, pause = "", ABSENT_KIND_PAUSE
            except (ApiError, ConnectionError, TimeoutError, OSError, msgspec.DecodeError, RecursionError) as error:
                log.warning("history: following %s: %s: %s", self._resource.qualified, type(error).__name__, error)
                if isinstance(error, ApiError) and error.status_code < 500 and error.status_code != 429:
                    self._revision = ""
            await self._clock.sleep(pause)
            backoff = min(backoff * 2, MAX_BACKOFF)

    async def _check_revision(self) -> None:
        """A revision that the server has not reached is of another server, or of one that was set back."""
        try:
            page = await self._client.list(self._reader, limit=1)
        except (ApiError, ConnectionError, TimeoutError, OSError, msgspec.DecodeError, RecursionError):
            return
        newest, stored = page.resource_version, self._revision
        if newest.isdecimal() and stored.isdecimal() and int(stored) > int(newest):
            log.warning("history: %s is at an older revision than was recorded", self._resource.qualified)
            self._revision = ""

    async def _list(self) -> None:
        present: set[str] = set()
        revision, next_page = "", ""
        while True:
            page = await self._client.list(self._reader, limit=PAGE_OBJECTS, next_page=next_page)
            revision = revision or page.resource_version
            for unreadable in page.set_aside:
                log.warning("history: a %s is set aside: %s", self._resource.kind, unreadable)
            present.update(item.uid for item in page.items)
            next_page = page.next
            if not next_page:
                await self._take(Listed(page.items, revision, frozenset(present)))
                break
            await self._take(Listed(page.items))
        self._revision = revision

    async def _watch(self) -> None:
        parameters = {"resourceVersion": self._revision, "timeoutSeconds": str(WATCH_SECONDS)}
        try:
            async with self._client.watch(self._resource, **parameters) as events:
                self.is_watching = True
                async for event in events:
                    seen = self._read(event)
                    if seen is not None:
                        await self._take(seen)
                        self._revision = seen.revision
                    await self._clock.give_way()
        finally:
            self.is_watching = False

    def _read(self, event: WatchEvent) -> Seen[R] | None:
        try:
            found = decode(self._reader, event.object)
        except Unreadable as error:
            log.warning("history: a %s is set aside: %s", self._resource.kind, error)
            return None
        revision = found.metadata.resource_version or self._revision
        return Seen(None if event.type == BOOKMARK else found, revision, event.type == DELETED)
