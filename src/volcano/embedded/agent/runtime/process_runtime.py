"""The runtime whose pods are processes of this machine: dispatches commands, and recovers when the supervisor is lost.

pod_sandboxes prepares pods, container_runs runs their containers, the supervisor forks and reaps. Each command of a pod
becomes a task, and its result an event.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Set
from datetime import timedelta
from pathlib import Path
from typing import Final

from volcano.api.errors import ApiError
from volcano.api.kubelet import DEFAULT_USER_ANNOTATION, AgentPod
from volcano.embedded.agent.containers.container_attempt import ContainerAttempt, split_id
from volcano.embedded.agent.containers.process_settings import ProcessSettings
from volcano.embedded.agent.grants.grants import Grants
from volcano.embedded.agent.grants.pod_claims import FAILED
from volcano.embedded.agent.grants.pod_grant import Ungranted
from volcano.embedded.agent.lifecycle.pod_events import (
    Assigned,
    Clean,
    Forget,
    PodCommand,
    PodEvent,
    Prepare,
    Prepared,
    Start,
    Stop,
    Unprepared,
)
from volcano.embedded.agent.network.cluster_services import ClusterServices
from volcano.embedded.agent.network.hosts_files import HostsFiles
from volcano.embedded.agent.network.pod_connections import PodConnections
from volcano.embedded.agent.processes.supervisor_client import SupervisorClient, SupervisorError
from volcano.embedded.agent.runtime.container_rights import User, file_owner
from volcano.embedded.agent.runtime.container_runs import ContainerRuns
from volcano.embedded.agent.runtime.contract import Report
from volcano.embedded.agent.runtime.open_files import open_files_limit
from volcano.embedded.agent.runtime.pod_folders import PodFolders
from volcano.embedded.agent.runtime.pod_sandboxes import PodSandboxes, SandboxedPod
from volcano.embedded.agent.runtime.process_records import found_container, is_live
from volcano.embedded.agent.storage.pod_files import PodFiles
from volcano.embedded.agent.storage.protected_folders import ProtectedFolders
from volcano.embedded.agent.storage.volumes import PodVolumes
from volcano.embedded.agent.task_set import TaskSet
from volcano.embedded.agent.timers import Timers
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock

log = logging.getLogger(__name__)
MAX_GROUP_REMOVALS: Final = 60
GROUP_REMOVAL_INTERVAL: Final = timedelta(milliseconds=500)
TIER_DESCRIPTIONS: Final = {
    "root": "pods run in namespaces of their own (mount, UTS, IPC, PID, and user where they have their own network)",
    "user": "pods run in namespaces of their own (user, mount, UTS, IPC, PID)",
    "none": "pods are plain processes: this machine does not let its user make namespaces",
}


class ProcessRuntime:
    """Runs pods through one supervisor."""

    name = "process"

    def __init__(self, client: Client, clock: Clock, settings: ProcessSettings) -> None:
        self._clock, self._settings = clock, settings
        self._report: Report = lambda _uid, _event: None
        self._tasks, self._background = TaskSet(), TaskSet()
        self._timers = Timers(clock)
        self._is_closed = False
        self._supervisor = SupervisorClient(
            settings.supervisor,
            clock,
            on_exit=lambda record: self._runs.on_exit(record),
            on_lost=self._on_supervisor_lost,
        )
        self._host_pods: set[str] = set()  # UIDs of pods on the machine's own network
        services = ClusterServices(
            client, clock, settings, is_host_pod=self._host_pods.__contains__, on_change=self._on_services_changed
        )
        self._services = services
        self._connections = PodConnections(settings, self._supervisor, services)
        self._hosts = HostsFiles(self._timers, self._connections.service_names)
        self._folders = PodFolders(settings)
        protected = ProtectedFolders((settings.directory, *settings.hidden), settings.directory / "storage")
        volumes = PodVolumes(client, settings.pods, settings.memory, protected=protected, owner_of=self._owner_of)
        self.files = PodFiles(volumes, clock, host_address=settings.host_address)
        self.sandboxes = PodSandboxes(clock, self.files, self._folders, self._connections, self._hosts)
        choose = settings.cpus.choose if settings.cpus is not None else (lambda _pod, _held: {})
        self.grants = Grants(client, settings.pods, settings.cards, choose)
        self._runs = ContainerRuns(
            clock,
            settings,
            self._supervisor,
            self._connections,
            self.sandboxes,
            self._folders,
            self._tasks,
            self._report_event,
            self.grants,
        )
        self.grants.listeners.append(self._runs.bindings.refresh)
        self.annotations: dict[str, str] = {}

    def _default_user_annotation(self) -> dict[str, str]:
        """As whom pods run that state no user, where each may run as another user of the machine."""
        if not self._runs.isolation.has_machine_users:
            return {}
        user = self._settings.default_user
        return {DEFAULT_USER_ANNOTATION: str(user[0] if user is not None else os.geteuid())}

    def _owner_of(self, pod: AgentPod) -> User | None:
        """Who owns the files of a pod's volumes; None: this user, as always where the machine's users are not used."""
        isolation = self._runs.isolation
        return file_owner(pod, self._settings.default_user) if isolation.has_machine_users else None

    def _report_event(self, uid: str, event: PodEvent) -> None:
        self._report(uid, event)

    def _on_services_changed(self) -> None:
        if not self._services.name_server:
            self._hosts.services_changed()

    # -- the runtime's contract -------------------------------------------------------------------------------
    async def open(self, report: Report) -> None:
        self._report = report
        self._folders.open()
        self.grants.ledger.open()
        addresses = await self._connect()
        network = await self._connections.open(addresses)
        self._runs.variables |= self._connections.variables
        isolation = TIER_DESCRIPTIONS[self._supervisor.tier]
        limits = self._runs.cgroups.open(cpusets=self._runs.bindings.is_static)
        self._runs.cgroups.find_left(identity for identity, each in self._runs.records.items() if is_live(each))
        limits = f"{limits}; at most {open_files_limit()} open files per process"
        self.annotations = {
            "agent.volcano.sh/isolation": isolation,
            **self._default_user_annotation(),
            "agent.volcano.sh/pod-network": network,
            "agent.volcano.sh/limits": limits,
            "agent.volcano.sh/programs": self._folders.programs,
            "agent.volcano.sh/cpus": self._runs.bindings.description(),
        }
        if self._runs.bindings.is_static and not self._runs.cgroups.has_cpusets:
            log.warning("CPUs of pods are bound by affinity alone: no control groups with cpusets are delegated")
        self._runs.bindings.refresh()
        log.info("%s; network %s; %s", isolation, network, limits)
        self._background.start(self._timers.run())
        self._background.start(self.files.keep_fresh(self.sandboxes.pods))
        self._background.start(self._remove_left_groups())

    async def _remove_left_groups(self) -> None:
        """Remove control groups that an earlier agent left; processes that were killed with it may still be ending."""
        for _ in range(MAX_GROUP_REMOVALS):
            if self._runs.cgroups.remove_left():
                return
            await self._clock.sleep(GROUP_REMOVAL_INTERVAL)

    async def close(self) -> None:
        self._is_closed = True
        for tasks in (self._tasks, self._background):
            await tasks.cancel_all()
        is_idle = not any(is_live(record) for record in self._runs.records.values())
        if is_idle:
            with contextlib.suppress(SupervisorError):
                await self._supervisor.ask("end")
            self._runs.cgroups.close()
            self._folders.close()
        await self._connections.close(take_down=is_idle)
        await self._supervisor.close()

    def observe(self, pod: AgentPod, *, is_gone: bool) -> None:
        self._hosts.observe(pod, is_gone=is_gone)
        if pod.spec.host_network and not is_gone:
            self._host_pods.add(pod.uid)
        else:
            self._host_pods.discard(pod.uid)

    def resume(self, pod: AgentPod) -> Assigned:
        if pod.is_finished:
            return Assigned()
        records = self._runs.records.items()
        return Assigned(
            tuple(found_container(each) for identity, each in records if identity.startswith(f"{pod.uid}/"))
        )

    def end_unknown_pods(self, uids: Set[str]) -> None:
        unknown = {split_id(identity)[0] for identity in self._runs.records} - uids
        for uid in unknown | self.sandboxes.left_over(uids):
            self._tasks.start(self._forget(uid))

    def carry_out(self, pod: AgentPod, command: PodCommand) -> None:
        match command:
            case Prepare():
                sandbox = self.sandboxes.add(pod)
                sandbox.preparing = self._tasks.start(self._prepare(pod, sandbox))
            case Start(name, attempt):
                self._tasks.start(self._runs.start(pod, name, attempt))
            case Stop(name, attempt, grace):
                self._runs.stop(pod, name, attempt, grace)
            case Clean():
                self._tasks.start(self._clean(pod.uid))
            case Forget():
                self._tasks.start(self._forget(pod.uid))
            case _:
                pass

    async def _prepare(self, pod: AgentPod, sandbox: SandboxedPod) -> None:
        result: Prepared | Unprepared
        try:
            await self.grants.assign(pod)
            result = await self.sandboxes.prepare(sandbox, pod, can_mount=self._runs.isolation.mounts)
        except Ungranted as error:
            result = Unprepared(error.reason, str(error))
        except (ApiError, OSError) as error:
            result = Unprepared(FAILED, str(error))
        self._report(pod.uid, result)
        if isinstance(result, Prepared):
            self._runs.probe_resumed(pod)

    async def _clean(self, uid: str) -> None:
        """Nothing of the pod runs any more: what it was granted is free once its folder is gone."""
        await self.sandboxes.remove(uid)
        self.grants.release(uid)

    async def _forget(self, uid: str) -> None:
        identities = await self._runs.remove(uid)
        await self._clean(uid)
        if identities:
            await self._supervisor.ask("forget", containers=identities)
        await self._clock.run(lambda: self._folders.remove_logs(uid))

    # -- for the kubelet endpoint -----------------------------------------------------------------------------
    def processes_of(self, pod: AgentPod) -> dict[str, int]:
        """The pod's running containers, each with the process that it was started with."""
        live = (record for record in self._runs.records.values() if is_live(record))
        found = ((split_id(record["container"]), record["pid"]) for record in live)
        return {name: pid for (uid, name, _), pid in found if uid == pod.uid}

    def log_file(self, run: ContainerAttempt) -> Path:
        return self._folders.log_file(run)

    def container_folder(self, run: ContainerAttempt) -> Path:
        return self._folders.container_folder(run)

    async def dial(self, pod: AgentPod, address: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await self._connections.dial(pod, address, port)

    async def execute(
        self,
        run: ContainerAttempt,
        argv: list[str],
        *,
        standard: list[int],
        terminal: bool = False,
        timeout: timedelta | None = None,
    ) -> int:
        """Run a further command in a container; returns its exit code."""
        return await self._runs.execute(run, argv, standard=standard, terminal=terminal, timeout=timeout)

    # -- the supervisor ---------------------------------------------------------------------------------------
    async def _connect(self) -> dict[str, str]:
        """Adopt what the supervisor runs; returns the addresses of its pods."""
        await self._supervisor.connect()
        listed = await self._supervisor.ask("list")
        self._runs.take_over(listed["containers"])
        addresses: dict[str, str] = listed["pods"]
        return addresses

    def _on_supervisor_lost(self) -> None:
        """Its processes ended with it; the agent starts another one."""
        if not self._is_closed:
            self._tasks.start(self._recover())

    async def _recover(self) -> None:
        log.error("the supervisor ended: its pods are lost; starting another one")
        before = self._runs.records
        await self._connect()
        self._runs.lose(before)
