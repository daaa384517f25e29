"""ApiServiceStatus: asks the servers of APIServices what they offer, and is the only writer of their condition."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

import msgspec

from volcano.api.errors import ApiError, ServiceUnavailable
from volcano.api.meta import JSON
from volcano.embedded.apiserver.calls import Backend
from volcano.embedded.apiserver.kinds.api_services import API_SERVICES, set_available
from volcano.embedded.apiserver.kinds.services import ENDPOINTS, SERVICES
from volcano.embedded.apiserver.registry.extension_apis import ExtensionApi
from volcano.embedded.apiserver.store.contract import LoggedChange, ObjectKey
from volcano.embedded.apiserver.upkeep.bootstrap import ADMIN
from volcano.machinery.transport import Handler, Request, User

log = logging.getLogger(__name__)

CHECK_INTERVAL: Final = timedelta(seconds=30)
CHECK_SECONDS: Final = 5.0
MAX_RESOURCES: Final = 10_000
AGGREGATOR: Final = User("system:kube-aggregator", ("system:masters",))
_PATH: Final = "/apis/apiregistration.k8s.io/v1/apiservices"


class ApiServiceStatus:
    """One task while an APIService names a Service; none otherwise."""

    def __init__(self, backend: Backend, handle: Handler) -> None:
        self._backend = backend
        self._handle = handle
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        backend.store.subscribe(self._follow)

    def start(self) -> None:
        """Resume with what is there already."""
        if self._task is None and self._backend.extensions.all():
            self._task = asyncio.ensure_future(self._run())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _follow(self, changes: Sequence[LoggedChange]) -> None:
        extensions = self._backend.extensions.all()
        if not extensions:
            return
        services = {(api.service.get("namespace"), api.service.get("name")) for api in extensions}
        for change in changes:
            resource, namespace, name = change.stored.key
            if resource == API_SERVICES or (resource in (SERVICES, ENDPOINTS) and (namespace, name) in services):
                self._changed.set()
                self.start()

    async def _run(self) -> None:
        try:
            while extensions := self._backend.extensions.all():
                self._changed.clear()
                for api in extensions:
                    await self._check(api)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), CHECK_INTERVAL.total_seconds())
        finally:
            self._task = None

    async def _check(self, api: ExtensionApi) -> None:
        try:
            resources = await self._resources(api)
        except ApiError as error:
            self._backend.extensions.note_resources(api, None)
            await self._write(api, is_available=False, reason=self._reason(api), message=str(error))
        else:
            self._backend.extensions.note_resources(api, resources)
            await self._write(api, is_available=True, reason="Passed", message="all checks passed")

    async def _resources(self, api: ExtensionApi) -> Sequence[JSON]:
        path = f"/apis/{api.group}/{api.version}"
        answer = await self._backend.extension_client.send(
            Request("GET", path, headers={"accept": "application/json"}),
            AGGREGATOR,
            api.service,
            ca_bundle=api.ca_bundle,
            is_checked=api.is_checked,
            seconds=CHECK_SECONDS,
            streams=False,
        )
        if answer.status != 200:
            raise ServiceUnavailable(f"failing or missing response from {path}: bad status {answer.status}")
        try:
            document: Any = msgspec.json.decode(answer.body)
            resources = document["resources"]
        except (msgspec.DecodeError, KeyError, TypeError, RecursionError):
            raise ServiceUnavailable(f"{path} does not answer with a list of resources") from None
        return resources[:MAX_RESOURCES] if isinstance(resources, list) else ()

    def _reason(self, api: ExtensionApi) -> str:
        namespace, name = str(api.service.get("namespace")), str(api.service.get("name"))
        if self._backend.store.find(ObjectKey(SERVICES, namespace, name)) is None:
            return "ServiceNotFound"
        try:
            self._backend.webhooks.endpoint(api.service)
        except ServiceUnavailable:
            return "MissingEndpoints"
        return "FailedDiscoveryCheck"

    async def _write(self, api: ExtensionApi, *, is_available: bool, reason: str, message: str) -> None:
        stored = self._backend.store.find(ObjectKey(API_SERVICES, "", api.name))
        if stored is None:
            return
        obj: JSON = msgspec.json.decode(stored.raw)
        before = msgspec.json.encode(obj.get("status"))
        now = self._backend.timestamp()
        set_available(obj, is_available=is_available, reason=reason, message=message, now=now)
        if msgspec.json.encode(obj["status"]) == before:
            return
        headers = {"content-type": "application/json", "user-agent": "volcano-apiserver"}
        path = f"{_PATH}/{api.name}/status"
        answer = await self._handle(Request("PUT", path, headers=headers, body=msgspec.json.encode(obj), user=ADMIN))
        if answer.status not in (200, 404, 409):
            log.error("the status of APIService %s cannot be written: %s", api.name, answer.body[:500])
