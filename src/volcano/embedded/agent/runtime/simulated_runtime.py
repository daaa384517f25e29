"""The runtime that simulates pods: annotations set how long a pod runs and its exit code.

Thousands of nodes fit in one agent: no process and no task per pod, only timers. After a restart of the agent the
state follows from the pod statuses, so nothing is stored.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Set
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

from volcano.api.durations import parse_duration
from volcano.api.kubelet import SIMULATED_RUNTIME, AgentPod
from volcano.embedded.agent.lifecycle.pod_events import (
    Assigned,
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
    Unstarted,
)
from volcano.embedded.agent.runtime.contract import Report
from volcano.embedded.agent.timers import Timers
from volcano.machinery.clock import Clock

DURATION: Final = "simulation.volcano.sh/duration"
EXIT_CODE: Final = "simulation.volcano.sh/exit-code"
STOP_TIME: Final = "simulation.volcano.sh/stop-time"
"""How long a container takes to end after Stop; it ends at once without this annotation."""

EXIT_CODE_SIGTERM: Final = 143
_VALUES_PER_OCTET: Final = 250


class SimulatedRuntime:
    """Keeps only the start time of each running container."""

    name = SIMULATED_RUNTIME
    annotations: Mapping[str, str] = MappingProxyType({})

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._timers = Timers(clock)
        self._live: dict[tuple[str, str], tuple[int, datetime]] = {}  # (uid, container) → (attempt, started)
        self._report: Report = lambda _uid, _event: None
        self._addresses = 0
        self._timer_task: asyncio.Future[None] | None = None

    async def open(self, report: Report) -> None:
        self._report = report
        self._timer_task = asyncio.ensure_future(self._timers.run())

    async def close(self) -> None:
        self._live.clear()
        if self._timer_task is not None:
            self._timer_task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._timer_task

    def resume(self, pod: AgentPod) -> Assigned:
        """A container that was reported as running still runs."""
        if pod.is_finished or not pod.status.pod_ip:
            return Assigned()
        found = []
        for spec in pod.all_containers:
            status = pod.container_status(spec.name)
            running = status.state.running if status else None
            if status is not None and running is not None and running.started_at is not None:
                started = min(running.started_at, self._clock.now())  # the clock may have been set back since
                found.append(FoundContainer(spec.name, status.restart_count, started))
                self._run_from(pod, spec.name, status.restart_count, started)
        return Assigned(tuple(found), pod.status.pod_ip)

    def end_unknown_pods(self, uids: Set[str]) -> None:
        for uid, container in [key for key in self._live if key[0] not in uids]:
            del self._live[uid, container]

    def observe(self, pod: AgentPod, *, is_gone: bool) -> None:
        return None

    def carry_out(self, pod: AgentPod, command: PodCommand) -> None:
        match command:
            case Prepare():
                self._report(pod.uid, Prepared(self._next_address()))
            case Start(container, attempt):
                self._start(pod, container, attempt)
            case Stop(container, attempt, grace):
                self._stop(pod, container, attempt, grace)
            case Forget():
                self._drop_pod(pod.uid)
            case _:
                pass

    def _drop_pod(self, uid: str) -> None:
        for key in [key for key in self._live if key[0] == uid]:
            del self._live[key]

    def _next_address(self) -> str:
        """The next address of 10.0.0.0/8; addresses repeat after 15 million pods."""
        self._addresses = (self._addresses + 1) % (_VALUES_PER_OCTET * _VALUES_PER_OCTET * _VALUES_PER_OCTET)
        rest, last = divmod(self._addresses, _VALUES_PER_OCTET)
        second, third = divmod(rest, _VALUES_PER_OCTET)
        return f"10.{second + 1}.{third}.{last + 1}"

    def _start(self, pod: AgentPod, container: str, attempt: int) -> None:
        now = self._clock.now()
        try:
            self._run_from(pod, container, attempt, now)
        except ValueError as error:
            self._report(pod.uid, Unstarted(container, attempt, "CreateContainerConfigError", str(error)))
            return
        self._report(pod.uid, Started(container, attempt, now))

    def _run_from(self, pod: AgentPod, container: str, attempt: int, started: datetime) -> None:
        """Run a container from `started` on for the duration in the annotation. Init containers end at once."""
        exit_code, lasts = 0, None
        if any(spec.name == container for spec in pod.spec.containers):
            lasts = parse_duration(pod.annotations[DURATION]) if DURATION in pod.annotations else None
            exit_code = int(pod.annotations.get(EXIT_CODE) or 0) & 0xFF
        elif (spec := pod.container(container)) is not None and not spec.is_sidecar:
            lasts = timedelta(0)
        self._live[pod.uid, container] = (attempt, started)
        if lasts is not None:
            uid = pod.uid
            self._timers.at(started + lasts, lambda: self._end(uid, container, attempt, exit_code))

    def _stop(self, pod: AgentPod, container: str, attempt: int, grace: timedelta) -> None:
        uid = pod.uid
        takes = parse_duration(pod.annotations[STOP_TIME]) if STOP_TIME in pod.annotations else timedelta(0)
        if takes <= timedelta(0) or grace <= timedelta(0):
            self._end(uid, container, attempt, EXIT_CODE_SIGTERM)
            return
        self._timers.after(min(takes, grace), lambda: self._end(uid, container, attempt, EXIT_CODE_SIGTERM))

    def _end(self, uid: str, container: str, attempt: int, exit_code: int) -> None:
        live = self._live.get((uid, container))
        if live is None or live[0] != attempt:
            return  # it has already ended, or was restarted
        del self._live[uid, container]
        self._report(uid, Exited(container, attempt, ContainerEnded(exit_code, live[1], self._clock.now())))
