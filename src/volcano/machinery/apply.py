"""Carry out a plan: the only writer. Transient failures are retried with back-off; the others are reported.

The answer to a write goes into the Mirror at once, so that the next decision sees its own writes.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any, Final

import msgspec

from volcano.api.core import Pod, Secret
from volcano.api.decode import Unreadable, decode
from volcano.api.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Invalid,
    NotFound,
    ServiceUnavailable,
    Timeout,
    TooManyRequests,
)
from volcano.api.meta import JSON, Resource
from volcano.api.scheme import ResourceType, resource_type
from volcano.api.times import timestamp
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock
from volcano.machinery.events import EventRecorder
from volcano.machinery.plan import (
    Bind,
    Create,
    Delete,
    EnsureSecret,
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
    ref,
)
from volcano.machinery.world import Mirror

log = logging.getLogger(__name__)
MAX_CONCURRENT_WRITES: Final = 64
"""Of one Applier, and queued at once by one plan, so that a large plan does not delay the others."""
MAX_ATTEMPTS: Final = 4
FIRST_BACKOFF: Final = timedelta(milliseconds=100)
BACKOFF_FACTOR: Final = 4
MAX_RETRY_AFTER: Final = timedelta(seconds=30)
"""A server that asks for a longer pause is asked again after this one."""
MAX_EVICTION_MESSAGE_CHARACTERS: Final = 1024
TRANSIENT: Final = (TooManyRequests, ServiceUnavailable, Timeout, ConnectionError, TimeoutError)

Observer = Callable[[ResourceType, bytes], None]


class Failure(msgspec.Struct):
    """A step that could not be done, and why."""

    step: Any
    error: Exception

    def __str__(self) -> str:
        return f"{type(self.step).__name__} {target_of(self.step)}: {self.error}"


class Outcome(msgspec.Struct):
    """The result of a plan: what failed, what to do later, what was answered."""

    failures: list[Failure] = []
    later: list[Later] = []
    answers: list[ProbeAnswer | Found] = []
    writes: int = 0

    @property
    def ok(self) -> bool:
        return not self.failures


class Applier:
    """Turns steps into requests."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        *,
        recorder: EventRecorder | None = None,
        observe: Observer | None = None,
        probe: Callable[[NetworkProbe], Any] | None = None,
    ) -> None:
        self._client, self._clock, self._recorder = client, clock, recorder
        self._observe = observe or (lambda _resource, _body: None)
        self._probe = probe
        self._slots = asyncio.Semaphore(MAX_CONCURRENT_WRITES)

    async def apply(self, plan: Plan) -> Outcome:
        """All steps in order; the first that fails ends the plan and is in the outcome."""
        outcome = Outcome()
        for step in plan:
            await self._step(step, outcome)
            if outcome.failures:
                break
        return outcome

    async def _step(self, step: Step, outcome: Outcome) -> None:
        match step:
            case Together(steps):
                waiting, workers = iter(steps), min(len(steps), MAX_CONCURRENT_WRITES)
                await asyncio.gather(*(self._drain(waiting, outcome) for _ in range(workers)))
            case Later():
                outcome.later.append(step)
            case Record():
                if self._recorder is not None:
                    self._recorder.record(step)
            case NetworkProbe():
                if self._probe is not None:
                    outcome.answers.append(await self._probe(step))
            case Look(target):
                await self._look(target, outcome)
            case _:
                await self._write(step, outcome)

    async def _drain(self, waiting: Iterator[Step], outcome: Outcome) -> None:
        for step in waiting:
            await self._step(step, outcome)

    async def _look(self, target: Ref, outcome: Outcome) -> None:
        try:
            found = await self._client.get_json(target.resource, target.key)
        except NotFound:
            outcome.answers.append(Found(target, present=False))
        except (ApiError, OSError) as error:
            outcome.failures.append(Failure(Look(target), error))
        else:
            metadata = found.get("metadata", {})
            present = not target.uid or metadata.get("uid") == target.uid
            annotations = tuple((metadata.get("annotations") or {}).items())
            outcome.answers.append(Found(target, present, annotations, "deletionTimestamp" in metadata))

    async def _write(self, step: Step, outcome: Outcome) -> None:
        backoff = FIRST_BACKOFF
        for attempt in range(MAX_ATTEMPTS):
            try:
                async with self._slots:
                    outcome.writes += 1
                    await self._send(step)
                return
            except TRANSIENT as error:
                if attempt == MAX_ATTEMPTS - 1:
                    outcome.failures.append(Failure(step, error))
                    return
                await self._clock.sleep(_retry_after(error) or backoff)
                backoff *= BACKOFF_FACTOR
            except (ApiError, OSError) as error:
                outcome.failures.append(Failure(step, error))
                return

    async def _send(self, step: Step) -> None:
        match step:
            case Create():
                await self._create(step)
            case Patch():
                await self._patch(step)
            case Delete():
                await self._delete(step)
            case Bind():
                await self._bind(step)
            case Evict():
                await self._evict(step)
            case EnsureSecret():
                await self._ensure_secret(step)

    async def _create(self, step: Create) -> None:
        try:
            self._observe(step.resource, await self._client.create(step.resource, step.body))
        except AlreadyExists:
            if not step.exists_ok:
                raise

    async def _patch(self, step: Patch) -> bytes:
        """What the server answers; nothing if the object is gone."""
        body, target = step.body, step.target
        if isinstance(body, dict) and step.kind != "json":
            body = _guarded(body, target)
        parameters = {"fieldManager": step.manager, "force": "true"} if step.kind == "apply" else {}
        try:
            answer = await self._client.patch(
                target.resource, target.key, body, kind=step.kind, subresource=step.subresource, **parameters
            )
            self._observe(target.resource, answer)
            return answer
        except NotFound:
            if not step.gone_ok:
                raise
        except (Conflict, Invalid) as error:
            if not (step.gone_ok and target.uid and await self._was_replaced(target, error)):
                raise
        return b""

    async def _was_replaced(self, target: Ref, error: ApiError) -> bool:
        """Whether the name now belongs to another object, so that the one meant is gone.

        Kubernetes answers a wrong uid with a Conflict that differs from others only in its text, so the object is
        read: by a list of one, since components may list what they follow and need no right to get it. For custom
        objects the answer is Invalid, with the field as the cause.
        """
        if isinstance(error, Invalid):
            return any(cause.get("field") == "metadata.uid" for cause in error.details.get("causes") or ())
        try:
            found = await self._client.list_json(
                target.resource, target.key.namespace, fieldSelector=f"metadata.name={target.key.name}"
            )
        except (ApiError, OSError, TimeoutError):
            return False
        return all(item["metadata"]["uid"] != target.uid for item in found.get("items") or ())

    async def _delete(self, step: Delete) -> None:
        options: JSON = {}
        if step.target.uid or step.target.resource_version:
            options["preconditions"] = _preconditions(step.target)
        if step.grace_seconds is not None:
            options["gracePeriodSeconds"] = step.grace_seconds
        if step.propagation:
            options["propagationPolicy"] = step.propagation
        try:
            await self._client.delete(step.target.resource, step.target.key, options)
        except NotFound:
            return
        except Conflict as error:
            if step.target.resource_version or not await self._was_replaced(step.target, error):
                raise

    async def _bind(self, step: Bind) -> None:
        metadata: JSON = {"name": step.pod.key.name, "namespace": step.pod.key.namespace}
        if step.pod.uid:
            metadata["uid"] = step.pod.uid
        if step.annotations:
            metadata["annotations"] = step.annotations
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": metadata,
            "target": {"apiVersion": "v1", "kind": "Node", "name": step.node},
        }
        await self._client.create_sub(step.pod.resource, step.pod.key, "binding", body)

    async def _evict(self, step: Evict) -> None:
        """Delete the pod as it was when the reason was written: a job would run one again that has finished since."""
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": step.reason,
            "message": step.message[:MAX_EVICTION_MESSAGE_CHARACTERS],
            "lastTransitionTime": timestamp(self._clock.now()),
        }
        status = Patch(step.pod, {"status": {"conditions": [condition]}}, kind="strategic", subresource="status")
        answer = await self._patch(status)
        pod = decode(Pod, answer) if answer else None
        if pod is not None and not pod.is_finished:
            await self._delete(Delete(ref(pod, fresh=True)))

    async def _ensure_secret(self, step: EnsureSecret) -> None:
        resource = resource_type(Secret)
        try:
            await self._client.get_json(resource, step.key)
            return
        except NotFound:
            pass
        made = await self._clock.run(step.make)
        metadata: JSON = {"name": step.key.name, "namespace": step.key.namespace, "labels": step.labels}
        if step.owner is not None:
            metadata["ownerReferences"] = [msgspec.to_builtins(step.owner)]
        encoded = {name: base64.b64encode(value).decode() for name, value in made.items()}
        await self._create(Create(resource, {"metadata": metadata, "type": step.type, "data": encoded}))


