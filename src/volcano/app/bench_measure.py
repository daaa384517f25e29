"""What `volcano bench` measures on a cluster: gangs of one shape, from the first submit to the last bind and start.

The objects live in a namespace of their own, which is deleted afterwards.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import re
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Final

import msgspec

from volcano.api.batch import Job
from volcano.api.core import Namespace, Pod
from volcano.api.errors import ApiError, NotFound
from volcano.api.meta import JSON, Key
from volcano.api.scheme import resource_type
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock
from volcano.machinery.informer import Informer
from volcano.machinery.transport import Request
from volcano.machinery.world import Change, Mirror

MAX_PODS_PER_SHAPE: Final = 100_000
MAX_SUBMITTERS: Final = 32
LOOK_AGAIN: Final = timedelta(milliseconds=50)
SHAPE: Final = re.compile(r"([1-9]\d{0,5})x([1-9]\d{0,5})")
COUNTED: Final = re.compile(r"^apiserver_request_total\{(.*)\} (\S+)$", re.M)
LABEL: Final = re.compile(r'(\w+)="([^"]*)"')
NOT_OF_JOBS: Final = frozenset({"events", "leases", "nodes", "nodes/status", "namespaces", "serviceaccounts"})
"""Requests for these are made without jobs too: heartbeats, and what a new namespace causes."""
READS: Final = frozenset({"WATCH", "LIST", "CONNECT", "GET"})


class Unmeasured(Exception):
    """The measurement did not come to its end; the message says what was missing."""


class BenchShape(msgspec.Struct, frozen=True):
    """So many jobs, each a gang of so many pods."""

    jobs: int
    pods: int

    def __str__(self) -> str:
        return f"{self.jobs}x{self.pods}"

    @property
    def total(self) -> int:
        return self.jobs * self.pods


class BenchPod(msgspec.Struct, frozen=True):
    """What each pod asks for."""

    image: str
    cpu: str
    memory: str
    queue: str


class ShapeFigures(msgspec.Struct, frozen=True, rename="camel"):
    """Seconds are on the clock of this machine, from the first submit or from when a pod was seen to exist."""

    shape: str
    pods: int
    submit_seconds: float
    bound_seconds: float
    started_seconds: float
    pods_per_second: float  # to the last bind
    create_to_bind_p50_seconds: float
    create_to_bind_p99_seconds: float
    writes_per_pod: float | None  # by the API server's own count; None where it may not be read


def parse_shape(text: str) -> BenchShape:
    found = SHAPE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no shape; write jobs x pods, such as 100x10")
    shape = BenchShape(int(found[1]), int(found[2]))
    if shape.total > MAX_PODS_PER_SHAPE:
        raise ValueError(f"{text!r} has {shape.total} pods; at most {MAX_PODS_PER_SHAPE} are measured at once")
    return shape


@contextlib.asynccontextmanager
async def bench_namespace(client: Client, name: str) -> AsyncIterator[str]:
    """Made for the measurement and deleted with all that is in it, also after an error or Ctrl-C."""
    await client.create(resource_type(Namespace), {"metadata": {"name": name}})
    try:
        yield name
    finally:
        with contextlib.suppress(NotFound):
            await asyncio.shield(client.delete(resource_type(Namespace), Key("", name)))


class _Seen:
    """When each pod was first seen to exist, to have a node, and to have started."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.created: dict[str, float] = {}
        self.bound: dict[str, float] = {}
        self.started: dict[str, float] = {}

    def take(self, change: Change[Pod]) -> None:
        pod = change.new
        if pod is None:
            return
        now = self._clock.monotonic()
        self.created.setdefault(pod.name, now)
        if pod.spec.node_name:
            self.bound.setdefault(pod.name, now)
        if pod.status.phase in ("Running", "Succeeded"):
            self.started.setdefault(pod.name, now)


