"""A flow that was submitted: wait for it, read its results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from volcano.api.core import Pod
from volcano.api.errors import AlreadyExists, NotFound
from volcano.api.flow import JobFlow
from volcano.api.meta import Key
from volcano.api.scheme import find_resource_type
from volcano.machinery.client import Client
from volcano.machinery.clock import SystemClock, wait_blocking
from volcano.machinery.kubeconfig import load_endpoint_or_embedded
from volcano.machinery.one_shot import OneShot, finish

if TYPE_CHECKING:
    from volcano.flow.flow import Flow, Step

POLL_SECONDS: Final = 0.2


class FlowFailed(RuntimeError):
    """The flow ended Failed; the message says which steps did."""


class RunningFlow:
    """A handle on a submitted flow."""

    def __init__(self, flow: Flow, client: Client) -> None:
        self._flow, self._client = flow, client
        self._key = Key(flow.namespace, flow.name)

    @property
    def phase(self) -> str:
        """Pending, Running, Succeed, Failed, Terminating."""
        return finish(self._client.get(JobFlow, self._key)).status.state.phase or "Pending"

    def wait(self, *, seconds: float = 3600.0) -> dict[str, Any]:
        """The results of all `call` steps, by name; FlowFailed or TimeoutError otherwise."""
        clock = SystemClock()
        end = clock.monotonic() + seconds
        while clock.monotonic() < end:
            found = finish(self._client.get(JobFlow, self._key)).status
            if found.state.phase == "Succeed":
                return self.results()
            if found.state.phase == "Failed":
                bad = ", ".join([*found.failed_jobs, *found.terminated_jobs]) or "a step"
                raise FlowFailed(f"flow {self._key}: {bad} did not complete")
            wait_blocking(POLL_SECONDS)
        raise TimeoutError(f"flow {self._key} has not ended after {seconds} s")

    def results(self) -> dict[str, Any]:
        """What `call` steps have returned so far."""
        found = {}
        for name, step in self._flow.steps.items():
            message = self._message(step) if step.has_result else None
            if message:
                found[name] = msgspec.json.decode(message)
        return found

    def delete(self) -> None:
        """Remove the flow, its jobs and its templates."""
        for body in reversed(self._flow.objects()):
            row = find_resource_type("flow.volcano.sh", body["kind"])
            assert row is not None, f"{body['kind']} is in the scheme"
            try:
                finish(self._client.delete(row, Key(self._flow.namespace, body["metadata"]["name"])))
            except NotFound:
                continue

    def _message(self, step: Step) -> str | None:
        key = Key(self._flow.namespace, f"{self._flow.job_name(step)}-main-0")
        try:
            pod = finish(self._client.get(Pod, key))
        except NotFound:
            return None
        ended = [status.state.terminated for status in pod.status.container_statuses]
        return next((each.message for each in ended if each is not None), None)


def submit(flow: Flow, *, kubeconfig: str | None = None) -> RunningFlow:
    """All or nothing: if one object is refused, those already made are removed again."""
    client = Client(OneShot(load_endpoint_or_embedded(kubeconfig)), agent="volcano-flow")
    running = RunningFlow(flow, client)
    made = []
    try:
        for body in flow.objects():
            row = find_resource_type("flow.volcano.sh", body["kind"])
            assert row is not None, f"{body['kind']} is in the scheme"
            finish(client.create(row, body))
            made.append((row, Key(flow.namespace, body["metadata"]["name"])))
    except Exception as error:
        for row, key in reversed(made):
            finish(client.delete(row, key))
        if isinstance(error, AlreadyExists):
            raise AlreadyExists(f"{error.message}; delete the flow first, or choose another name") from error
        raise
    return running
