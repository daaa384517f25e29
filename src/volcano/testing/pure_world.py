"""An API server and a controller manager as plain values: for tests of whole decisions without I/O.

`PureWorld` keeps objects, carries out plans as machinery.apply would, wakes the controllers it is given and runs them
until nothing is left to do. Time moves only by `advance`. `stop_after` kills it after that many writes (`Killed`);
`restart` then begins again from the stored objects, as a process would: causes and timers are lost.
"""

from __future__ import annotations

import copy
import heapq
from collections.abc import Callable, Hashable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

import msgspec

from volcano.api.decode import decode_object
from volcano.api.meta import JSON, Key, Resource
from volcano.api.partial import PartialObject, partial_of
from volcano.api.scheme import READERS, ResourceType, find_resource_type, resource_type
from volcano.machinery.controller import Controller
from volcano.machinery.patch import PatchError, json_patch, merge_patch
from volcano.machinery.plan import (
    Create,
    Delete,
    Evict,
    Found,
    Later,
    Look,
    NetworkProbe,
    Patch,
    Plan,
    ProbeAnswer,
    Record,
    Ref,
    Step,
    Together,
)
from volcano.machinery.world import Change, Mirror
from volcano.testing.pure_patches import strategic_patched

R = TypeVar("R", bound=Resource)
START: Final = datetime(2026, 1, 1, tzinfo=UTC)
MAX_DECISIONS: Final = 10_000  # in a row, after which the world counts as one that never settles
MAX_FAILURES: Final = 20  # in a row, of one key


class Killed(Exception):
    """The process was stopped after the number of writes that the test asked for."""


class Refused(Exception):
    """The server's answer to a write that the plan must decide again about."""


