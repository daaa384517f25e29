"""What must hold after every commit of the API server, whatever goes wrong.

The observer reads the store's own log, so that it sees the truth and no component's idea of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from volcano.api.batch import FINISHED_PHASES, JOB_NAME_KEY, JOB_VERSION_KEY, Job
from volcano.api.core import FINISHED_POD_PHASES, Node, Pod
from volcano.api.decode import decode
from volcano.api.meta import Key, Resource
from volcano.api.pods.evictions import ReadEviction, eviction_of
from volcano.api.pods.requests import pod_requests
from volcano.api.quantity import parse_quantity
from volcano.api.scheduling import GROUP_NAME_ANNOTATION, WHY_ANNOTATION, PodGroup, Queue
from volcano.api.scheme import resource_type
from volcano.embedded.apiserver.store.contract import DELETED, LoggedChange, ObjectKey, Store
from volcano.machinery.clock import EPOCH
from volcano.testing.faults.gangs import GangBinds
from volcano.testing.faults.past import PastJob
from volcano.testing.faults.promises import TimePromises
from volcano.testing.faults.trace import Trace
from volcano.testing.faults.workload import Workload

KINDS: Final[dict[str, type[Resource]]] = {
    resource_type(kind).qualified: kind for kind in (Pod, Node, Job, PodGroup, Queue)
}
PODS: Final = resource_type(Pod).qualified
QUIET: Final = frozenset({"events", "leases.coordination.k8s.io"})
"""What changes without anything happening: heartbeats, and events about the past."""


PREEMPTOR_SECONDS: Final = 120.0
"""Within this time after an eviction the pod it was made for is bound: victims get 30 seconds to end."""


def group_of(pod: Pod) -> Key:
    return Key(pod.namespace, pod.annotations.get(GROUP_NAME_ANNOTATION, ""))


def decision_time(eviction: ReadEviction, now: float) -> float:
    """When the scheduler decided to evict, to the second; `now` is when the API server wrote it.

    In between a job may end, and the preemptor be bound in its room before the eviction is written.
    """
    decided = eviction.condition.last_transition_time if eviction.condition is not None else None
    return min(now, (decided - EPOCH).total_seconds()) if decided is not None else now


class Observer:
    """Follows every commit; what does not hold is in `violations`."""

    def __init__(self, workload: Workload, trace: Trace) -> None:
        self._workload, self._trace = workload, trace
        self.violations: list[str] = []
        self.objects: dict[ObjectKey, Any] = {}
        self.revisions: dict[ObjectKey, int] = {}
        self.changes = 0  # of anything but heartbeats and events
        self._newest = 0
        self._succeeded: dict[tuple[str, str, str], str] = {}  # (job's uid, version, pod's name) → pod's uid
        self._ran: dict[str, str] = {}  # flow jobs: name → uid
        self._is_calm = False
        self._is_disturbed = False  # from the first fault until the system is calm
        self._evicted: list[tuple[float, str, str]] = []  # when decided, pod, for whom; once the system is calm
        self._bound: dict[str, list[float]] = {}  # name of a pod → when it was bound; a job that retries has it again
        self._gangs = GangBinds(self._violated)
        self._promises: TimePromises | None = None
        if workload.is_timed:
            self._promises = TimePromises(self._violated, workload.estimates, workload.window)
        self.past_jobs: dict[str, PastJob] = {}  # all that ever were, by UID

    # -- input ---------------------------------------------------------------------------------------------------
    def follow(self, store: Store) -> None:
        """A server started on the disk: all that was acknowledged must be there; then every commit of it."""
        if store.revision < self._newest:
            self._violated(f"revision {self._newest} was acknowledged; the store starts at {store.revision}")
        present: set[ObjectKey] = set()
        for resource in store.resources():
            for stored in store.scan(resource):
                present.add(stored.key)
                known = self.revisions.get(stored.key, 0)
                if stored.revision < known:
                    self._violated(f"{stored.key} is at {stored.revision}; {known} was acknowledged")
                if stored.revision > known:
                    if self.revisions and stored.revision <= self._newest:
                        self._violated(f"{stored.key} was deleted, and is back at {stored.revision}")
                    self._take(stored.key, stored.revision, stored.raw)
        for key in [key for key in self.revisions if key not in present]:
            # A deletion that was committed and not acknowledged any more is newer than all that was.
            if store.revision <= self._newest:
                self._violated(f"{key} at revision {self.revisions[key]} is lost")
            self._drop(key)
        self._newest = store.revision
        store.subscribe(self._committed)

    def _committed(self, changes: Sequence[LoggedChange]) -> None:
        for change in changes:
            key = change.stored.key
            self._newest = max(self._newest, change.revision)
            if key.resource not in QUIET:
                self.changes += 1
                self._trace.add("", f"{change.revision} {change.kind} {key.resource} {key.namespace}/{key.name}")
            if change.kind == DELETED:
                self._drop(key)
            else:
                self._take(key, change.revision, change.stored.raw)
        if not self._is_disturbed:
            now = asyncio.get_running_loop().time()
            self._gangs.check(now)
            if self._promises is not None:
                self._promises.check(self._group, lambda: self.all(Pod), now)

    def _take(self, key: ObjectKey, revision: int, raw: bytes) -> None:
        self.revisions[key] = revision
        kind = KINDS.get(key.resource)
        if kind is None:
            return
        old, new = self.objects.get(key), decode(kind, raw)
        self.objects[key] = new
        if self._promises is not None:
            self._note_for_promises(self._promises, old, new)
        if isinstance(new, Pod):
            self._pod(old, new)
        elif isinstance(new, Job):
            self._job(old, new)
            self.past_jobs[new.uid] = PastJob(new.name, new.status.state.phase)

    def _note_for_promises(self, promises: TimePromises, old: Any, new: Any) -> None:
        now = asyncio.get_running_loop().time()
        if isinstance(new, Pod):
            group = None if self._is_disturbed else self._group(group_of(new))
            promises.pod(old, new, group, new.annotations.get(JOB_NAME_KEY, ""), now=now)
        elif isinstance(new, PodGroup):
            promises.group(old, new, now=now)
        elif isinstance(new, (Node, Queue)):
            promises.other(old, new, now=now)

    def _group(self, key: Key) -> PodGroup | None:
        found: PodGroup | None = self.find(PodGroup, key.name, key.namespace)
        return found

    def _drop(self, key: ObjectKey) -> None:
        self.revisions.pop(key, None)
        gone = self.objects.pop(key, None)
        if isinstance(gone, Job):
            self.past_jobs[gone.uid].is_gone = True
        elif isinstance(gone, PodGroup):
            self._gangs.forget(gone.key)
        elif isinstance(gone, Pod):
            self._gangs.forget(group_of(gone))
            if self._promises is not None:
                self._promises.ended(gone, now=asyncio.get_running_loop().time())

    def _violated(self, what: str) -> None:
        self._trace.add("VIOLATION", what)
        self.violations.append(what)

    def calm(self) -> None:
        """Called once the last fault is over and every component has had time to catch up."""
        self._is_calm, self._is_disturbed = True, False
        if self._promises is not None:
            now = asyncio.get_running_loop().time()
            self._promises.forget()
            for group in self.all(PodGroup):
                self._promises.group(group, group, now=now)

    def disturbed(self) -> None:
        """Called before every fault."""
        self._is_disturbed = True
        self._gangs = GangBinds(self._violated)

    def clock_is_wrong(self) -> None:
        """Times that a wrong clock has written stay: no promise rests on them."""
        self._promises = None

    # -- reading -------------------------------------------------------------------------------------------------
    def all(self, kind: type[Any]) -> list[Any]:
        resource = resource_type(kind).qualified
        return [found for key, found in self.objects.items() if key.resource == resource]

    def find(self, kind: type[Any], name: str, namespace: str = "default") -> Any:
        row = resource_type(kind)
        return self.objects.get(ObjectKey(row.qualified, namespace if row.namespaced else "", name))

    # -- invariants of single changes ----------------------------------------------------------------------------
    def _pod(self, old: Pod | None, new: Pod) -> None:
        if old is not None and old.uid != new.uid:
            self._violated(f"pod {new.key} was replaced without a deletion")
        was = old.spec.node_name if old is not None else ""
        if was and new.spec.node_name != was:
            self._violated(f"pod {new.key} is bound to {was} and then to {new.spec.node_name or 'none'}")
        if new.spec.node_name and not was:
            self._trace.add("", f"bound {new.key} to {new.spec.node_name}")
            self._node_is_not_overcommitted(new.spec.node_name, new)
            self._queue_is_within_capability(new)
        if old is not None and old.is_finished and new.status.phase != old.status.phase:
            self._violated(f"pod {new.key} was {old.status.phase} and is {new.status.phase}")
        self._runs_once(old, new)
        if not self._is_disturbed:
            group = self._group(group_of(new))
            is_bound_now = bool(new.spec.node_name and not was)
            now = asyncio.get_running_loop().time()
            self._gangs.look(group, new, self.all(Pod), is_bound_now=is_bound_now, now=now)
        self._was_evicted_for_somebody(old, new)

    def _was_evicted_for_somebody(self, old: Pod | None, new: Pod) -> None:
        """Notes evictions by the scheduler and binds; during faults a decision may rest on what is no longer true."""
        now = asyncio.get_running_loop().time()
        if new.spec.node_name and (old is None or not old.spec.node_name):
            self._bound.setdefault(str(new.key), []).append(now)
        eviction, before = eviction_of(new), eviction_of(old) if old is not None else None
        if self._is_calm and before is None and eviction is not None and eviction.by == "scheduler":
            self._trace.add("", f"evicted {new.key} for {eviction.preemptor}")
            self._evicted.append((decision_time(eviction, now), str(new.key), eviction.preemptor))

    def _node_is_not_overcommitted(self, name: str, pod: Pod) -> None:
        node = self.find(Node, name)
        if node is None:
            self._violated(f"pod {pod.key} is bound to {name}, which does not exist")
            return
        used: dict[str, int] = {"pods": 0}
        for each in self.all(Pod):
            if each.spec.node_name == name and not each.is_finished:
                used["pods"] += 10**9
                for resource, amount in pod_requests(each.spec).items():
                    used[resource] = used.get(resource, 0) + amount.nanos
        for resource, nanos in used.items():
            has = parse_quantity((node.status.allocatable or {}).get(resource, "0")).nanos
            if nanos > has:
                self._violated(f"node {name} has {has / 1e9:g} {resource} and {nanos / 1e9:g} are used, with {pod.key}")

    def _queue_is_within_capability(self, pod: Pod) -> None:
        group = self.find(PodGroup, pod.annotations.get(GROUP_NAME_ANNOTATION, ""), pod.namespace)
        queue = self.find(Queue, group.queue) if group is not None else None
        if queue is None or not queue.spec.capability:
            return
        members = {each.name for each in self.all(PodGroup) if each.queue == queue.name}
        for resource, limit in queue.spec.capability.items():
            used = sum(
                pod_requests(each.spec)[resource].nanos
                for each in self.all(Pod)
                if each.spec.node_name
                and not each.is_finished
                and each.annotations.get(GROUP_NAME_ANNOTATION) in members
                and resource in pod_requests(each.spec)
            )
            if used > parse_quantity(limit).nanos:
                self._violated(f"queue {queue.name} may use {limit} {resource} and uses {used / 1e9:g}, with {pod.key}")

    def _runs_once(self, old: Pod | None, new: Pod) -> None:
        """A pod that succeeded is not bound again for the same version of its job.

        It may be made again, by a request that arrives when its sender has given up and the job is gone; the garbage
        collector then removes it.
        """
        owner = next((each.uid for each in new.metadata.owner_references if each.kind == "Job"), "")
        run = (owner, new.annotations.get(JOB_VERSION_KEY, ""), new.name)
        is_bound = bool(new.spec.node_name) and (old is None or not old.spec.node_name)
        if is_bound and owner and self._succeeded.get(run, new.uid) != new.uid:
            self._violated(f"pod {new.key} of version {run[1]} of job {new.annotations.get(JOB_NAME_KEY)} runs twice")
        if new.status.phase == "Succeeded" and owner and not new.is_deleting:  # one that is being deleted is given up
            self._succeeded[run] = new.uid

    def _job(self, old: Job | None, new: Job) -> None:
        limit = new.spec.max_retry
        if new.status.retry_count > limit:
            self._violated(f"job {new.key} has {new.status.retry_count} retries of {limit}")
        if old is not None and new.status.version < old.status.version:
            self._violated(f"job {new.key} goes back from version {old.status.version} to {new.status.version}")
        for steps in self._workload.flows.values():
            if new.name in steps and self._ran.setdefault(new.name, new.uid) != new.uid:
                self._violated(f"flow step {new.key} runs twice")

    # -- invariants at rest --------------------------------------------------------------------------------------
    def unfinished(self) -> list[str]:
        """The jobs that are not at one of their ends."""
        found = []
        for case in self._workload.jobs.values():
            job = self.find(Job, case.name)
            phase = job.status.state.phase if job is not None else "gone"
            if phase not in case.ends:
                found.append(f"job {case.name} is {phase or 'new'}, not {' or '.join(sorted(case.ends))}")
        for job in self.all(Job):
            phase = job.status.state.phase
            if any(owner.kind == "CronJob" for owner in job.metadata.owner_references) and phase not in FINISHED_PHASES:
                found.append(f"job {job.name} of a cron is {phase or 'new'}")
        return found

    def describe(self) -> None:
        """Into the trace, for the reader of a run that did not end."""
        for group in self.all(PodGroup):
            why = group.annotations.get(WHY_ANNOTATION, "")
            self._trace.add("STATE", f"group {group.key} {group.phase} in queue {group.queue} {why}")
        for pod in self.all(Pod):
            self._trace.add("STATE", f"pod {pod.key} {pod.status.phase} on {pod.spec.node_name or '-'}")

    def at_rest(self) -> list[str]:
        """What is wrong when nothing happens any more."""
        found = []
        for group in self.all(PodGroup):
            pods = [p for p in self.all(Pod) if p.annotations.get(GROUP_NAME_ANNOTATION) == group.name]
            placed = sum(bool(pod.spec.node_name) for pod in pods)
            if 0 < placed < group.spec.min_member and any(not pod.is_finished for pod in pods):
                found.append(f"gang {group.key}: {placed} of {group.spec.min_member} are placed")
        found += [
            f"pod {pod.key} is {pod.status.phase} on {pod.spec.node_name or 'no node'}"
            for pod in self.all(Pod)
            if not pod.is_finished
        ]
        for node in self.all(Node):
            if not any(c.type == "Ready" and c.status == "True" for c in node.status.conditions):
                found.append(f"node {node.name} is not Ready")
            elif node.spec.taints:
                found.append(f"node {node.name} has taints: {[taint.key for taint in node.spec.taints]}")
        for job in self.all(Job):
            found += self._counts(job)
        for time, victim, preemptor in self._evicted:
            if not any(0 <= bound - time <= PREEMPTOR_SECONDS for bound in self._bound.get(preemptor, ())):
                found.append(f"pod {victim} was evicted for {preemptor or 'no other'}, which was not bound then")
        return found

    def _counts(self, job: Job) -> list[str]:
        """A status that no longer changes must be true."""
        pods = [pod for pod in self.all(Pod) if pod.annotations.get(JOB_NAME_KEY) == job.name]
        stated = (job.status.pending, job.status.running, job.status.succeeded, job.status.failed)
        true = tuple(sum(pod.status.phase == phase for pod in pods) for phase in _POD_PHASES)
        if stated != true:
            return [f"job {job.key} counts {stated} pods {_POD_PHASES}, and there are {true}"]
        return []


_POD_PHASES: Final = ("Pending", "Running", *FINISHED_POD_PHASES)
