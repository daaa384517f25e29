"""Caller: somebody who is signed in, the client that acts with their rights, and what they may see.

What may be seen is asked of the API server with the caller's own credentials (SelfSubjectAccessReview), so that a page
never shows what kubectl would refuse. Answers are kept for a short time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta
from typing import Final, Protocol

import msgspec

from volcano.api.meta import JSON, Resource
from volcano.api.scheme import ResourceType, resource_type
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock

ACCESS_REVIEWS: Final = ResourceType(
    "authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False
)
MAX_AGE: Final = timedelta(seconds=20)
VALID_FOR: Final = timedelta(seconds=60)
MAX_NAMESPACES: Final = 500
"""Of which a caller without cluster-wide rights is asked about; others count as hidden."""
QUESTIONS_AT_A_TIME: Final = 16
MAX_KEPT_ANSWERS: Final = 5_000


class Sight(msgspec.Struct, frozen=True):
    """The namespaces whose objects of one kind a caller may list; `everything` includes cluster-wide objects."""

    everything: bool
    namespaces: frozenset[str] = frozenset()

    def sees(self, namespace: str) -> bool:
        return self.everything or namespace in self.namespaces

    @property
    def sees_nothing(self) -> bool:
        return not self.everything and not self.namespaces


class RightQuestion(Protocol):
    async def __call__(self, verb: str, row: ResourceType, namespace: str = "", subresource: str = "") -> bool: ...


class Caller:
    """`still_valid` asks whether the credentials are accepted, where the client itself does not show them."""

    def __init__(
        self,
        name: str,
        groups: Iterable[str],
        client: Client,
        clock: Clock,
        still_valid: Callable[[], Awaitable[bool]] | None = None,
    ) -> None:
        self.name, self.groups, self.client = name, tuple(groups), client
        self._clock, self._still_valid = clock, still_valid
        self._validated = clock.monotonic()
        self._kept: dict[tuple[str, str, str], tuple[float, bool]] = {}
        self._limit = asyncio.Semaphore(QUESTIONS_AT_A_TIME)

    async def is_valid(self) -> bool:
        now = self._clock.monotonic()
        if self._still_valid is None or now - self._validated < VALID_FOR.total_seconds():
            return True
        self._validated = now
        return await self._still_valid()

    async def may(self, verb: str, row: ResourceType, namespace: str = "", subresource: str = "") -> bool:
        """ApiError where the API server no longer accepts the caller's credentials."""
        key = (verb, f"{row.group}/{row.plural}/{subresource}", namespace)
        kept, now = self._kept.get(key), self._clock.monotonic()
        if kept is not None and now - kept[0] < MAX_AGE.total_seconds():
            return kept[1]
        attributes: JSON = {"verb": verb, "group": row.group, "resource": row.plural, "namespace": namespace}
        if subresource:
            attributes["subresource"] = subresource
        async with self._limit:
            answer = await self.client.create(ACCESS_REVIEWS, {"spec": {"resourceAttributes": attributes}})
        status = msgspec.json.decode(answer).get("status") or {}
        if len(self._kept) >= MAX_KEPT_ANSWERS:
            self._kept.clear()
        self._kept[key] = (now, allowed := bool(status.get("allowed")))
        return allowed

    async def sight(self, kind: type[Resource], namespaces: Callable[[], Iterable[str]]) -> Sight:
        return await sight_by(self.may, kind, namespaces)


async def sight_by(may: RightQuestion, kind: type[Resource], namespaces: Callable[[], Iterable[str]]) -> Sight:
    """`namespaces` finds those where objects of the kind are; it is not called for a caller who sees all."""
    row = resource_type(kind)
    if await may("list", row):
        return Sight(True)
    asked = sorted({*namespaces()} - {""})[:MAX_NAMESPACES] if row.namespaced else []
    answers = await asyncio.gather(*(may("list", row, namespace) for namespace in asked))
    return Sight(False, frozenset(name for name, allowed in zip(asked, answers) if allowed))


class RightsUsed:
    """The rights of a caller that a page was made by: for everybody with the same answers the page is the same."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self.answers: dict[tuple[str, ResourceType, str, str], bool] = {}

    async def may(self, verb: str, row: ResourceType, namespace: str = "", subresource: str = "") -> bool:
        answer = await self._caller.may(verb, row, namespace, subresource)
        self.answers[verb, row, namespace, subresource] = answer
        return answer

    async def sight(self, kind: type[Resource], namespaces: Callable[[], Iterable[str]]) -> Sight:
        return await sight_by(self.may, kind, namespaces)

    async def are_those_of(self, caller: Caller) -> bool:
        for question, answer in self.answers.items():
            if await caller.may(*question) != answer:
                return False
        return True
