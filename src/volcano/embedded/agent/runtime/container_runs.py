"""Starts, probes and stops the containers of prepared pods through the supervisor, and reports how they ended.

What a container needs of its pod is made by pod_sandboxes. The supervisor's records are the only source of exits.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import signal
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

import msgspec

from volcano.api.kubelet import AgentContainer, AgentPod, Handler
from volcano.embedded.agent.containers.container_attempt import ContainerAttempt, split_id
from volcano.embedded.agent.containers.environment import Missing
from volcano.embedded.agent.containers.images import CommandLine, NoImage
from volcano.embedded.agent.containers.process_settings import ProcessSettings
from volcano.embedded.agent.devices.detection import card_files
from volcano.embedded.agent.grants.grants import Grants
from volcano.embedded.agent.lifecycle.pod_events import EXIT_CODE_SIGKILL, Exited, Started, Unstarted
from volcano.embedded.agent.network.pod_connections import PodConnections
from volcano.embedded.agent.processes.cgroups import Cgroups
from volcano.embedded.agent.processes.supervisor_client import NoSpace, SupervisorClient, SupervisorError
from volcano.embedded.agent.processes.supervisor_protocol import Order, ProcessRecord
from volcano.embedded.agent.runtime.container_commands import ContainerCommands, start_error
from volcano.embedded.agent.runtime.contract import Report
from volcano.embedded.agent.runtime.cpu_bindings import CpuBindings
from volcano.embedded.agent.runtime.orders import Isolation, order_for
from volcano.embedded.agent.runtime.pod_folders import PodFolders
from volcano.embedded.agent.runtime.pod_sandboxes import PodSandboxes
from volcano.embedded.agent.runtime.probes_and_hooks import ProbesAndHooks
from volcano.embedded.agent.runtime.process_records import ended_of, is_live, started_at
from volcano.embedded.agent.task_set import TaskSet
from volcano.machinery.clock import Clock

log = logging.getLogger(__name__)
MAX_POST_START_DURATION: Final = timedelta(minutes=5)
MIN_GRACE_AFTER_PRE_STOP: Final = timedelta(seconds=2)
KILL_RETRY_DELAY: Final = timedelta(seconds=5)


class ContainerRuns:
    """The containers of one agent's pods, by identifier."""

    def __init__(
        self,
        clock: Clock,
        settings: ProcessSettings,
        supervisor: SupervisorClient,
        connections: PodConnections,
        sandboxes: PodSandboxes,
        folders: PodFolders,
        tasks: TaskSet,
        report: Report,
        grants: Grants,
    ) -> None:
        self._grants = grants
        self._clock, self._supervisor, self._connections = clock, supervisor, connections
        self._commands = ContainerCommands(settings)
        self._sandboxes, self._folders, self._tasks, self._report = sandboxes, folders, tasks, report
        self._checks = ProbesAndHooks(clock, self.execute, report)
        self._records: dict[str, ProcessRecord] = {}
        self._stopping: dict[str, asyncio.Task[None]] = {}
        self._probing: dict[str, asyncio.Task[None]] = {}
        self._ended: dict[str, asyncio.Event] = {}
        self._resumed: set[str] = set()  # UIDs of pods whose containers ran before the agent started
        self.cgroups = Cgroups(f"volcano-{settings.digest}")
        self.bindings = CpuBindings(settings.cpus, grants, self.cgroups, lambda: self._records)
        self.variables = dict(settings.environment)  # environment of every container
        self._card_files = card_files()  # of the machine, whether managed or not

    @property
    def records(self) -> Mapping[str, ProcessRecord]:
        return self._records

    def take_over(self, records: list[ProcessRecord]) -> None:
        """Adopt the containers that the supervisor has."""
        self._records = {record["container"]: record for record in records}
        self._resumed = {split_id(identity)[0] for identity in self._records}

    def lose(self, before: Mapping[str, ProcessRecord]) -> None:
        """Report the containers that ended with an earlier supervisor."""
        for identity, known in before.items():
            if is_live(known):
                lost: ProcessRecord = {**known, "is_lost": True, "exit_code": EXIT_CODE_SIGKILL}
                self._records.setdefault(identity, lost)
                self._report_exit(lost)

    @property
    def isolation(self) -> Isolation:
        isolated = self._supervisor.tier != "none"
        # On the machine's own network a user namespace would take away the right to bind low ports.
        users = self._supervisor.tier == "root" and self._connections.is_isolated
        is_single_user = self._supervisor.tier == "user"
        has_machine_users = self._supervisor.tier == "root" and os.geteuid() == 0
        home = os.path.expanduser("~")
        return Isolation(isolated, isolated, users, is_single_user, home, has_machine_users)

    # -- starting ---------------------------------------------------------------------------------------------
    async def start(self, pod: AgentPod, name: str, number: int) -> None:
        container = pod.container(name)
        assert container is not None, "a pod's containers do not change"
        run = ContainerAttempt(pod, name, number)
        try:
            record = await self._launch(run, container)
        finally:
            self._sandboxes.release_start_slot(pod.uid)
        if isinstance(record, Unstarted):
            self._report(pod.uid, record)
            return
        hook = container.lifecycle.post_start
        if hook is not None:
            await self._run_post_start(run, container, hook)
        known = self._records.setdefault(run.id, record)
        self.bindings.started(run.id)
        self._report(pod.uid, Started(name, number, started_at(record)))
        if known["exit_code"] is not None:
            self._report_exit(known)
        else:
            self._probe(run, container)

    async def _launch(self, run: ContainerAttempt, container: AgentContainer) -> ProcessRecord | Unstarted:
        line = self._commands.of(container)
        if isinstance(line, NoImage):
            return Unstarted(run.name, run.number, line.reason, line.message)
        self._ended[run.id] = asyncio.Event()
        try:
            return await self._supervisor.start(self._order(run, line))
        except Missing as error:
            return Unstarted(run.name, run.number, "CreateContainerConfigError", str(error))
        except NoSpace as error:
            return Unstarted(run.name, run.number, "CreateContainerError", str(error))
        except SupervisorError as error:
            message = start_error(error, container.image, line)
            return Unstarted(run.name, run.number, "StartError", message, is_run=True)
        except OSError as error:
            return Unstarted(run.name, run.number, "CreateContainerError", str(error))

    async def _run_post_start(self, run: ContainerAttempt, container: AgentContainer, hook: Handler) -> None:
        """A container whose postStart hook fails is killed, as if it had failed itself."""
        ok, output = await self._run_hook(run, container, hook, MAX_POST_START_DURATION)
        if not ok:
            log.warning("pod %s: postStart hook of container %s failed: %s", run.pod.key, run.name, output)
            with contextlib.suppress(SupervisorError):
                await self._signal(run.id, signal.SIGKILL)

    def _order(self, run: ContainerAttempt, line: CommandLine) -> Order:
        sandbox = self._sandboxes.get(run.pod.uid)
        if sandbox is None:
            raise Missing(f"pod {run.pod.name} is not prepared on this node")
        container = sandbox.with_added_volumes(run.pod).container(run.name)
        assert container is not None, "a pod's containers do not change"
        return order_for(
            run,
            container,
            line=line,
            references=sandbox.references,
            folders=self._folders.make(
                run,
                container,
                line=line,
                volumes=sandbox.volumes,
                variables=self.variables,
                isolation=self.isolation,
                address=sandbox.address,
                card_files=self._grants.device_files(run.pod, container, self._card_files),
            ),
            isolation=self.isolation,
            variables=self.variables,
            granted=self._grants.variables(run.pod, container),
            cgroups=self.cgroups.make(run.id, container.resources, self.bindings.cpuset_of(run)),
            cpus=self.bindings.affinity_of(run),
        )

    # -- running ----------------------------------------------------------------------------------------------
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
        container = run.pod.container(run.name)
        assert container is not None, "a pod's containers do not change"
        line = self._commands.of_exec(container, argv)
        order = self._order(run, line)
        order["argv"] = list(line.argv)  # unlike the container's own command, without $(NAME) replaced
        if terminal:
            order["environment"].setdefault("TERM", "xterm")
        reply = await self._supervisor.ask(
            "exec",
            descriptors=standard,
            container=run.id,
            order=order,
            terminal=terminal,
            seconds=math.ceil(timeout.total_seconds()) if timeout is not None else 0,
        )
        code: int = reply["exit_code"]
        return code

    def probe_resumed(self, pod: AgentPod) -> None:
        """Start the probes of containers that ran before the agent started."""
        if pod.uid not in self._resumed:
            return
        self._resumed.discard(pod.uid)
        for identity, record in self._records.items():
            if identity.startswith(f"{pod.uid}/") and is_live(record) and identity not in self._probing:
                _, name, number = split_id(identity)
                container = pod.container(name)
                if container is not None:
                    self._probe(ContainerAttempt(pod, name, number), container)

    def _probe(self, run: ContainerAttempt, container: AgentContainer) -> None:
        work = self._checks.probing(run, container, self._sandboxes.address_of(run.pod.uid))
        if work is not None:
            self._probing[run.id] = self._tasks.start(work)

    async def _run_hook(
        self, run: ContainerAttempt, container: AgentContainer, hook: Handler, timeout: timedelta
    ) -> tuple[bool, str]:
        address = self._sandboxes.address_of(run.pod.uid)
        return await self._checks.run_hook(run, container, hook, address=address, timeout=timeout)

    # -- stopping ---------------------------------------------------------------------------------------------
    def stop(self, pod: AgentPod, name: str, number: int, grace: timedelta) -> None:
        """Stop a container; a further call replaces the grace period and does not run the preStop hook again."""
        run = ContainerAttempt(pod, name, number)
        earlier = self._stopping.pop(run.id, None)
        if earlier is not None:
            earlier.cancel()
        self._stopping[run.id] = self._tasks.start(self._stop(run, grace, with_hook=earlier is None))

    async def _stop(self, run: ContainerAttempt, grace: timedelta, *, with_hook: bool) -> None:
        """The preStop hook runs within the grace period; SIGTERM and SIGKILL get what is left of it."""
        container = run.pod.container(run.name)
        hook = container.lifecycle.pre_stop if container is not None and with_hook else None
        if hook is not None and container is not None and grace > timedelta(0):
            began = self._clock.monotonic()
            await self._run_hook(run, container, hook, grace)
            grace -= timedelta(seconds=self._clock.monotonic() - began)
            grace = max(grace, MIN_GRACE_AFTER_PRE_STOP)
        await self._terminate(run.id, grace)

    async def _terminate(self, identity: str, grace: timedelta) -> None:
        ended = self._ended.setdefault(identity, asyncio.Event())
        try:
            if grace > timedelta(0):
                await self._signal(identity, signal.SIGTERM)
                await self._wait_until(ended, grace)
            while not ended.is_set():
                await self._signal(identity, signal.SIGKILL)
                await self._wait_until(ended, KILL_RETRY_DELAY)
        except SupervisorError as error:
            log.debug("stopping %s: %s", identity, error)  # the container ended with the supervisor

    async def _signal(self, identity: str, number: signal.Signals) -> None:
        await self._supervisor.ask("signal", container=identity, signal=int(number))

    async def _wait_until(self, ended: asyncio.Event, timeout: timedelta) -> None:
        waiting = asyncio.ensure_future(ended.wait())
        sleeping = asyncio.ensure_future(self._clock.sleep(timeout))
        try:
            await asyncio.wait((waiting, sleeping), return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            sleeping.cancel()

    async def remove(self, uid: str) -> list[str]:
        """Kill what still runs of a pod and drop its records; returns the identifiers of its containers."""
        identities = [identity for identity in self._records if identity.startswith(f"{uid}/")]
        for identity in identities:
            if is_live(self._records[identity]):
                await self._terminate(identity, timedelta(0))
        for identity in identities:
            self._records.pop(identity, None)
            self.bindings.ended(identity)
        return identities

    # -- exits ------------------------------------------------------------------------------------------------
    def on_exit(self, record: ProcessRecord) -> None:
        """The supervisor reports an exit; one that arrives before the start was reported waits for it."""
        identity = record["container"]
        is_started = identity in self._records
        self._records[identity] = record
        if is_started:
            self._report_exit(record)

    def _report_exit(self, record: ProcessRecord) -> None:
        identity = record["container"]
        uid, name, number = split_id(identity)
        ended = self._ended.pop(identity, None)
        if ended is not None:
            ended.set()
        self._stopping.pop(identity, None)
        probing = self._probing.pop(identity, None)
        if probing is not None:
            probing.cancel()
        if record["exit_code"] == EXIT_CODE_SIGKILL and not record["is_lost"]:
            record = {**record, "oom_killed": self.cgroups.was_out_of_memory(identity)}
            self._records[identity] = record
        self.cgroups.remove(identity)
        self.bindings.ended(identity)
        end, sandbox = ended_of(record), self._sandboxes.get(uid)
        if sandbox is not None and not end.message:
            run = ContainerAttempt(sandbox.pod, name, number)
            message = self._folders.termination_message(run, failed=bool(record["exit_code"]))
            end = msgspec.structs.replace(end, message=message)
        self._report(uid, Exited(name, number, end))
