"""The volumes and the token of pods: made before they start, and kept true to what the API holds while they run."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from volcano.api.errors import ApiError
from volcano.api.kubelet import AgentPod
from volcano.embedded.agent.containers.environment import Missing, References
from volcano.embedded.agent.storage.service_account import with_token
from volcano.embedded.agent.storage.volume_files import is_made_of_files, token_life
from volcano.embedded.agent.storage.volumes import Volumes
from volcano.machinery.clock import Clock

REFRESH_PERIOD: Final = timedelta(seconds=60)
TOKEN_RENEWAL_FRACTION: Final = 0.8
"""Of a token's life."""


class SandboxedPod:
    """What is kept of a pod between its commands."""

    def __init__(self, pod: AgentPod) -> None:
        self.pod = pod
        self.references = References()
        self.volumes: dict[str, str] = {}
        self.has_token = False  # one that it does not ask for itself
        self.renewal: datetime | None = None  # when its tokens are made anew
        self.address = ""
        self.preparing: asyncio.Task[None] | None = None
        self.has_turn = False

    def seen(self, pod: AgentPod) -> AgentPod:
        """The pod, as the API has it now, with what is added to it here."""
        return with_token(pod) if self.has_token else pod


class PodFiles:
    """Files of all pods of one agent."""

    def __init__(self, volumes: Volumes, clock: Clock, *, host_address: str) -> None:
        self._volumes, self._clock, self._host_address = volumes, clock, host_address

    async def prepare(self, kept: SandboxedPod, pod: AgentPod, *, can_mount: bool) -> None:
        """Missing when something is not there yet."""
        kept.has_token = can_mount and await self._volumes.gives_token(pod)
        kept.pod = kept.seen(pod)
        kept.references = await self._referred(kept)
        await self._make(kept)

    async def keep_fresh(self, pods: Mapping[str, SandboxedPod]) -> None:
        """What ConfigMaps and Secrets hold now reaches running pods sooner or later, as a kubelet does it."""
        while True:
            await self._clock.sleep(REFRESH_PERIOD)
            self._volumes.look_again()
            for uid, kept in list(pods.items()):
                is_there = pods.get(uid) is kept
                if is_there and any(is_made_of_files(volume) for volume in kept.pod.spec.volumes):
                    with contextlib.suppress(Missing, ApiError, OSError):
                        await self.refresh(kept)

    async def refresh(self, kept: SandboxedPod) -> None:
        fresh = await self._referred(kept)
        is_due = kept.renewal is not None and self._clock.now() >= kept.renewal
        if fresh != kept.references or is_due:
            kept.references = fresh
            await self._make(kept)

    async def _referred(self, kept: SandboxedPod) -> References:
        return await self._volumes.references(kept.pod, address=kept.address, host_address=self._host_address)

    async def _make(self, kept: SandboxedPod) -> None:
        kept.volumes = await self._volumes.make(kept.pod, kept.references)
        life = token_life(kept.pod)
        kept.renewal = self._clock.now() + life * TOKEN_RENEWAL_FRACTION if life is not None else None
