"""Deletes the objects of a CustomResourceDefinition that is being deleted, then its finalizer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import msgspec

from volcano.api.meta import JSON
from volcano.embedded.apiserver.kinds.definitions import CLEANUP_FINALIZER, DEFINITIONS
from volcano.embedded.apiserver.store.contract import DELETED, LoggedChange, Store
from volcano.embedded.apiserver.upkeep.bootstrap import ADMIN
from volcano.machinery.clock import Clock
from volcano.machinery.transport import Handler, Request

log = logging.getLogger(__name__)

RETRY_PAUSE: Final = timedelta(seconds=1)
_PATH: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class DefinitionCleaner:
    """One task per deleted definition; `close` cancels them, and `start` resumes what is left."""

    def __init__(self, store: Store, handle: Handler, clock: Clock) -> None:
        self._store = store
        self._handle = handle
        self._clock = clock
        self._tasks: dict[str, asyncio.Task[None]] = {}
        store.subscribe(self._follow)

    def start(self) -> None:
        """Resume deletions that a restart interrupted."""
        for stored in self._store.scan(DEFINITIONS):
            self._consider(stored.key.name, stored.raw)

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _follow(self, changes: Sequence[LoggedChange]) -> None:
        for change in changes:
            if change.stored.key.resource == DEFINITIONS and change.kind != DELETED:
                self._consider(change.stored.key.name, change.stored.raw)

    def _consider(self, name: str, raw: bytes) -> None:
        if name in self._tasks:
            return
        crd = msgspec.json.decode(raw)
        if crd["metadata"].get("deletionTimestamp") and CLEANUP_FINALIZER in (crd["metadata"].get("finalizers") or ()):
            task = asyncio.ensure_future(self._clean(crd))
            self._tasks[name] = task
            task.add_done_callback(lambda _: self._tasks.pop(name, None))

    async def _clean(self, crd: JSON) -> None:
        name, spec = crd["metadata"]["name"], crd["spec"]
        version = next((v["name"] for v in spec["versions"] if v.get("served")), "")
        root = f"/apis/{spec['group']}/{version}"
        while version and self._store.count(name):
            for stored in self._store.scan(name):
                where = f"/namespaces/{stored.key.namespace}" if stored.key.namespace else ""
                path = f"{root}{where}/{spec['names']['plural']}/{stored.key.name}"
                await self._handle(Request("DELETE", path, user=ADMIN))
            if self._store.count(name):
                await self._clock.sleep(RETRY_PAUSE)  # finalizers of other components hold some
        await self._release(name)

    async def _release(self, name: str) -> None:
        found = await self._handle(Request("GET", f"{_PATH}/{name}", user=ADMIN))
        if found.status != 200:
            return
        finalizers = [
            f for f in msgspec.json.decode(found.body)["metadata"].get("finalizers") or [] if f != CLEANUP_FINALIZER
        ]
        answer = await self._handle(
            Request(
                "PATCH",
                f"{_PATH}/{name}",
                headers={"content-type": "application/merge-patch+json", "user-agent": "volcano-apiserver"},
                body=msgspec.json.encode({"metadata": {"finalizers": finalizers or None}}),
                user=ADMIN,
            )
        )
        if answer.status != 200:
            log.error("the definition %s cannot be released: %s", name, answer.body[:500])
