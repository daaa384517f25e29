"""What a pod needs before its containers start, and what is removed after they ended: network, volumes, /etc/hosts.

Containers themselves are container_runs' work. The number of pods between preparation and start is limited.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Set
from pathlib import Path
from typing import Final

from volcano.api.errors import ApiError
from volcano.api.kubelet import AgentPod
from volcano.embedded.agent.containers.environment import Missing, MissingPath
from volcano.embedded.agent.lifecycle.pod_events import Prepared, Unprepared
from volcano.embedded.agent.network.hosts_files import HostsFiles
from volcano.embedded.agent.network.network import NetworkUnavailable
from volcano.embedded.agent.network.pod_connections import PodConnections
from volcano.embedded.agent.processes.supervisor_client import SupervisorError
from volcano.embedded.agent.runtime.orders import RESOLVER
from volcano.embedded.agent.runtime.pod_folders import PodFolders, resolver_file
from volcano.embedded.agent.storage.pod_files import MountedPod, PodFiles
from volcano.machinery.clock import Clock

MAX_CONCURRENT_POD_STARTS: Final = 16
"""Pods between the start of their preparation and the start of a container; more at once would slow each of them."""


class SandboxedPod(MountedPod):
    """A pod with its network and files, and how far its preparation is."""

    def __init__(self, pod: AgentPod) -> None:
        super().__init__(pod)
        self.preparing: asyncio.Task[None] | None = None
        self.holds_start_slot = False


class PodSandboxes:
    """The sandboxes of one agent's pods, by UID."""

    def __init__(
        self, clock: Clock, files: PodFiles, folders: PodFolders, connections: PodConnections, hosts: HostsFiles
    ) -> None:
        self._clock, self._files, self._folders = clock, files, folders
        self._connections, self._hosts = connections, hosts
        self._pods: dict[str, SandboxedPod] = {}
        self._start_slots = asyncio.Semaphore(MAX_CONCURRENT_POD_STARTS)

    @property
    def pods(self) -> Mapping[str, SandboxedPod]:
        return self._pods

    def get(self, uid: str) -> SandboxedPod | None:
        return self._pods.get(uid)

    def add(self, pod: AgentPod) -> SandboxedPod:
        return self._pods.setdefault(pod.uid, SandboxedPod(pod))

    def address_of(self, uid: str) -> str:
        sandbox = self._pods.get(uid)
        return sandbox.address if sandbox is not None else ""

    async def prepare(self, sandbox: SandboxedPod, pod: AgentPod, *, can_mount: bool) -> Prepared | Unprepared:
        """Make the pod's network and files. The start slot is kept on success, until a container was started."""
        if not sandbox.holds_start_slot:
            await self._start_slots.acquire()
            sandbox.holds_start_slot = True
        try:
            sandbox.address = await self._connections.connect(pod)
            await self._files.prepare(sandbox, pod, can_mount=can_mount)
            self._write_names(pod, sandbox.address, self._folders.pod_folder(pod.uid))
        except MissingPath as error:
            failure = Unprepared("FailedMount", str(error))
        except Missing as error:
            failure = Unprepared("FailedMount", f"MountVolume.SetUp failed: {error}")
        except (SupervisorError, NetworkUnavailable, ApiError, OSError) as error:
            failure = Unprepared("FailedCreatePodSandBox", f"{error}")
        else:
            return Prepared(sandbox.address, self._connections.warning_for(pod), self._connections.lack_of(pod))
        self._release(sandbox)
        return failure

    def release_start_slot(self, uid: str) -> None:
        """A container of the pod was started, or could not be."""
        sandbox = self._pods.get(uid)
        if sandbox is not None:
            self._release(sandbox)

    async def remove(self, uid: str) -> None:
        """The pod has ended: remove everything except its logs and its exit records."""
        self._hosts.remove(uid)
        sandbox = self._pods.pop(uid, None)
        if sandbox is not None and sandbox.preparing is not None:
            await asyncio.wait((sandbox.preparing,))
            self._release(sandbox)
        await self._connections.disconnect(uid)
        await self._clock.run(lambda: self._folders.remove(uid))

    def left_over(self, known: Set[str]) -> set[str]:
        """UIDs of pods that have folders here and are not among the known ones."""
        return self._folders.uids() - known

    def _release(self, sandbox: SandboxedPod) -> None:
        if sandbox.holds_start_slot:
            sandbox.holds_start_slot = False
            self._start_slots.release()

    def _write_names(self, pod: AgentPod, address: str, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self._hosts.add(pod, address, folder / "hosts")
        (folder / "hostname").write_text(pod.hostname + "\n")
        (folder / RESOLVER).write_text(self._connections.resolver_for(pod, resolver_file()))
