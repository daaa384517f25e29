"""The controller manager, killed at any write of a job's life and started again, ends where it would have ended.

The whole system on virtual time: API server, scheduler, nodes and Kubernetes' controllers live on while Volcano's
controllers are killed, by the real runner's own writes: once before the server hears of it, once after it took effect.
A story is told once undisturbed and then again for each of its writes, on the same system, in a namespace of its own.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from tests.stories.builders import a_command, a_job, a_task, policy
from tests.system.killable_controllers import WITHOUT_CONTROLLERS, ControllerManager
from volcano.api.batch import JOB_VERSION_KEY, Job
from volcano.api.core import ConfigMap, PersistentVolumeClaim, Pod, Secret, Service
from volcano.api.flow import JobFlow
from volcano.api.meta import Key
from volcano.api.scheduling import PodGroup
from volcano.api.scheme import resource_type
from volcano.machinery.world import Change
from volcano.testing.system import VirtualSystem, on_virtual_time

FLOW = "flow.volcano.sh/v1alpha1"
EVERY_WRITE = bool(os.environ.get("VOLCANO_EVERY_WRITE"))
"""Kill at every write of every story, instead of every write of three of them and every third of the others."""
LONGEST = 1000
LIST_OF_KINDS = (PodGroup, Service, ConfigMap, Secret, PersistentVolumeClaim)


class Place:
    """One telling: a namespace, and every pod that was ever made in it."""

    def __init__(self, system: VirtualSystem, namespace: str) -> None:
        self.system, self.namespace = system, namespace
        self.made: Counter[tuple[str, str]] = Counter()
        self.stop = system.mirror.listen(Pod, self._pod)

    def _pod(self, change: Change[Pod]) -> None:
        pod = change.object
        if change.old is None and pod.namespace == self.namespace:
            self.made[pod.name, pod.annotations.get(JOB_VERSION_KEY, "")] += 1

    async def apply(self, *documents: dict[str, Any]) -> None:
        for document in documents:
            await self.system.apply(document, namespace=self.namespace)

    async def until(self, *phases: str, name: str = "demo") -> None:
        await self.system.until(lambda: self.system.phase(name, self.namespace) in phases, why=f"{name} {phases}")

    async def running(self, count: int) -> None:
        """So many pods are there and run, and the job has counted them."""

        def holds() -> bool:
            pods = self.pods
            status = self.job.status
            return len(pods) == count and all(pod.status.phase == "Running" for pod in pods) and status.running == count

        await self.system.until(holds, why=f"{count} pods run")

    @property
    def job(self) -> Job:
        return self.system.job("demo", self.namespace)

    @property
    def pods(self) -> list[Pod]:
        return [pod for pod in self.system.mirror.all(Pod) if pod.namespace == self.namespace]

    async def command(self, action: str) -> None:
        await self.apply(a_command(self.job, action))

    async def scale(self, replicas: int) -> None:
        body = [{"op": "replace", "path": "/spec/tasks/0/replicas", "value": replicas}]
        await self.system.client.patch(resource_type(Job), Key(self.namespace, "demo"), body, kind="json")

    async def end(self) -> dict[str, Any]:
        """What is there in the end, without times and names that are drawn."""
        jobs = [job for job in self.system.mirror.all(Job) if job.namespace == self.namespace]
        others = {kind.__name__: await self._names(kind) for kind in LIST_OF_KINDS}
        return {
            "made": dict(self.made),
            "pods": {
                pod.name: (pod.annotations.get(JOB_VERSION_KEY), pod.status.phase, pod.is_deleting) for pod in self.pods
            },
            "jobs": {job.name: _status(job) for job in jobs},
            **others,
        }

    async def _names(self, kind: Any) -> list[str]:
        found = (await self.system.client.list(kind, self.namespace)).items
        uids = [job.uid for job in self.system.mirror.all(Job)]
        names = (each.name for each in found)
        known = (next((name.replace(uid, "UID") for uid in uids if uid in name), name) for name in names)
        return sorted(re.sub(r"-pvc-\w+", "-pvc-DRAWN", name) for name in known)


def _status(job: Job) -> dict[str, Any]:
    status = msgspec.to_builtins(job.status)
    kept = (
        "minAvailable",
        "pending",
        "running",
        "succeeded",
        "failed",
        "terminating",
        "retryCount",
        "version",
        "taskStatusCount",
    )
    return {"phase": job.status.state.phase, **{name: status.get(name) for name in kept if status.get(name)}}


Story = Callable[[Place], Awaitable[None]]


async def completes(place: Place) -> None:
    await place.apply(a_job("demo", a_task(replicas=3, lasts="20s"), plugins={"svc": [], "env": []}))
    await place.until("Completed")


async def like_mpi(place: Place) -> None:
    done = [policy("CompleteJob", "TaskCompleted")]
    keys = ["--ssh-private-key=secret", "--ssh-public-key=public"]
    plugins = {"ssh": keys, "svc": [], "mpi": ["--master=mpimaster", "--worker=mpiworker", "--port=22"]}
    master, workers = a_task("mpimaster", lasts="20s", policies=done), a_task("mpiworker", replicas=2)
    await place.apply(a_job("demo", master, workers, plugins=plugins, policies=[policy("RestartJob", "PodEvicted")]))
    await place.until("Completed")


async def restarts_until_it_fails(place: Place) -> None:
    tasks = a_task("good", replicas=2), a_task("bad", lasts="10s", exits=1)
    await place.apply(a_job("demo", *tasks, policies=[policy("RestartJob", "PodFailed")], maxRetry=2))
    await place.until("Failed")


async def restarts_a_task(place: Place) -> None:
    tasks = (
        a_task("good", replicas=2, lasts="60s"),
        a_task("bad", lasts="10s", exits=1, policies=[policy("RestartTask", "PodFailed")]),
    )
    await place.apply(a_job("demo", *tasks, policies=[policy("CompleteJob", "TaskCompleted")], maxRetry=2))
    await place.until("Failed", "Completed")


async def suspended_and_resumed(place: Place) -> None:
    await place.apply(a_job("demo", a_task(replicas=2, lasts="60s")))
    await place.running(2)
    await place.command("AbortJob")
    await place.until("Aborted")
    await place.command("ResumeJob")
    await place.until("Completed")


async def scaled_up_and_down(place: Place) -> None:
    await place.apply(a_job("demo", a_task(replicas=2, minAvailable=1), minimum=1, plugins={"svc": []}))
    await place.running(2)
    await place.scale(4)
    await place.running(4)
    await place.scale(1)
    await place.running(1)


async def is_gone_after_its_time_to_live(place: Place) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    disk = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/any"}}
    claims = [{"mountPath": "/d", "volumeClaim": claim}]
    await place.apply(
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"of-{place.namespace}"}, "spec": disk}
    )
    await place.apply(a_job("demo", a_task(replicas=2, lasts="10s"), ttlSecondsAfterFinished=30, volumes=claims))
    await place.system.until(
        lambda: place.made and not place.system.get(Job, "demo", place.namespace) and not place.pods
    )


async def flows(place: Place) -> None:
    def template(name: str) -> dict[str, Any]:
        body = a_job(name, a_task(replicas=2, lasts="10s"))
        return {"apiVersion": FLOW, "kind": "JobTemplate", "metadata": {"name": name}, "spec": body["spec"]}

    steps = [{"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"]}}]
    flow = {
        "apiVersion": FLOW,
        "kind": "JobFlow",
        "metadata": {"name": "flow"},
        "spec": {"jobRetainPolicy": "retain", "flows": steps},
    }
    await place.apply(template("a"), template("b"), flow)
    key, deadline = Key(place.namespace, "flow"), place.system.clock.now() + timedelta(minutes=5)
    while (phase := (await place.system.client.get(JobFlow, key)).status.state.phase) != "Succeed":
        assert place.system.clock.now() < deadline, f"the flow is {phase}\n{place.system.summary()}"
        await place.system.clock.sleep(timedelta(milliseconds=500))


async def told(story: Story, system: VirtualSystem, namespace: str) -> dict[str, Any]:
    """Tell a story to its end, and clean up after it."""
    await system.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    place = Place(system, namespace)
    await story(place)
    await system.settle(timedelta(seconds=3))
    end = await place.end()
    for job in [job for job in system.mirror.all(Job) if job.namespace == namespace]:
        await system.delete(Job, job.name, namespace)
    await system.until(lambda: not place.pods)
    return end


async def killed_at_writes(system: VirtualSystem, story: Story, *, every: int) -> int:
    """How often it was killed: at each `every`-th write, from the first on before it, from the second on after it."""
    manager = ControllerManager(system)
    managing = asyncio.ensure_future(manager.run())
    try:
        await system.settle()
        expected = await told(story, system, "undisturbed")
        for before, first in ((True, 1), (False, min(every, 2))):
            for at in range(first, LONGEST, every):
                await system.settle(timedelta(seconds=1))
                with manager.dying(at, before=before) as kill:
                    end = await told(story, system, f"{'before' if before else 'after'}-{at}")
                if not kill.happened.is_set():
                    break
                assert end == expected, f"killed {'before' if before else 'after'} write {at}: {kill.writes[-1]}"
        return manager.starts - 1
    finally:
        managing.cancel()
        await asyncio.gather(managing, return_exceptions=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("story", "every", "least"),
    [
        (completes, 1, 30),
        (like_mpi, 1, 30),
        (is_gone_after_its_time_to_live, 1, 20),
        (restarts_until_it_fails, 3, 10),
        (restarts_a_task, 3, 10),
        (suspended_and_resumed, 3, 10),
        (scaled_up_and_down, 3, 10),
        (flows, 3, 15),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_controller_manager_killed_at_a_write_ends_where_it_would_have(story: Story, every: int, least: int) -> None:
    @on_virtual_time(settings=WITHOUT_CONTROLLERS)
    async def kills(system: VirtualSystem) -> None:
        killed = await killed_at_writes(system, story, every=1 if EVERY_WRITE else every)

        assert killed >= least
