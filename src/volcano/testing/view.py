"""A running system as a test sees it: the virtual one, or a real cluster."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from volcano.api.batch import Job
from volcano.api.core import Pod
from volcano.api.indexes import PODS_BY_JOB
from volcano.api.manifests import load_documents
from volcano.api.meta import JSON, Key, Resource
from volcano.api.scheduling import PodGroup, Queue
from volcano.api.scheme import ResourceType, find_resource_type, resource_type
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock
from volcano.machinery.world import Change, Mirror

R = TypeVar("R", bound=Resource)
T = TypeVar("T")
POLL_INTERVAL = timedelta(milliseconds=50)
WATCHED: tuple[type[Resource], ...] = (Job, Pod, PodGroup, Queue)


class SystemView:
    """A client, a mirror of the main kinds, and waiting."""

    def __init__(
        self, client: Client, clock: Clock, *, namespace: str = "default", poll_interval: timedelta = POLL_INTERVAL
    ) -> None:
        self.client, self.clock, self.namespace = client, clock, namespace
        self.mirror = Mirror(clock.now, PODS_BY_JOB)
        self._poll_interval = poll_interval
        self._last_change = clock.now()
        for kind in WATCHED:
            self.mirror.listen(kind, self._note_change)

    async def apply(self, manifest: str | Path | JSON, *, namespace: str = "") -> list[JSON]:
        """Create every object of a manifest (a path, YAML text, or an object) in order."""
        if isinstance(manifest, dict):
            documents = [manifest]
        else:
            is_path = isinstance(manifest, Path) or "\n" not in manifest
            text = Path(manifest).read_bytes() if is_path else str(manifest)  # noqa: ASYNC240 - a test's small file
            documents = load_documents(text)
        made = []
        for document in documents:
            resource = find_resource_type(document["apiVersion"].rpartition("/")[0], document["kind"])
            assert resource is not None, f"{document['kind']} is in the scheme"
            metadata = dict(document.get("metadata") or {})
            if resource.namespaced:
                metadata.setdefault("namespace", namespace or self.namespace)
            body = await self.client.create(resource, {**document, "metadata": metadata})
            made.append(msgspec.json.decode(body))
            await self._seen(resource, made[-1])
        return made

    async def _seen(self, resource: ResourceType, made: JSON) -> None:
        """Wait until the mirror has what was created."""
        key = Key(made["metadata"].get("namespace", ""), made["metadata"]["name"])
        kind = next((each for each in WATCHED if resource_type(each) == resource), None)
        if kind is not None:
            await self.until(lambda: self.mirror.get(kind, key) is not None)

    async def until(
        self, condition: Callable[[], Any], *, within: timedelta = timedelta(minutes=10), why: str = ""
    ) -> None:
        """Wait until a condition holds; past the limit, an AssertionError that shows the state of the system."""
        end = self.clock.now() + within
        while not condition():
            if self.clock.now() > end:
                raise AssertionError(f"not within {within}: {why or condition}\n{self.summary()}")
            await self.clock.sleep(self._poll_interval)

    async def until_answer(
        self,
        ask: Callable[[], Awaitable[T]],
        holds: Callable[[T], Any],
        *,
        within: timedelta = timedelta(minutes=1),
    ) -> T:
        """Poll until the answer satisfies `holds`: for objects that the mirror does not have."""
        end = self.clock.now() + within
        while not holds(answer := await ask()):
            if self.clock.now() > end:
                raise AssertionError(f"not within {within}, the last answer is {answer}\n{self.summary()}")
            await self.clock.sleep(self._poll_interval)
        return answer

    async def settle(
        self, quiet: timedelta = timedelta(seconds=5), *, within: timedelta = timedelta(minutes=10)
    ) -> None:
        """Wait until no object of the namespace has changed for so long, counted from now at the earliest."""
        begun = self.clock.now()
        while (left := max(begun, self._last_change) + quiet - self.clock.now()) > timedelta(0):
            if self.clock.now() > begun + within:
                raise AssertionError(f"objects of {self.namespace} still change after {within}\n{self.summary()}")
            await self.clock.sleep(left)

    def _note_change(self, change: Change[Any]) -> None:
        if change.object.namespace == self.namespace:
            self._last_change = self.clock.now()

    def get(self, kind: type[R], name: str, namespace: str = "") -> R | None:
        return self.mirror.get(kind, Key((namespace or self.namespace) if resource_type(kind).namespaced else "", name))

    def job(self, name: str, namespace: str = "") -> Job:
        found = self.get(Job, name, namespace)
        assert found is not None, f"there is no job {name}"
        return found

    def phase(self, name: str, namespace: str = "") -> str:
        found = self.get(Job, name, namespace)
        return found.status.state.phase if found is not None else ""

    def pods(self, job: str, namespace: str = "") -> list[Pod]:
        return self.mirror.where(Pod, "job", f"{namespace or self.namespace}/{job}")

    def groups(self) -> list[PodGroup]:
        return self.mirror.all(PodGroup)

    async def delete(self, kind: type[Resource], name: str, namespace: str = "") -> None:
        row = resource_type(kind)
        await self.client.delete(row, Key((namespace or self.namespace) if row.namespaced else "", name))

    async def patch(self, kind: type[Resource], name: str, body: JSON, *, subresource: str = "") -> None:
        row = resource_type(kind)
        await self.client.patch(row, Key(self.namespace if row.namespaced else "", name), body, subresource=subresource)

    def summary(self) -> str:
        """The state of jobs, groups and pods, for a failing test to show."""
        lines = [f"at {self.clock.now():%H:%M:%S}"]
        for job in self.mirror.all(Job):
            state = job.status.state
            lines.append(f"  job {job.key} {state.phase} {state.reason} {state.message}")
        lines += [
            f"  podgroup {g.key} {g.phase} {g.annotations.get('scheduling.volcano.sh/why', '')}" for g in self.groups()
        ]
        lines += [f"  pod {p.key} {p.status.phase} on {p.spec.node_name or '-'}" for p in self.mirror.all(Pod)[:40]]
        return "\n".join(lines)
