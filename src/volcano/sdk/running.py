"""A job that was submitted: its status, its end, its logs, and what can be done with it."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Final

from volcano.api import batch
from volcano.api.bus import Command, command_body
from volcano.api.core import Pod
from volcano.api.errors import ApiError
from volcano.api.meta import Key
from volcano.api.scheme import resource_type
from volcano.machinery.client import Client
from volcano.machinery.clock import SystemClock, wait_blocking
from volcano.machinery.one_shot import finish
from volcano.machinery.transport import Request

POLL_SECONDS: Final = 0.2
JOBS: Final = resource_type(batch.Job)
PODS: Final = resource_type(Pod)
COMMANDS: Final = resource_type(Command)


class JobFailed(RuntimeError):
    """The job ended otherwise than Completed; the message says how and why."""


class RunningJob:
    """A handle on a job by its name. Every question is asked of the API server again."""

    def __init__(self, client: Client, key: Key) -> None:
        self._client, self._key = client, key

    def __repr__(self) -> str:
        return f"RunningJob({self._key})"

    def _repr_html_(self) -> str:
        """What a notebook shows for a cell that ends with this job."""
        status = self.status
        rows = "".join(
            f"<tr><td>{html.escape(pod.name)}</td><td>{html.escape(pod.status.phase)}</td>"
            f"<td>{html.escape(pod.spec.node_name)}</td></tr>"
            for pod in self.pods()
        )
        heading = f"{html.escape(str(self._key))}: {html.escape(status.state.phase or 'Pending')}"
        return f"<table><caption>{heading}</caption><tr><th>pod</th><th>phase</th><th>node</th></tr>{rows}</table>"

    @property
    def name(self) -> str:
        return self._key.name

    def read(self) -> batch.Job:
        return finish(self._client.get(batch.Job, self._key))

    @property
    def status(self) -> batch.JobStatus:
        return self.read().status

    @property
    def phase(self) -> str:
        return self.status.state.phase or batch.Phase.PENDING.value

    def pods(self) -> list[Pod]:
        found = finish(self._client.list(Pod, self._key.namespace, labels=f"{batch.JOB_NAME_KEY}={self._key.name}"))
        return sorted(found.items, key=lambda pod: pod.name)

    def wait(
        self, *, seconds: float = 3600.0, on_change: Callable[[batch.JobStatus], None] | None = None
    ) -> batch.JobStatus:
        """Until the job has Completed. JobFailed if it ends otherwise, TimeoutError if it does not end in time."""
        clock = SystemClock()
        end = clock.monotonic() + seconds
        last: batch.JobStatus | None = None
        while True:
            status = self.status
            if on_change is not None and status != last:
                on_change(status)
            last = status
            phase = status.state.phase
            if phase == batch.Phase.COMPLETED:
                return status
            if phase in batch.STOPPED_PHASES:
                why = status.state.message or status.state.reason
                raise JobFailed(f"job {self._key} is {phase}" + (f": {why}" if why else ""))
            if clock.monotonic() >= end:
                raise TimeoutError(f"job {self._key} is {phase or 'Pending'} after {seconds:g} s")
            wait_blocking(POLL_SECONDS)

    def logs(self, *, task: str = "") -> dict[str, str]:
        """What each pod of the job, or of one task, has printed so far. Pods without logs yet are left out."""
        found = {}
        for pod in self.pods():
            if task and pod.annotations.get(batch.TASK_SPEC_KEY, "") != task:
                continue
            request = Request("GET", PODS.path(self._key.namespace, pod.name, "log"))
            try:
                found[pod.name] = finish(self._client.raw(request)).body.decode(errors="replace")
            except ApiError:
                continue
        return found

    def suspend(self) -> None:
        self._ask(batch.Action.ABORT_JOB)

    def resume(self) -> None:
        self._ask(batch.Action.RESUME_JOB)

    def delete(self) -> None:
        """Remove the job and its pods."""
        finish(self._client.delete(JOBS, self._key))

    def _ask(self, action: str) -> None:
        target = finish(self._client.get_json(JOBS, self._key))
        finish(self._client.create(COMMANDS, command_body(target, JOBS.api_version, JOBS.kind, action)))
