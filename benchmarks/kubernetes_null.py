"""A null scheduler and controller for kubernetes_throughput.py: the writes that each job needs, and nothing else.

It follows nothing and decides nothing: it sends PodGroup, `Inqueue`, pods and binds of a job as soon as the write
before them is answered, with the bodies that the job controller makes. What it reaches is the bound of the machine for
any scheduler that writes the same objects.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterable
from datetime import UTC, datetime

from volcano.api.batch import Job
from volcano.api.core import Pod
from volcano.api.decode import decode, decode_object
from volcano.api.meta import JSON, Key
from volcano.api.scheduling import PodGroup, Queue
from volcano.api.scheme import resource_type
from volcano.controllers.job import JobController
from volcano.machinery.client import Client
from volcano.machinery.plan import Create, Plan, Together
from volcano.machinery.world import frozen_world

WRITES_AT_A_TIME = 64
PODS, GROUPS = resource_type(Pod), resource_type(PodGroup)


class NullComponents:
    """Makes the writes for jobs that were created; pods go to the nodes in turn."""

    def __init__(self, client: Client, nodes: Iterable[str]) -> None:
        self._client = client
        self._slots = asyncio.Semaphore(WRITES_AT_A_TIME)
        self._nodes = itertools.cycle(nodes)
        self._controller = JobController()

    async def run(self, created: bytes) -> None:
        """From the answer to the Job's creation to the binds of all its pods."""
        job = decode(Job, created)
        body = _creates(self._decide(job))[0].body
        async with self._slots:
            group = decode(PodGroup, await self._client.create(GROUPS, body))
        async with self._slots:
            guarded = {"metadata": {"uid": group.uid}, "status": {"phase": "Inqueue"}}
            group = decode(PodGroup, await self._client.patch(GROUPS, group.key, guarded))
        await asyncio.gather(*(self._place(each.body) for each in _creates(self._decide(job, group))))

    async def _place(self, body: JSON) -> None:
        async with self._slots:
            pod = decode(Pod, await self._client.create(PODS, body))
        target = {"apiVersion": "v1", "kind": "Node", "name": next(self._nodes)}
        metadata = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
        async with self._slots:
            await self._client.create_sub(PODS, Key(pod.namespace, pod.name), "binding", binding)

    def _decide(self, job: Job, *others: PodGroup) -> Plan:
        queue = decode_object(Queue, {"metadata": {"name": "default"}, "status": {"state": "Open"}})
        world = frozen_world(job, queue, *others, now=datetime.now(UTC), indexes=self._controller.indexes)
        return self._controller.decide(job.key, world, ())


def _creates(plan: Plan) -> list[Create]:
    steps = itertools.chain.from_iterable(step.steps if isinstance(step, Together) else (step,) for step in plan)
    return [step for step in steps if isinstance(step, Create)]
