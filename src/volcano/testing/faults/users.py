"""The users of a run: they do one thing after another, and repeat what was not answered."""

from __future__ import annotations

import asyncio
from typing import Final

from volcano.api.errors import AlreadyExists, ApiError, NotFound
from volcano.api.meta import JSON, Key
from volcano.api.scheme import ResourceType, find_resource_type
from volcano.machinery.client import Client
from volcano.testing.faults.machines import wait_seconds
from volcano.testing.faults.workload import UserRequest

GROUPS: Final = {
    "Job": "batch.volcano.sh",
    "CronJob": "batch.volcano.sh",
    "Queue": "scheduling.volcano.sh",
    "JobTemplate": "flow.volcano.sh",
    "JobFlow": "flow.volcano.sh",
    "PriorityClass": "scheduling.k8s.io",
    "Reservation": "reservation.volcano.sh",
    "Command": "bus.volcano.sh",
}
CONFIGURATION_ITEM: Final = "volcano-scheduler.conf"
PAUSE_SECONDS: Final = 1.0
MAX_REFUSALS: Final = 300


class Users:
    def __init__(self, client: Client) -> None:
        self._client = client
        self.refused: list[str] = []
        self._refusals = 0

    async def configure(self, configmap: str, text: str) -> None:
        """Before the scheduler starts."""
        place, _, item = configmap.partition(":")
        key = Key.parse(place)
        metadata = {"name": key.name, "namespace": key.namespace}
        await self._client.create(_row("ConfigMap"), {"metadata": metadata, "data": {item or CONFIGURATION_ITEM: text}})

    async def do_all(self, acts: list[UserRequest]) -> None:
        loop = asyncio.get_running_loop()
        for act in acts:
            await wait_seconds(max(0.0, act.at - loop.time()))
            while not await self._do(act):
                await wait_seconds(PAUSE_SECONDS)

    async def _do(self, act: UserRequest) -> bool:
        """Whether it is done, or can never be."""
        try:
            await self._send(act)
        except (AlreadyExists, NotFound):
            return True
        except ApiError as error:
            if error.status_code >= 500 or error.status_code in (409, 429):
                return False
            self._refusals += 1
            if self._refusals < MAX_REFUSALS:
                return False  # a queue that was created a moment ago does not take jobs yet
            self.refused.append(f"{act.verb} {act.kind} {act.name}: {error}")
        except (ConnectionError, TimeoutError):
            return False
        return True

    async def _send(self, act: UserRequest) -> None:
        row = _row(act.kind)
        key = Key("default" if row.namespaced else "", act.name)
        match act.verb:
            case "create":
                await self._client.create(row, act.body)
            case "patch":
                await self._client.patch(row, key, act.body)
            case "delete":
                await self._client.delete(row, key)
            case "command":
                found = await self._client.get_json(row, key)
                await self._client.create(_row("Command"), _command(act, found))


def _command(act: UserRequest, target: JSON) -> JSON:
    """Named by what it asks, so that a repeated request makes no second command."""
    reference = {name: target["metadata"][name] for name in ("name", "uid")}
    owner = {"apiVersion": target["apiVersion"], "kind": act.kind, **reference}
    name = f"{act.name}-{act.body['action'].lower()}"
    return {"metadata": {"name": name, "namespace": "default"}, "target": owner, "action": act.body["action"]}


def _row(kind: str) -> ResourceType:
    row = find_resource_type(GROUPS.get(kind, ""), kind)
    assert row is not None, kind
    return row
