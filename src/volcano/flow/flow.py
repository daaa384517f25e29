"""A Flow and its Steps as values, and the objects they become."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from volcano.api.dag import find_cycle
from volcano.api.meta import JSON
from volcano.api.names import dns_label_problems

if TYPE_CHECKING:
    from volcano.flow.running import RunningFlow

MAX_ARGUMENTS_BYTES: Final = 100_000
API_VERSION: Final = "flow.volcano.sh/v1alpha1"


class FlowError(ValueError):
    """The flow cannot be: a bad name, a step twice, a cycle."""


class Step:
    """One job of a flow. `a >> b` makes b wait for a; lists on either side mean each of them."""

    def __init__(self, flow: Flow, name: str, spec: JSON, *, has_result: bool) -> None:
        self.flow, self.name, self.spec, self.has_result = flow, name, spec, has_result
        self.after: list[Step] = []

    def __rshift__(self, later: Step | Iterable[Step]) -> Steps:
        return Steps([self]) >> later

    def __rrshift__(self, earlier: Iterable[Step]) -> Steps:
        return Steps(earlier) >> self

    def __repr__(self) -> str:
        return f"Step({self.name!r})"


class Steps(list[Step]):
    """Several steps side by side."""

    def __rshift__(self, later: Step | Iterable[Step]) -> Steps:
        following = Steps([later] if isinstance(later, Step) else later)
        for step in following:
            for earlier in self:
                if earlier.flow is not step.flow:
                    raise FlowError(f"{earlier.name} and {step.name} belong to different flows")
                if earlier not in step.after:
                    step.after.append(earlier)
        return following

    def __rrshift__(self, earlier: Iterable[Step]) -> Steps:
        return Steps(earlier) >> self


class Flow:
    """A named set of steps in one namespace."""

    def __init__(
        self, name: str, *, namespace: str = "default", queue: str = "default", keep_jobs: bool = True
    ) -> None:
        _check(name)
        self.name, self.namespace, self.queue, self.keep_jobs = name, namespace, queue, keep_jobs
        self.steps: dict[str, Step] = {}

    def command(
        self,
        name: str,
        command: Sequence[str],
        *,
        replicas: int = 1,
        image: str = "python:3",
        requests: JSON | None = None,
        env: dict[str, str] | None = None,
        retries: int = 0,
    ) -> Step:
        """A step that runs a command, in as many pods as `replicas` says, all at once or not at all."""
        return self._add(name, list(command), replicas, image, requests, env, retries, has_result=False)

    def call(
        self,
        name: str,
        function: str,
        /,
        *arguments: Any,
        image: str = "python:3",
        requests: JSON | None = None,
        env: dict[str, str] | None = None,
        retries: int = 0,
        **named: Any,
    ) -> Step:
        """A step that calls `module:name`, importable on the node. Arguments and result are JSON.

        The result is the container's termination message, so it is small: 4096 bytes at most.
        """
        module, colon, attribute = function.partition(":")
        if not (module and colon and attribute):
            raise FlowError(f"step {name}: {function!r} is not module:name")
        try:
            encoded = msgspec.json.encode({"arguments": arguments, "named": named}).decode()
        except (TypeError, msgspec.MsgspecError, RecursionError) as error:
            raise FlowError(f"step {name}: the arguments are not JSON: {error}") from error
        if len(encoded) > MAX_ARGUMENTS_BYTES:
            raise FlowError(
                f"step {name}: the arguments take {len(encoded)} bytes, at most {MAX_ARGUMENTS_BYTES} are allowed"
            )
        interpreter = sys.executable if Path(sys.executable).exists() else "python3"
        command = [interpreter, "-m", "volcano.flow.called", function, encoded]
        return self._add(name, command, 1, image, requests, env, retries, has_result=True)

    def job(self, name: str, spec: JSON) -> Step:
        """A step that is any Volcano JobSpec."""
        return self._put(Step(self, name, spec, has_result=False))

    def objects(self) -> list[JSON]:
        """The JobTemplates and the JobFlow; a cycle is refused here, and spelt out."""
        cycle = find_cycle({step.name: [each.name for each in step.after] for step in self.steps.values()})
        if cycle:
            raise FlowError(f"the steps wait for one another: {cycle}")
        return [*(self._template(step) for step in self.steps.values()), self._job_flow()]

    def submit(self, *, kubeconfig: str | None = None) -> RunningFlow:
        """Create the objects on the API server that the kubeconfig (or the usual rules) names."""
        from volcano.flow.running import submit

        return submit(self, kubeconfig=kubeconfig)

    def template_name(self, step: Step) -> str:
        return f"{self.name}-{step.name}"

    def job_name(self, step: Step) -> str:
        return f"{self.name}-{self.template_name(step)}"

    def _add(
        self,
        name: str,
        command: list[str],
        replicas: int,
        image: str,
        requests: JSON | None,
        env: dict[str, str] | None,
        retries: int,
        *,
        has_result: bool,
    ) -> Step:
        container: JSON = {
            "name": "main",
            "image": image,
            "command": command,
            "resources": {"requests": requests or {"cpu": "100m", "memory": "64Mi"}},
        }
        if env:
            container["env"] = [{"name": key, "value": value} for key, value in env.items()]
        template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
        spec: JSON = {
            "queue": self.queue,
            "minAvailable": replicas,
            "maxRetry": retries + 1,
            "tasks": [{"name": "main", "replicas": replicas, "template": template}],
        }
        if retries:
            spec["policies"] = [{"event": "PodFailed", "action": "RestartJob"}]
        return self._put(Step(self, name, spec, has_result=has_result))

    def _put(self, step: Step) -> Step:
        _check(step.name)
        if step.name in self.steps:
            raise FlowError(f"there is a step {step.name} already")
        if len(self.job_name(step)) > 57:  # pods are named after it, and a name has 63 letters
            raise FlowError(f"the names of flow and step are too long together: {self.job_name(step)}")
        self.steps[step.name] = step
        return step

    def _template(self, step: Step) -> JSON:
        metadata = {"name": self.template_name(step), "namespace": self.namespace}
        return {"apiVersion": API_VERSION, "kind": "JobTemplate", "metadata": metadata, "spec": step.spec}

    def _job_flow(self) -> JSON:
        flows = []
        for step in self.steps.values():
            flow: JSON = {"name": self.template_name(step)}
            if step.after:
                flow["dependsOn"] = {"targets": [self.template_name(each) for each in step.after]}
            flows.append(flow)
        return {
            "apiVersion": API_VERSION,
            "kind": "JobFlow",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": {"flows": flows, "jobRetainPolicy": "retain" if self.keep_jobs else "delete"},
        }


def _check(name: str) -> None:
    problems = dns_label_problems(name)
    if problems:
        raise FlowError(f"{name!r}: {problems[0]}")
