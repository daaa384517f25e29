"""Jobs in a pure world: builders, a scheduler that lets gangs in, and a kubelet that the test controls."""

from __future__ import annotations

import base64
from datetime import timedelta
from typing import Any

from volcano.api.batch import Job
from volcano.api.core import FINISHED_POD_PHASES, Pod, Secret
from volcano.api.meta import JSON
from volcano.api.scheduling import PodGroup
from volcano.api.scheme import resource_type
from volcano.controllers.job import JobController
from volcano.machinery.plan import Create, EnsureSecret, Patch, Plan, Step, Together
from volcano.testing.pure_world import PureWorld

HOLD = "tests/kubelet"  # keeps a deleted pod until `reap`
POD, GROUP, SECRET = resource_type(Pod), resource_type(PodGroup), resource_type(Secret)


def a_task(name: str = "worker", replicas: int = 1, **more: Any) -> JSON:
    template = more.pop("template", None) or {
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "any", "command": ["true"]}]}
    }
    more.setdefault("minAvailable", replicas)
    return {"name": name, "replicas": replicas, "template": template, **more}


def a_job(*tasks: JSON, name: str = "j", metadata: JSON | None = None, **spec: Any) -> JSON:
    """As admission would store it."""
    tasks = tasks or (a_task(replicas=2),)
    least = sum(task.get("minAvailable") or 0 for task in tasks)
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "uid": f"uid-{name}", **(metadata or {})},
        "spec": {
            "minAvailable": least,
            "schedulerName": "volcano",
            "queue": "default",
            "tasks": list(tasks),
            "maxRetry": 3,
            **spec,
        },
    }


def a_queue(name: str = "default", **spec: Any) -> JSON:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": 1, **spec},
        "status": {"state": "Open"},
    }


def a_command(action: str, *, name: str = "", job: str = "j") -> JSON:
    return {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {"name": name or f"{job}-{action.lower()}"},
        "action": action,
        "target": {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "name": job,
            "uid": f"uid-{job}",
            "controller": True,
        },
    }


def policy(action: str, *events: str, **more: Any) -> JSON:
    return {"action": action, **({"events": list(events)} if events else {}), **more}


class JobWorld(PureWorld):
    """A pure world with one job controller. With `graceful`, deleted pods stay until `reap`."""

    def __init__(self, *objects: JSON, graceful: bool = False, name: str = "j", **options: Any) -> None:
        self.graceful, self.name = graceful, name
        self.phases: list[str] = []
        self.statuses: list[JSON] = []
        self.log: list[Step] = []
        super().__init__(a_queue(), *objects, controllers=[JobController(**options)])

    # -- the parts that the pure world leaves out -----------------------------------------------------------------
    def _write(self, step: Step) -> None:
        if isinstance(step, EnsureSecret):
            if (SECRET, step.key) not in self.objects:
                made = {name: base64.b64encode(value).decode() for name, value in step.make().items()}
                metadata: JSON = {"name": step.key.name, "namespace": step.key.namespace}
                super()._write(Create(SECRET, {"metadata": metadata, "type": step.type, "data": made}))
            return
        self.log.append(step)
        super()._write(step)
        if isinstance(step, Patch) and step.subresource == "status":
            self._note()

    def _note(self) -> None:
        status = self.raw(Job, self.name).get("status", {})
        phase = status.get("state", {}).get("phase", "")
        self.statuses.append(status)
        if not self.phases or self.phases[-1] != phase:
            self.phases.append(phase)

    def _create(self, step: Create) -> None:
        if step.resource == POD and self.graceful:
            metadata = {**step.body["metadata"], "finalizers": [HOLD]}
            step = Create(step.resource, {**step.body, "metadata": metadata}, step.exists_ok)
        super()._create(step)

    # -- looking ----------------------------------------------------------------------------------------------------
    @property
    def job(self) -> Job:
        job = self.get(Job, self.name)
        assert job is not None
        return job

    @property
    def phase(self) -> str:
        return self.job.status.state.phase

    @property
    def group(self) -> PodGroup | None:
        return self.get(PodGroup, f"{self.name}-uid-{self.name}")

    def pods(self) -> dict[str, str]:
        """Names and phases of pods that are not being deleted."""
        return {pod.name: pod.status.phase or "Pending" for pod in self.all(Pod) if not pod.is_deleting}

    def dying(self) -> set[str]:
        return {pod.name for pod in self.all(Pod) if pod.is_deleting}

    # -- the rest of the cluster --------------------------------------------------------------------------------------
    def enqueue(self) -> JobWorld:
        """The scheduler lets every gang in."""
        for group in self.all(PodGroup):
            if group.status.phase in ("", "Pending"):
                self.change(PodGroup, group.name, {"status": {"phase": "Inqueue"}})
        self.settle()
        return self

    def set_phase(self, phase: str, *names: str, exit_code: int | None = None, restarts: int = 0) -> JobWorld:
        """The kubelet reports; all pods that could when none is named."""
        for pod in self.all(Pod):
            if pod.name not in names and (names or pod.is_finished or pod.is_deleting):
                continue
            state: JSON = {}
            if phase in FINISHED_POD_PHASES:
                code = exit_code if exit_code is not None else (1 if phase == "Failed" else 0)
                state = {"terminated": {"exitCode": code, "finishedAt": self.now.isoformat()}}
            status = {"name": "main", "ready": phase == "Running", "restartCount": restarts, "state": state}
            self.change(Pod, pod.name, {"status": {"phase": phase, "containerStatuses": [status]}})
        self.settle()
        return self

    def run(self, *names: str) -> JobWorld:
        return self.set_phase("Running", *names)

    def fail(self, *names: str, exit_code: int = 1) -> JobWorld:
        return self.set_phase("Failed", *names, exit_code=exit_code)

    def succeed(self, *names: str) -> JobWorld:
        return self.set_phase("Succeeded", *names)

    def evict(self, *names: str) -> JobWorld:
        """Delete pods immediately, as another client would."""
        for name in names:
            self.delete(Pod, name)
            if self.graceful:
                self.change(Pod, name, {"metadata": {"finalizers": []}})
        self.settle()
        return self

    def reap(self) -> JobWorld:
        """The kubelet has ended the pods that were deleted."""
        for pod in self.all(Pod):
            if pod.is_deleting:
                self.change(Pod, pod.name, {"metadata": {"finalizers": []}})
        self.settle()
        return self

    def command(self, action: str) -> JobWorld:
        self.put(a_command(action, name=f"c{self.writes}-{action.lower()}"))
        self.settle()
        return self

    def wait(self, seconds: float = 2) -> JobWorld:
        self.advance(timedelta(seconds=seconds))
        return self

    def scale(self, **replicas: int) -> JobWorld:
        """New replicas for tasks, with minAvailable following where it must."""
        spec = self.raw(Job, self.name)["spec"]
        tasks = [{**task, "replicas": replicas.get(task["name"], task["replicas"])} for task in spec["tasks"]]
        tasks = [{**task, "minAvailable": min(task["minAvailable"], task["replicas"])} for task in tasks]
        least = min(spec["minAvailable"], sum(task["replicas"] for task in tasks))
        self.change(Job, self.name, {"spec": {"tasks": tasks, "minAvailable": least}})
        self.settle()
        return self

    def started(self) -> JobWorld:
        """From submission to all pods running."""
        self.settle()
        return self.enqueue().run().wait()


def flat(plan: Plan) -> list[Step]:
    """The steps of a plan, those side by side included."""
    return [inner for step in plan for inner in (flat(step.steps) if isinstance(step, Together) else [step])]
