"""Hooks and probes of containers that run: asks them through their network or by commands inside them."""

from __future__ import annotations

import os
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any, Protocol

from volcano.api.kubelet import AgentContainer, AgentPod, Handler
from volcano.embedded.agent.processes.supervisor_client import SupervisorError
from volcano.embedded.agent.runtime.contract import Report
from volcano.embedded.agent.runtime.probes import Execute, Prober, ask
from volcano.machinery.clock import Clock

MAX_OUTPUT_BYTES = 1024


class Executor(Protocol):
    """Runs a further command in a container; its exit code."""

    async def __call__(
        self,
        pod: AgentPod,
        container: str,
        attempt: int,
        argv: list[str],
        *,
        standard: list[int],
        terminal: bool,
        patience: timedelta | None = None,
    ) -> int: ...


class ProbesAndHooks:
    """What is done for a container besides running it."""

    def __init__(self, clock: Clock, execute: Executor, report: Report) -> None:
        self._clock, self._execute, self._report = clock, execute, report

    def watching(
        self, pod: AgentPod, container: AgentContainer, attempt: int, address: str
    ) -> Coroutine[Any, Any, None] | None:
        """The work of asking a container's probes for as long as it runs; None when it has none."""
        uid = pod.uid
        prober = Prober(
            self._clock,
            container,
            attempt,
            address=address,
            execute=self._captured_exec(pod, container.name, attempt),
            report=lambda event: self._report(uid, event),
        )
        return prober.run() if prober.is_needed else None

    async def run_hook(
        self,
        pod: AgentPod,
        container: AgentContainer,
        attempt: int,
        hook: Handler,
        *,
        address: str,
        patience: timedelta,
    ) -> tuple[bool, str]:
        """Whether it went well, and what it said."""
        if hook.sleep is not None:
            await self._clock.sleep(min(patience, timedelta(seconds=int(hook.sleep.get("seconds", 0)))))
            return True, ""
        execute = self._captured_exec(pod, container.name, attempt)
        return await ask(hook, container, address=address, execute=execute, patience=patience)

    def _captured_exec(self, pod: AgentPod, container: str, attempt: int) -> Execute:
        async def execute(argv: list[str], patience: timedelta) -> tuple[int, str]:
            nothing = os.open(os.devnull, os.O_RDWR)
            said = os.memfd_create("said")
            try:
                code = await self._execute(
                    pod, container, attempt, argv, standard=[nothing, said, said], terminal=False, patience=patience
                )
                return code, os.pread(said, MAX_OUTPUT_BYTES, 0).decode(errors="replace").strip()
            except SupervisorError as error:
                return 1, str(error)
            finally:
                os.close(nothing)
                os.close(said)

        return execute
