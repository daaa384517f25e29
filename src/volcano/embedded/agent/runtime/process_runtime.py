"""Pods as processes of this machine: volumes, network and orders are made here, processes by the supervisor.

Each command of a pod becomes a task; what becomes of it is reported as an event. The supervisor's exits are the only
word on how a container ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import shutil
import signal
from collections.abc import Coroutine, Set
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import msgspec

from volcano.api.errors import ApiError
from volcano.api.kubelet import AgentContainer, AgentPod, Handler
from volcano.embedded.agent.containers.environment import Missing
from volcano.embedded.agent.containers.images import CommandLine, NoImage, command_line
from volcano.embedded.agent.containers.process_settings import ProcessSettings
from volcano.embedded.agent.lifecycle.pod_events import (
    EXIT_CODE_SIGKILL,
    Assigned,
    Clean,
    ContainerEnded,
    Exited,
    Forget,
    FoundContainer,
    PodCommand,
    Prepare,
    Prepared,
    Start,
    Started,
    Stop,
    Unprepared,
    Unstarted,
)
from volcano.embedded.agent.lifecycle.pod_lifecycle import LOST, LOST_MESSAGE
from volcano.embedded.agent.network.hosts_files import HostsFiles
from volcano.embedded.agent.network.network import NetworkUnavailable
from volcano.embedded.agent.network.pod_connections import PodConnections
from volcano.embedded.agent.processes.cgroups import Cgroups
from volcano.embedded.agent.processes.supervisor_client import SupervisorClient, SupervisorError
from volcano.embedded.agent.processes.supervisor_protocol import Order, ProcessRecord
from volcano.embedded.agent.runtime.contract import Report
from volcano.embedded.agent.runtime.orders import Isolation, container_id, order_for
from volcano.embedded.agent.runtime.pod_folders import PodFolders
from volcano.embedded.agent.runtime.probes_and_hooks import ProbesAndHooks
from volcano.embedded.agent.storage.pod_files import PodFiles, SandboxedPod
from volcano.embedded.agent.storage.volumes import Volumes
from volcano.embedded.agent.timers import Timers
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock

log = logging.getLogger(__name__)
TIER_DESCRIPTIONS: Final = {
    "root": "pods run in namespaces of their own (mount, UTS, IPC, PID, and user where they have their own network)",
    "user": "pods run in namespaces of their own (user, mount, UTS, IPC, PID)",
    "none": "pods are plain processes: this machine does not let its user make namespaces",
}
MAX_CONCURRENT_POD_STARTS: Final = 16
MAX_POST_START_DURATION: Final = timedelta(minutes=5)
MIN_GRACE_AFTER_PRE_STOP: Final = timedelta(seconds=2)


class ProcessRuntime:
    """Runs pods through one supervisor."""

    name = "process"

    def __init__(self, client: Client, clock: Clock, settings: ProcessSettings) -> None:
        self._clock, self._settings = clock, settings
        self._files = PodFiles(
            Volumes(client, settings.pods, settings.memory), clock, host_address=settings.host_address
        )
        self._places = PodFolders(settings)
        self._care = ProbesAndHooks(clock, self.execute, lambda uid, event: self._report(uid, event))
        self._supervisor = SupervisorClient(
            settings.supervisor, clock, on_exit=self._exited, on_lost=self._supervisor_lost
        )
        self._report: Report = lambda _uid, _event: None
        self._records: dict[str, ProcessRecord] = {}
        self._pods: dict[str, SandboxedPod] = {}
        self._stopping: dict[str, asyncio.Task[None]] = {}
        self._probing: dict[str, asyncio.Task[None]] = {}
        self._ended: dict[str, asyncio.Event] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._turns = asyncio.Semaphore(MAX_CONCURRENT_POD_STARTS)
        self._is_closed = False
        self._background: set[asyncio.Task[None]] = set()
        self._timers = Timers(clock)
        self._connections = PodConnections(settings, self._supervisor)
        self._names = HostsFiles(self._timers, self._connections.service_names)
        self._variables = dict(settings.environment)
        self._cgroups = Cgroups(f"volcano-{settings.digest}")
        self.annotations: dict[str, str] = {}

    # -- the runtime's contract -------------------------------------------------------------------------------
    async def open(self, report: Report) -> None:
        self._report = report
        self._places.open()
        await self._connect()
        network = await self._connections.open(self._known_addresses)
        self._variables |= self._connections.variables
        limits = self._cgroups.open()
        self.annotations = {
            "agent.volcano.sh/isolation": TIER_DESCRIPTIONS[self._supervisor.tier],
            "agent.volcano.sh/pod-network": network,
            "agent.volcano.sh/limits": limits,
        }
        log.info("%s; network %s; %s", TIER_DESCRIPTIONS[self._supervisor.tier], network, limits)
        self._background = {self._go(self._timers.run()), self._go(self._files.keep_fresh(self._pods))}

    async def close(self) -> None:
        self._is_closed = True
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        is_idle = not any(_is_live(record) for record in self._records.values())
        if is_idle:
            with contextlib.suppress(SupervisorError):
                await self._supervisor.ask("end")
            self._cgroups.close()
            self._places.close()
        await self._connections.close(take_down=is_idle)
        await self._supervisor.close()

    def saw(self, pod: AgentPod, *, is_gone: bool) -> None:
        self._names.saw(pod, is_gone=is_gone)

    # -- for the kubelet's endpoint ---------------------------------------------------------------------------
    def log_file(self, pod: AgentPod, container: str, attempt: int) -> Path:
        return self._places.log_file(pod, container, attempt)

    def container_folder(self, pod: AgentPod, container: str, attempt: int) -> Path:
        return self._places.container_folder(pod, container, attempt)

    async def dial(self, pod: AgentPod, address: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await self._connections.dial(pod, address, port)

    async def execute(
        self,
        pod: AgentPod,
        container: str,
        attempt: int,
        argv: list[str],
        *,
        standard: list[int],
        terminal: bool,
        patience: timedelta | None = None,
    ) -> int:
        """Run a further command in a container; its exit code."""
        order = self._order(pod, container, attempt, CommandLine(tuple(argv)))
        order["argv"] = argv
        if terminal:
            order["environment"].setdefault("TERM", "xterm")
        reply = await self._supervisor.ask(
            "exec",
            descriptors=standard,
            container=container_id(pod.uid, container, attempt),
            order=order,
            terminal=terminal,
            seconds=math.ceil(patience.total_seconds()) if patience is not None else 0,
        )
        code: int = reply["exit_code"]
        return code

    def resume(self, pod: AgentPod) -> Assigned:
        found = tuple(
            _found(record) for record in self._records.values() if record["container"].startswith(f"{pod.uid}/")
        )
        if pod.is_finished or not (found and pod.status.pod_ip):
            return Assigned(found if not pod.is_finished else ())
        return Assigned(found)

    def end_unknown_pods(self, uids: Set[str]) -> None:
        unknown_pods = {record["container"].split("/")[0] for record in self._records.values()} - uids
        unknown_pods |= self._places.unknown_pods(uids)
        for uid in unknown_pods:
            self._go(self._forget(uid))

    def carry_out(self, pod: AgentPod, command: PodCommand) -> None:
        match command:
            case Prepare():
                kept = self._pods.setdefault(pod.uid, SandboxedPod(pod))
                kept.preparing = self._go(self._prepare(pod, kept))
            case Start(name, attempt):
                self._go(self._start(pod, name, attempt))
            case Stop(name, attempt, grace):
                self._stop(pod, name, attempt, grace)
            case Clean():
                self._go(self._clean(pod.uid))
            case Forget():
                self._go(self._forget(pod.uid))
            case _:
                pass

    def _go(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # -- preparing --------------------------------------------------------------------------------------------
    async def _prepare(self, pod: AgentPod, kept: SandboxedPod) -> None:
        await self._take_turn(kept)
        try:
            kept.address = await self._connections.connect(pod)
            await self._files.prepare(kept, pod, can_mount=self._isolation().mounts)
            self._write_names(pod, kept)
        except Missing as error:
            self._end_turn(kept)
            self._report(pod.uid, Unprepared("FailedMount", f"MountVolume.SetUp failed: {error}"))
        except (SupervisorError, NetworkUnavailable, ApiError, OSError) as error:
            self._end_turn(kept)
            self._report(pod.uid, Unprepared("FailedCreatePodSandBox", f"{error}"))
        else:
            self._report(pod.uid, Prepared(kept.address))
            self._probe_resumed(pod)

    async def _take_turn(self, kept: SandboxedPod) -> None:
        """Few pods at a time are between their preparation and their start: a crowd would only slow each down."""
        if not kept.has_turn:
            await self._turns.acquire()
            kept.has_turn = True

    def _end_turn(self, kept: SandboxedPod | None) -> None:
        if kept is not None and kept.has_turn:
            kept.has_turn = False
            self._turns.release()

    def _probe_resumed(self, pod: AgentPod) -> None:
        """Containers that ran before the agent started are asked from here on."""
        if pod.uid not in self._resumed:
            return
        self._resumed.discard(pod.uid)
        for identity, record in self._records.items():
            if identity.startswith(f"{pod.uid}/") and _is_live(record) and identity not in self._probing:
                _, name, attempt = identity.split("/")
                container = pod.container(name)
                if container is not None:
                    self._probe(pod, container, int(attempt))

    def _write_names(self, pod: AgentPod, kept: SandboxedPod) -> None:
        folder = self._settings.pods / pod.uid
        folder.mkdir(exist_ok=True)
        self._names.add(pod, kept.address, folder / "hosts")
        (folder / "hostname").write_text(pod.hostname + "\n")

    # -- starting ---------------------------------------------------------------------------------------------
    async def _start(self, pod: AgentPod, name: str, attempt: int) -> None:
        container = pod.container(name)
        assert container is not None, "a pod's containers do not change"
        line = command_line(
            container.image,
            container.command,
            container.args,
            self._settings.images,
            is_program=lambda name: shutil.which(name, path=Isolation().path) is not None,
        )
        if isinstance(line, NoImage):
            self._end_turn(self._pods.get(pod.uid))
            self._report(pod.uid, Unstarted(name, attempt, line.reason, line.message))
            return
        identity = container_id(pod.uid, name, attempt)
        self._ended[identity] = asyncio.Event()
        try:
            record = await self._supervisor.start(self._order(pod, name, attempt, line))
            self._end_turn(self._pods.get(pod.uid))
        except Missing as error:
            self._end_turn(self._pods.get(pod.uid))
            self._report(pod.uid, Unstarted(name, attempt, "CreateContainerConfigError", str(error)))
        except SupervisorError as error:
            self._end_turn(self._pods.get(pod.uid))
            self._report(pod.uid, Unstarted(name, attempt, "StartError", str(error), is_run=True))
        except OSError as error:
            self._end_turn(self._pods.get(pod.uid))
            self._report(pod.uid, Unstarted(name, attempt, "CreateContainerError", str(error)))
        else:
            hook = container.lifecycle.post_start
            if hook is not None:
                await self._after_start(pod, container, attempt, hook)
            known = self._records.setdefault(identity, record)
            self._report(pod.uid, Started(name, attempt, _moment(record["started"])))
            if known["exit_code"] is not None:
                self._report_exit(known)
            else:
                self._probe(pod, container, attempt)

    async def _after_start(self, pod: AgentPod, container: AgentContainer, attempt: int, hook: Handler) -> None:
        """A container whose first hook fails is killed, as if it had failed itself."""
        ok, said = await self._ask(pod, container, attempt, hook, MAX_POST_START_DURATION)
        if not ok:
            log.warning("pod %s: postStart hook of container %s failed: %s", pod.key, container.name, said)
            with contextlib.suppress(SupervisorError):
                identity = container_id(pod.uid, container.name, attempt)
                await self._supervisor.ask("signal", container=identity, signal=int(signal.SIGKILL))

    def _probe(self, pod: AgentPod, container: AgentContainer, attempt: int) -> None:
        kept, uid = self._pods.get(pod.uid), pod.uid
        work = self._care.watching(pod, container, attempt, kept.address if kept is not None else "")
        if work is not None:
            self._probing[container_id(uid, container.name, attempt)] = self._go(work)

    async def _ask(
        self, pod: AgentPod, container: AgentContainer, attempt: int, hook: Handler, patience: timedelta
    ) -> tuple[bool, str]:
        kept = self._pods.get(pod.uid)
        address = kept.address if kept is not None else ""
        return await self._care.run_hook(pod, container, attempt, hook, address=address, patience=patience)

    def _order(self, pod: AgentPod, name: str, attempt: int, line: CommandLine) -> Order:
        kept = self._pods.get(pod.uid)
        if kept is None:
            raise Missing(f"pod {pod.name} is not prepared on this node")
        container = kept.seen(pod).container(name)
        assert container is not None, "a pod's containers do not change"
        return order_for(
            pod,
            container,
            attempt,
            line=line,
            references=kept.references,
            place=self._places.make(pod, container, attempt, volumes=kept.volumes, variables=self._variables),
            isolation=self._isolation(),
            variables=self._variables,
            cgroups=self._cgroups.make(container_id(pod.uid, name, attempt), container.resources),
        )

    def _isolation(self) -> Isolation:
        isolated = self._supervisor.tier != "none"
        # On the machine's own network a user namespace would take the right to low ports away.
        users = self._supervisor.tier == "root" and self._connections.is_isolated
        return Isolation(isolated, isolated, users, home=os.path.expanduser("~"))

    # -- ending -----------------------------------------------------------------------------------------------
    def _stop(self, pod: AgentPod, name: str, attempt: int, grace: timedelta) -> None:
        identity = container_id(pod.uid, name, attempt)
        earlier = self._stopping.pop(identity, None)
        if earlier is not None:
            earlier.cancel()
        hook = None if earlier is not None else self._last_hook(pod, name)
        self._stopping[identity] = self._go(self._stop_kindly(pod, name, attempt, grace, hook))

    def _last_hook(self, pod: AgentPod, name: str) -> Handler | None:
        container = pod.container(name)
        return container.lifecycle.pre_stop if container is not None else None

    async def _stop_kindly(
        self, pod: AgentPod, name: str, attempt: int, grace: timedelta, hook: Handler | None
    ) -> None:
        """The preStop hook is given the grace period, and the container what is left of it."""
        container = pod.container(name)
        if hook is not None and container is not None and grace > timedelta(0):
            began = self._clock.monotonic()
            await self._ask(pod, container, attempt, hook, grace)
            grace -= timedelta(seconds=self._clock.monotonic() - began)
            grace = max(grace, MIN_GRACE_AFTER_PRE_STOP)
        await self._end(container_id(pod.uid, name, attempt), grace)

    async def _end(self, identity: str, grace: timedelta) -> None:
        ended = self._ended.setdefault(identity, asyncio.Event())
        try:
            if grace > timedelta(0):
                await self._supervisor.ask("signal", container=identity, signal=int(signal.SIGTERM))
                await self._wait_or(ended, grace)
            while not ended.is_set():
                await self._supervisor.ask("signal", container=identity, signal=int(signal.SIGKILL))
                await self._wait_or(ended, timedelta(seconds=5))
        except SupervisorError as error:
            log.debug("stopping %s: %s", identity, error)  # what it held has ended with it

    async def _wait_or(self, ended: asyncio.Event, patience: timedelta) -> None:
        waiting = asyncio.ensure_future(ended.wait())
        sleeping = asyncio.ensure_future(self._clock.sleep(patience))
        try:
            await asyncio.wait((waiting, sleeping), return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            sleeping.cancel()

    def _exited(self, record: ProcessRecord) -> None:
        identity = record["container"]
        started = identity in self._records
        self._records[identity] = record
        if started:
            self._report_exit(record)

    def _report_exit(self, record: ProcessRecord) -> None:
        identity = record["container"]
        uid, name, attempt = identity.split("/")
        ended = self._ended.pop(identity, None)
        if ended is not None:
            ended.set()
        self._stopping.pop(identity, None)
        probing = self._probing.pop(identity, None)
        if probing is not None:
            probing.cancel()
        kept = self._pods.get(uid)
        if record["exit_code"] == EXIT_CODE_SIGKILL and not record["is_lost"]:
            record = {**record, "oom_killed": self._cgroups.was_out_of_memory(identity)}
            self._records[identity] = record
        self._cgroups.remove(identity)
        message = ""
        if kept is not None:
            message = self._places.last_words(kept.pod, name, int(attempt), failed=bool(record["exit_code"]))
        found = _found(record).ended
        assert found is not None, "an exit has an exit code"
        self._report(uid, Exited(name, int(attempt), msgspec.structs.replace(found, message=found.message or message)))

    async def _clean(self, uid: str) -> None:
        """The pod has ended: everything but its logs and its exit records goes."""
        self._names.remove(uid)
        kept = self._pods.pop(uid, None)
        if kept is not None and kept.preparing is not None:
            await asyncio.wait((kept.preparing,))
            self._end_turn(kept)
        await self._connections.disconnect(uid)
        await self._clock.run(lambda: self._places.remove(uid))

    async def _forget(self, uid: str) -> None:
        mine = [identity for identity in self._records if identity.startswith(f"{uid}/")]
        for identity in mine:
            if _is_live(self._records[identity]):
                await self._end(identity, timedelta(0))
        for identity in mine:
            self._records.pop(identity, None)
        await self._clean(uid)
        if mine:
            await self._supervisor.ask("forget", containers=mine)
        await self._clock.run(lambda: self._places.remove_logs(uid))

    # -- the supervisor ---------------------------------------------------------------------------------------
    async def _connect(self) -> None:
        await self._supervisor.connect()
        listed = await self._supervisor.ask("list")
        self._records = {record["container"]: record for record in listed["containers"]}
        self._resumed = {identity.partition("/")[0] for identity in self._records}
        self._known_addresses: dict[str, str] = listed["pods"]

    def _supervisor_lost(self) -> None:
        """Its processes ended with it; another one takes over."""
        if not self._is_closed:
            self._go(self._recover())

    async def _recover(self) -> None:
        log.error("the supervisor ended: its pods are lost; starting another one")
        before = dict(self._records)
        await self._connect()
        for identity, known in before.items():
            if known["exit_code"] is None and not known["is_lost"]:
                lost: ProcessRecord = {**known, "is_lost": True, "exit_code": EXIT_CODE_SIGKILL}
                self._records[identity] = self._records.get(identity, lost)
                self._report_exit(lost)


def _found(record: ProcessRecord) -> FoundContainer:
    _, name, attempt = record["container"].split("/")
    started = _moment(record["started"])
    if record["exit_code"] is None and not record["is_lost"]:
        return FoundContainer(name, int(attempt), started)
    finished = _moment(record["finished"] or record["started"])
    if record["is_lost"]:
        return FoundContainer(
            name, int(attempt), started, ContainerEnded(EXIT_CODE_SIGKILL, started, finished, LOST, LOST_MESSAGE)
        )
    reason = "OOMKilled" if record["oom_killed"] else ""
    code = record["exit_code"] or 0
    return FoundContainer(name, int(attempt), started, ContainerEnded(code, started, finished, reason))


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _is_live(record: ProcessRecord) -> bool:
    return record["exit_code"] is None and not record["is_lost"]