def target_of(step: Any) -> str:
    """Which object a step concerns, for messages."""
    target = getattr(step, "target", None) or getattr(step, "pod", None)
    if isinstance(target, Ref):
        return f"{target.resource.kind} {target.key}"
    return f"{step.resource.kind} {step.key}" if isinstance(step, Create) else ""


def show_answers_in(mirror: Mirror, readers: Mapping[ResourceType, Iterable[type[Resource]]]) -> Observer:
    """Put what a write answers into the Mirror at once, as each of the kinds in which it is read.

    An object that is being deleted is only updated: the answer may arrive after the watch has removed it.
    """

    def observe(resource: ResourceType, body: bytes) -> None:
        for reader in readers.get(resource, ()):
            try:
                found = decode(reader, body)
            except Unreadable:
                continue
            if not found.is_deleting or mirror.get(reader, found.key) is not None:
                mirror.put(found)

    return observe


def _preconditions(target: Ref) -> JSON:
    wanted = {"uid": target.uid, "resourceVersion": target.resource_version}
    return {name: value for name, value in wanted.items() if value}


def _guarded(body: JSON, target: Ref) -> JSON:
    """The patch with the uid and resource version it was decided on, so that the server refuses any other object."""
    guard = _preconditions(target)
    return {**body, "metadata": {**body.get("metadata", {}), **guard}} if guard else body


def _retry_after(error: Exception) -> timedelta | None:
    """The pause that the server asks for, if any."""
    seconds = error.retry_after if isinstance(error, ApiError) else None
    return min(timedelta(seconds=seconds), MAX_RETRY_AFTER) if seconds else None