class BenchRun:
    """Measures shapes one after the other in one namespace."""

    def __init__(self, client: Client, clock: Clock, namespace: str, pod: BenchPod, limit_seconds: float) -> None:
        self._client, self._clock, self._namespace = client, clock, namespace
        self._pod, self._limit_seconds = pod, limit_seconds

    async def measure(self, shape: BenchShape, progress: Callable[[int, int], None]) -> ShapeFigures:
        """Raises Unmeasured where not all pods were bound and started in time."""
        seen = _Seen(self._clock)
        mirror = Mirror(self._clock.now)
        mirror.listen(Pod, seen.take)
        informer = Informer(self._client, mirror, self._clock, Pod, namespace=self._namespace, on_error=lambda *_: None)
        following = asyncio.ensure_future(informer.run())
        try:
            await informer.synced()
            return await self._measure(shape, seen, progress)
        finally:
            await self._delete_jobs(shape)
            await self._until(lambda: not mirror.all(Pod), "its pods are gone")
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    async def _measure(self, shape: BenchShape, seen: _Seen, progress: Callable[[int, int], None]) -> ShapeFigures:
        before, begun = await self._writes_so_far(), self._clock.monotonic()
        numbers = iter(range(shape.jobs))

        async def submit() -> None:
            for number in numbers:
                await self._client.create(resource_type(Job), self._job(shape, number))

        async with asyncio.TaskGroup() as group:
            for _ in range(min(MAX_SUBMITTERS, shape.jobs)):
                group.create_task(submit())
        submitted = self._clock.monotonic()

        def all_started() -> bool:
            progress(len(seen.started), shape.total)
            return len(seen.started) >= shape.total and len(seen.bound) >= shape.total

        await self._until(all_started, f"all {shape.total} pods have started", shape)
        after = await self._writes_so_far()
        waits = sorted(seen.bound[name] - seen.created[name] for name in seen.bound)
        bound = max(seen.bound.values()) - begun
        return ShapeFigures(
            shape=str(shape),
            pods=shape.total,
            submit_seconds=submitted - begun,
            bound_seconds=bound,
            started_seconds=max(seen.started.values()) - begun,
            pods_per_second=shape.total / max(bound, 1e-6),
            create_to_bind_p50_seconds=_quantile(waits, 0.5),
            create_to_bind_p99_seconds=_quantile(waits, 0.99),
            writes_per_pod=None if before is None or after is None else (after - before) / shape.total,
        )

    def _job(self, shape: BenchShape, number: int) -> JSON:
        requests = {"cpu": self._pod.cpu, "memory": self._pod.memory}
        container = {
            "name": "main", "image": self._pod.image, "command": ["true"], "resources": {"requests": requests},
        }  # fmt: skip
        task = {
            "name": "bench", "replicas": shape.pods,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        }  # fmt: skip
        spec = {
            "minAvailable": shape.pods, "schedulerName": "volcano", "queue": self._pod.queue, "tasks": [task],
        }  # fmt: skip
        return {"metadata": {"name": _job_name(shape, number), "namespace": self._namespace}, "spec": spec}

    async def _delete_jobs(self, shape: BenchShape) -> None:
        numbers = iter(range(shape.jobs))

        async def delete() -> None:
            for number in numbers:
                with contextlib.suppress(NotFound):
                    key = Key(self._namespace, _job_name(shape, number))
                    await self._client.delete(resource_type(Job), key, {"propagationPolicy": "Background"})

        async with asyncio.TaskGroup() as group:
            for _ in range(min(MAX_SUBMITTERS, shape.jobs)):
                group.create_task(delete())

    async def _until(self, holds: Callable[[], bool], what: str, shape: BenchShape | None = None) -> None:
        end = self._clock.monotonic() + self._limit_seconds
        while not holds():
            if self._clock.monotonic() > end:
                why = await self._why(shape) if shape is not None else ""
                raise Unmeasured(f"it was not so after {self._limit_seconds:g} s that {what}{why}")
            await self._clock.sleep(LOOK_AGAIN)

    async def _why(self, shape: BenchShape) -> str:
        """What the first job that waits says of itself."""
        with contextlib.suppress(ApiError):
            for number in range(min(shape.jobs, MAX_SUBMITTERS)):
                job = await self._client.get(Job, Key(self._namespace, _job_name(shape, number)))
                if job.status.state.phase == "Pending":
                    return f"; {job.name} waits: {job.status.state.message or job.status.state.reason or 'no reason'}"
        return ""

    async def _writes_so_far(self) -> int | None:
        """As the API server counts them, of all its clients; None where the caller may not read its metrics."""
        try:
            text = (await self._client.raw(Request("GET", "/metrics"))).body.decode(errors="replace")
        except (ApiError, ConnectionError):
            return None
        return writes_in(text)


def writes_in(metrics: str) -> int | None:
    """Writes for jobs and pods in a page of Prometheus metrics; None where the page has no such counter."""
    found = COUNTED.findall(metrics)
    if not found:
        return None
    total = 0
    for labels, value in found:
        fields = dict(LABEL.findall(labels))
        subresource = fields.get("subresource")
        resource = fields.get("resource", "") + (f"/{subresource}" if subresource else "")
        if fields.get("verb") not in READS and resource and resource not in NOT_OF_JOBS:
            total += int(float(value))
    return total


def _job_name(shape: BenchShape, number: int) -> str:
    return f"bench-{shape}-{number}"


def _quantile(ordered: list[float], share: float) -> float:
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