class PureWorld:
    """Objects, controllers and a clock."""

    def __init__(self, *objects: JSON, controllers: Iterable[Controller] = (), now: datetime = START) -> None:
        self.now = now
        self.objects: dict[tuple[ResourceType, Key], JSON] = {}
        self.events: list[Record] = []
        self.writes = 0
        self.stop_after: int | None = None
        self.answer: Callable[[NetworkProbe], ProbeAnswer] = lambda probe: ProbeAnswer(probe.name, ok=True)
        self._revision = 0
        self._incarnations: dict[tuple[str, str, Key], int] = {}
        self._controllers = list(controllers)
        self.restart()
        for each in objects:
            self.put(each)

    # -- looking ----------------------------------------------------------------------------------------------
    def get(self, reader: type[R], name: str, namespace: str | None = None) -> R | None:
        """The object as controllers see it; the namespace is `default` for kinds that have one."""
        return self.mirror.get(reader, self._key(resource_type(reader), name, namespace))

    def all(self, reader: type[R]) -> list[R]:
        return self.mirror.all(reader)

    def raw(self, reader: type[Resource], name: str, namespace: str | None = None) -> JSON:
        row = resource_type(reader)
        return self.objects[row, self._key(row, name, namespace)]

    def reasons(self) -> list[str]:
        """The reasons of all Events recorded, in order."""
        return [event.reason for event in self.events]

    @staticmethod
    def _key(row: ResourceType, name: str, namespace: str | None) -> Key:
        return Key(("default" if namespace is None else namespace) if row.namespaced else "", name)

    # -- the user and the rest of the cluster -------------------------------------------------------------------
    def put(self, body: JSON) -> None:
        """Create or replace an object, status included, as if by another client."""
        body = copy.deepcopy(body)
        row = _row_of(body)
        metadata = body.setdefault("metadata", {})
        if row.namespaced:
            metadata.setdefault("namespace", "default")
        key = Key(metadata.get("namespace", ""), metadata["name"])
        known = self.objects.get((row, key))
        if known is None:
            self._stamp(row, key, metadata)
        else:
            body["metadata"] = {**known["metadata"], **metadata}
        self._store(row, key, body)

    def change(self, reader: type[Resource], name: str, patch: JSON, namespace: str | None = None) -> None:
        """A merge patch over everything, status included, as if by another client."""
        row = resource_type(reader)
        key = self._key(row, name, namespace)
        self._store(row, key, merge_patch(self.objects[row, key], patch))

    def delete(self, reader: type[Resource], name: str, namespace: str | None = None, propagation: str = "") -> None:
        row = resource_type(reader)
        self._delete(Ref(row, self._key(row, name, namespace)), propagation)

    # -- time, death and rebirth ----------------------------------------------------------------------------------
    def restart(self) -> None:
        """Forget what a process forgets, and begin again from the stored objects."""
        self.mirror = Mirror(lambda: self.now)
        self._waiting: dict[str, dict[Key, dict[Hashable, None]]] = {c.name: {} for c in self._controllers}
        self._timers: list[tuple[datetime, int, str, Key, Hashable]] = []
        self._reminders: dict[tuple[str, Key, Hashable], datetime] = {}
        self._failures: dict[tuple[str, Key], int] = {}
        self._idle: dict[tuple[str, Key], Hashable] = {}
        self._timer_count = 0
        for (row, _), body in sorted(self.objects.items(), key=lambda item: item[0][1]):
            self._show(row, body)
        for controller in self._controllers:
            self.mirror.add_indexes(controller.indexes)
            for kind, waker in controller.wakes_on.items():
                self.mirror.listen(kind, self._listener(controller, waker))

    def settle(self) -> PureWorld:
        """Decide and apply until nothing is waiting at this moment."""
        for _ in range(MAX_DECISIONS):
            while (due := self._due(self.now)) is not None:
                self._wake(*due[1:])
            taken = self._take()
            if taken is None:
                return self
            self._work(*taken)
        raise AssertionError(f"no rest after {MAX_DECISIONS} decisions")

    def advance(self, duration: timedelta) -> PureWorld:
        """Let time pass, with everything that was asked to happen later happening at its moment."""
        end = self.now + duration
        self.settle()
        while (due := self._due(end)) is not None:
            self.now = max(self.now, due[0])
            self._wake(*due[1:])
            self.settle()
        self.now = end
        return self.settle()

    # -- controllers ----------------------------------------------------------------------------------------------
    def _listener(self, controller: Controller, waker: Any) -> Callable[[Change[Any]], None]:
        def listen(change: Change[Any]) -> None:
            for wake in waker(change):
                self._wake(controller.name, wake.key, wake.cause)

        return listen

    def _wake(self, controller: str, key: Key, cause: Hashable) -> None:
        causes = self._waiting[controller].setdefault(key, {})
        if cause is not None:
            causes[cause] = None

    def _take(self) -> tuple[Controller, Key, tuple[Hashable, ...]] | None:
        for controller in self._controllers:
            waiting = self._waiting[controller.name]
            if waiting:
                key = next(iter(waiting))
                self._idle.pop((controller.name, key), None)
                return controller, key, tuple(waiting.pop(key))
        if self._idle:
            (name, key), cause = next(iter(self._idle.items()))
            self._wake(name, key, cause)
            return self._take()
        return None

    def _work(self, controller: Controller, key: Key, causes: tuple[Hashable, ...]) -> None:
        plan = controller.decide(key, self.mirror, causes)
        laters: list[Later] = []
        try:
            self.apply(plan, laters, answer=lambda found: self._wake(controller.name, key, found))
        except Refused as refusal:
            failed = self._failures[controller.name, key] = self._failures.get((controller.name, key), 0) + 1
            assert failed < MAX_FAILURES, f"{controller.name} fails again and again on {key}: {refusal}"
            for cause in causes or (None,):
                self._wake(controller.name, key, cause)
            return
        self._failures.pop((controller.name, key), None)
        for later in laters:
            if later.when_idle:
                self._idle.setdefault((controller.name, later.key or key), later.cause)
                continue
            self._remind(self.now + later.after, controller.name, later.key or key, later.cause)

    def _remind(self, moment: datetime, controller: str, key: Key, cause: Hashable) -> None:
        """Of several for the same key and cause only the earliest counts."""
        known = self._reminders.get((controller, key, cause))
        if known is None or moment < known:
            self._reminders[controller, key, cause] = moment
            self._timer_count += 1
            heapq.heappush(self._timers, (moment, self._timer_count, controller, key, cause))

    def _due(self, until: datetime) -> tuple[datetime, str, Key, Hashable] | None:
        while self._timers and self._timers[0][0] <= until:
            moment, _, controller, key, cause = heapq.heappop(self._timers)
            if self._reminders.get((controller, key, cause)) == moment:
                del self._reminders[controller, key, cause]
                return moment, controller, key, cause
        return None

    # -- carrying out plans ---------------------------------------------------------------------------------------
    def apply(self, plan: Plan, laters: list[Later] | None = None, answer: Callable[[Any], None] | None = None) -> None:
        """Do the steps of a plan in order; `Refused` ends it."""
        for step in plan:
            match step:
                case Together(steps):
                    self.apply(steps, laters, answer)
                case Later():
                    if laters is not None:
                        laters.append(step)
                case Record():
                    self.events.append(step)
                case NetworkProbe():
                    if answer is not None:
                        answer(self.answer(step))
                case Look(target):
                    if answer is not None:
                        stored = self.objects.get((target.resource, target.key), {})
                        metadata = stored.get("metadata", {})
                        uid, annotations = metadata.get("uid"), metadata.get("annotations") or {}
                        present = uid is not None and uid == (target.uid or uid)
                        answer(Found(target, present, (*annotations.items(),), "deletionTimestamp" in metadata))
                case _:
                    self._write(step)

    def _write(self, step: Step) -> None:
        if self.stop_after is not None and self.writes >= self.stop_after:
            raise Killed
        self.writes += 1
        match step:
            case Create():
                self._create(step)
            case Patch():
                self._patch(step)
            case Delete(target=target, propagation=propagation):
                if self._stored(target) is not None:
                    self._delete(target, propagation)
            case Evict(pod, reason, message):
                self._evict(pod, reason, message)
            case _:
                raise TypeError(f"a pure world does not carry out {step}")

    def _create(self, step: Create) -> None:
        key = step.key
        assert key.name, "names are decided, not generated"
        assert bool(key.namespace) == step.resource.namespaced, f"{step.resource.kind} {key}"
        if (step.resource, key) in self.objects:
            if not step.exists_ok:
                raise Refused(f"{step.resource.kind} {key} exists")
            return
        body = copy.deepcopy(step.body)
        body |= {"apiVersion": step.resource.api_version, "kind": step.resource.kind}
        if step.resource.has_status:
            body.pop("status", None)
        self._stamp(step.resource, key, body["metadata"])
        self._store(step.resource, key, body)

    def _patch(self, step: Patch) -> None:
        stored = self._stored(step.target)
        if stored is None:
            if not step.gone_ok:
                raise Refused(f"{step.target.key} is gone")
            return
        change = {"merge": merge_patch, "apply": merge_patch, "strategic": strategic_patched, "json": json_patch}
        try:
            patched = change[step.kind](stored, step.body)
        except PatchError as error:
            raise Refused(str(error)) from error
        if step.subresource == "status":
            patched = {**stored, "status": patched.get("status", {})}
        elif step.target.resource.has_status:
            patched = {**patched, **({"status": stored["status"]} if "status" in stored else {})}
        patched["metadata"] |= {name: stored["metadata"][name] for name in ("uid", "resourceVersion")}
        self._store(step.target.resource, step.target.key, patched)

    def _evict(self, pod: Ref, reason: str, message: str) -> None:
        condition = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message}
        self._patch(Patch(pod, {"status": {"conditions": [condition]}}, kind="strategic", subresource="status"))
        written = Ref(pod.resource, pod.key, pod.uid)
        if self._stored(written) is not None:
            self._delete(written, "")

    def _stored(self, target: Ref) -> JSON | None:
        stored = self.objects.get((target.resource, target.key))
        if stored is None or (target.uid and stored["metadata"]["uid"] != target.uid):
            return None
        if target.resource_version and stored["metadata"]["resourceVersion"] != target.resource_version:
            raise Refused(f"{target.key} has changed")
        return stored

    # -- storing --------------------------------------------------------------------------------------------------
    def _stamp(self, row: ResourceType, key: Key, metadata: JSON) -> None:
        count = self._incarnations[row.group, row.kind, key] = self._incarnations.get((row.group, row.kind, key), 0) + 1
        metadata.setdefault("uid", f"{row.kind.lower()}-{key.name}-{count}")
        metadata.setdefault("creationTimestamp", self.now.isoformat())
        metadata.setdefault("generation", 1)

    def _store(self, row: ResourceType, key: Key, body: JSON) -> None:
        known = self.objects.get((row, key))
        if known is not None:
            if known == body:
                return
            if known.get("spec") != body.get("spec"):
                body["metadata"]["generation"] = known["metadata"].get("generation", 1) + 1
        self._revision += 1
        body = copy.deepcopy(body)
        body["metadata"]["resourceVersion"] = str(self._revision)
        if body["metadata"].get("deletionTimestamp") and not _is_held(body):
            self._forget(row, key)
            return
        self.objects[row, key] = body
        self._show(row, body)

    def _delete(self, target: Ref, propagation: str) -> None:
        body = copy.deepcopy(self.objects[target.resource, target.key])
        metadata = body["metadata"]
        finalizer = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}.get(propagation)
        if finalizer and finalizer not in metadata.get("finalizers", []):
            metadata["finalizers"] = [*metadata.get("finalizers", []), finalizer]
        if not _is_held(body):
            self._forget(target.resource, target.key)
            return
        metadata.setdefault("deletionTimestamp", self.now.isoformat())
        if target.resource.kind == "Namespace":
            body["status"] = {**body.get("status", {}), "phase": "Terminating"}
        self._store(target.resource, target.key, body)

    def _forget(self, row: ResourceType, key: Key) -> None:
        body = self.objects.pop((row, key))
        for reader in _readers(row):
            self.mirror.remove(reader, self._read(reader, body).key)
        self.mirror.remove(PartialObject, partial_of(row, self._read(PartialObject, body)).key)

    def _show(self, row: ResourceType, body: JSON) -> None:
        for reader in _readers(row):
            self.mirror.put(self._read(reader, body))
        self.mirror.put(partial_of(row, self._read(PartialObject, body)))

    @staticmethod
    def _read(reader: type[R], body: JSON) -> R:
        return decode_object(reader, msgspec.json.decode(msgspec.json.encode(body)))


def _is_held(body: JSON) -> bool:
    """By finalizers; a namespace has some in its spec too."""
    return bool(body["metadata"].get("finalizers") or (body["kind"] == "Namespace" and body["spec"].get("finalizers")))


def _row_of(body: JSON) -> ResourceType:
    group = body["apiVersion"].rpartition("/")[0]
    row = find_resource_type(group, body["kind"])
    assert row is not None, f"{body['apiVersion']} {body['kind']} is not in the scheme"
    return row


def _readers(row: ResourceType) -> list[type[Resource]]:
    return [reader for reader, known in READERS.items() if known == row]
