"""CallerView: what one caller may see now, the only way by which pages read objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import Final, TypeVar
from weakref import WeakKeyDictionary

from volcano.api.batch import Job
from volcano.api.core import Node, Pod
from volcano.api.errors import Forbidden, NotFound
from volcano.api.meta import Key, Resource
from volcano.api.pods.stranded import PodShape
from volcano.api.quantity import Quantity
from volcano.api.scheduling import PodGroup
from volcano.api.scheme import resource_type
from volcano.dashboard.callers import Caller, RightsUsed, Sight
from volcano.dashboard.job_rows import JobChange, JobRow, JobRows
from volcano.dashboard.loads import NodeLoads, requested_by
from volcano.dashboard.pod_shapes import DeviceShapes
from volcano.dashboard.starts_ahead import StartsAhead
from volcano.dashboard.watched import BY_JOB, BY_NODE, STARTS, Watched

R = TypeVar("R", bound=Resource)
NOTHING: Final = Sight(False)


class Shared:
    """What is computed from the watched objects once for all callers."""

    def __init__(self, watched: Watched) -> None:
        self.watched = watched
        self.jobs = JobRows(watched)
        self.loads = NodeLoads(watched)
        self.device_shapes = DeviceShapes(watched)
        self._starts: WeakKeyDictionary[Caller, StartsAhead] = WeakKeyDictionary()

    def starts_of(self, caller: Caller) -> StartsAhead:
        found = self._starts.get(caller)
        if found is None:
            told = partial(self.watched.count, STARTS)
            found = self._starts[caller] = StartsAhead(caller.client, self.watched.clock, told)
        return found

    async def close(self) -> None:
        for each in list(self._starts.values()):
            await each.close()


class CallerView:
    def __init__(self, known: Shared, caller: Caller) -> None:
        self._known, self.caller, self.rights = known, caller, RightsUsed(caller)
        self.watched = known.watched
        self.jobs_sight = NOTHING

    @property
    def starts(self) -> StartsAhead:
        return self._known.starts_of(self.caller)

    @property
    def now(self) -> datetime:
        return self.watched.now

    async def sight(self, kind: type[Resource]) -> Sight:
        def namespaces() -> set[str]:
            return {*self._known.jobs.namespaces(), *(each.namespace for each in self.watched.all(kind))}

        return await self.rights.sight(kind, namespaces)

    async def job_rows(self) -> list[JobRow]:
        sight = self.jobs_sight = await self.rights.sight(Job, self._known.jobs.namespaces)
        rows = self._known.jobs.rows.values()
        return list(rows) if sight.everything else [row for row in rows if sight.sees(row.namespace)]

    def changes(self) -> list[JobChange]:
        """Call `job_rows` first: it finds out which namespaces may be seen."""
        return list(self._known.jobs.changes)

    async def nodes(self) -> list[Node]:
        return await self.all(Node)

    async def all(self, kind: type[R]) -> list[R]:
        sight = await self.sight(kind)
        if sight.sees_nothing:
            return []
        found = self.watched.all(kind)
        return found if sight.everything else [each for each in found if sight.sees(each.namespace)]

    async def get(self, kind: type[R], key: Key) -> R:
        """NotFound where there is none, Forbidden where the caller may not see it."""
        row = resource_type(kind)
        allowed = await self.rights.may("get", row, key.namespace) or await self.rights.may("list", row, key.namespace)
        if not allowed:
            raise Forbidden(f"{self.caller.name} may not get {row.plural} {key}")
        found = self.watched.get(kind, key)
        if found is None:
            raise NotFound(f"{row.plural} {key} is not there")
        return found

    async def loads(self, nodes: Iterable[Node]) -> tuple[Mapping[str, Mapping[str, Quantity]], bool]:
        """What pods request by node, and whether all pods are counted or only those that the caller may see."""
        sight = await self.sight(Pod)
        if sight.everything:
            return {node.name: self._known.loads.of(node.name) for node in nodes}, True
        if sight.sees_nothing:
            return {}, False
        return requested_by(pod for pod in self.watched.all(Pod) if sight.sees(pod.namespace)), False

    def device_shapes(self) -> list[PodShape]:
        """Of all pods: only for who may see all of them."""
        return self._known.device_shapes.most_frequent()

    async def may_list_pods(self, namespace: str) -> bool:
        return await self.rights.may("list", resource_type(Pod), namespace)

    async def pods_of_job(self, key: Key) -> list[Pod]:
        return self.watched.where(Pod, BY_JOB, str(key)) if await self.may_list_pods(key.namespace) else []

    async def group_of(self, job: Job) -> PodGroup | None:
        """The PodGroup that belongs to a Job, unless there is none or the caller may not see it."""
        if not await self.rights.may("list", resource_type(PodGroup), job.namespace):
            return None
        return next(iter(self.watched.where(PodGroup, "owner", job.uid)), None)

    async def pods_on(self, node: str) -> list[Pod]:
        sight = await self.sight(Pod)
        return [pod for pod in self.watched.where(Pod, BY_NODE, node) if sight.sees(pod.namespace)]
