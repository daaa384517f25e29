"""The volumes and the service account token of pods: made before a pod starts, refreshed while it runs.

Which files a volume has is volume_files' decision, writing them is volumes' work; this module knows when.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from volcano.api.errors import ApiError
from volcano.api.kubelet import AgentPod
from volcano.embedded.agent.containers.environment import Missing, References
from volcano.embedded.agent.storage.service_account import with_token
from volcano.embedded.agent.storage.volume_files import is_made_of_files, token_life
from volcano.embedded.agent.storage.volumes import PodVolumes
from volcano.machinery.clock import Clock

REFRESH_PERIOD: Final = timedelta(seconds=60)
TOKEN_RENEWAL_FRACTION: Final = 0.8
"""A token is replaced once this fraction of its lifetime has passed."""


class MountedPod:
    """A pod with the files that were made for it."""

    def __init__(self, pod: AgentPod) -> None:
        self.pod = pod
        self.address = ""
        self.references = References()
        self.volumes: dict[str, str] = {}  # volume name → path on this machine
        self.has_added_token = False  # a token volume that the pod's spec does not name
        self.renew_tokens_at: datetime | None = None

    def with_added_volumes(self, pod: AgentPod) -> AgentPod:
        """The pod as the API has it, plus the token volume that the agent adds."""
        return with_token(pod) if self.has_added_token else pod


class PodFiles:
    """Makes and refreshes the files of all pods of one agent."""

    def __init__(self, volumes: PodVolumes, clock: Clock, *, host_address: str) -> None:
        self._volumes, self._clock, self._host_address = volumes, clock, host_address

    async def prepare(self, mounted: MountedPod, pod: AgentPod, *, can_mount: bool) -> None:
        """Make the pod's volumes; Missing when an object that they need does not exist yet."""
        mounted.has_added_token = can_mount and await self._volumes.gives_token(pod)
        mounted.pod = mounted.with_added_volumes(pod)
        mounted.references = await self._fetch_references(mounted)
        await self._make_volumes(mounted)

    async def keep_fresh(self, pods: Mapping[str, MountedPod]) -> None:
        """Until cancelled: update files of changed ConfigMaps and Secrets, and expiring tokens, as a kubelet does."""
        while True:
            await self._clock.sleep(REFRESH_PERIOD)
            self._volumes.clear_cache()
            for uid, mounted in list(pods.items()):
                is_present = pods.get(uid) is mounted
                if is_present and any(is_made_of_files(volume) for volume in mounted.pod.spec.volumes):
                    with contextlib.suppress(Missing, ApiError, OSError):
                        await self.refresh(mounted)

    async def refresh(self, mounted: MountedPod) -> None:
        fresh = await self._fetch_references(mounted)
        is_due = mounted.renew_tokens_at is not None and self._clock.now() >= mounted.renew_tokens_at
        if fresh != mounted.references or is_due:
            mounted.references = fresh
            await self._make_volumes(mounted)

    async def _fetch_references(self, mounted: MountedPod) -> References:
        return await self._volumes.references(mounted.pod, address=mounted.address, host_address=self._host_address)

    async def _make_volumes(self, mounted: MountedPod) -> None:
        mounted.volumes = await self._volumes.make(mounted.pod, mounted.references)
        life = token_life(mounted.pod)
        mounted.renew_tokens_at = self._clock.now() + life * TOKEN_RENEWAL_FRACTION if life is not None else None
