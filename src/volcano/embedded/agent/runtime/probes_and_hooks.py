"""Probes and lifecycle hooks of running containers: runs them over the network or as commands in the container."""

from __future__ import annotations

import os
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any, Final, Protocol

from volcano.api.kubelet import AgentContainer, Handler
from volcano.embedded.agent.containers.container_attempt import ContainerAttempt
from volcano.embedded.agent.processes.supervisor_client import SupervisorError
from volcano.embedded.agent.runtime.contract import Report
from volcano.embedded.agent.runtime.probes import Execute, Prober, run_handler
from volcano.machinery.clock import Clock

MAX_OUTPUT_BYTES: Final = 1024
"""Of a probe's or hook's command; further output is dropped."""


class Executor(Protocol):
    """Runs a further command in a container; returns its exit code."""

    async def __call__(
        self, run: ContainerAttempt, argv: list[str], *, standard: list[int], timeout: timedelta | None = None
    ) -> int: ...


class ProbesAndHooks:
    """Makes the probe tasks of containers and runs their hooks."""

    def __init__(self, clock: Clock, execute: Executor, report: Report) -> None:
        self._clock, self._execute, self._report = clock, execute, report

    def probing(
        self, run: ContainerAttempt, container: AgentContainer, address: str
    ) -> Coroutine[Any, Any, None] | None:
        """A coroutine that runs the container's probes until cancelled; None when it has none."""
        uid = run.pod.uid
        prober = Prober(
            self._clock,
            container,
            run.number,
            address=address,
            execute=self._captured_exec(run),
            report=lambda event: self._report(uid, event),
        )
        return prober.run() if prober.is_needed else None

    async def run_hook(
        self, run: ContainerAttempt, container: AgentContainer, hook: Handler, *, address: str, timeout: timedelta
    ) -> tuple[bool, str]:
        """Whether the hook succeeded, and its output."""
        if hook.sleep is not None:
            await self._clock.sleep(min(timeout, timedelta(seconds=int(hook.sleep.get("seconds", 0)))))
            return True, ""
        execute = self._captured_exec(run)
        return await run_handler(hook, container, address=address, execute=execute, timeout=timeout)

    def _captured_exec(self, run: ContainerAttempt) -> Execute:
        """Runs commands in the container with their output captured in memory."""

        async def execute(argv: list[str], timeout: timedelta) -> tuple[int, str]:
            nothing = os.open(os.devnull, os.O_RDWR)
            output = os.memfd_create("output")
            try:
                code = await self._execute(run, argv, standard=[nothing, output, output], timeout=timeout)
                return code, os.pread(output, MAX_OUTPUT_BYTES, 0).decode(errors="replace").strip()
            except SupervisorError as error:
                return 1, str(error)
            finally:
                os.close(nothing)
                os.close(output)

        return execute
