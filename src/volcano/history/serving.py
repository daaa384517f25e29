"""The read API over HTTP: GET paths below HISTORY_PATH, answered with the records of volcano.api.history_records.

Callers see the namespaces in which they may list Volcano's Jobs; queues and nodes need the right to list those.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, Protocol, TypeVar

import msgspec

from volcano.api.errors import ApiError, BadRequest, Forbidden, MethodNotAllowed, NotFound, ServiceUnavailable
from volcano.api.history_records import HISTORY_PATH, HISTORY_SERVICE
from volcano.api.times import parse_timestamp
from volcano.history.history import History
from volcano.history.problems import DatabaseProblem
from volcano.history.questions import (
    EvictionQuestion,
    JobQuestion,
    Namespaces,
    QuestionRefused,
    SampleQuestion,
    UsageQuestion,
)
from volcano.machinery.clock import Clock
from volcano.machinery.http_endpoints import json_response
from volcano.machinery.transport import Handler, Request, Response, User

Q = TypeVar("Q", bound=msgspec.Struct)

DEFAULT_PERIOD: Final = timedelta(days=1)
MAX_NAMESPACES_ASKED: Final = 1000
"""Whose visibility is asked one by one for a caller who may not list the jobs of all."""
OWN: Final = {"group": HISTORY_SERVICE}
"""Tells an answer of the history from that of a server without one."""
JOBS: Final = ("batch.volcano.sh", "jobs")
QUEUES: Final = ("scheduling.volcano.sh", "queues")
NODES: Final = ("", "nodes")


class HistoryAccess(Protocol):
    """Whether a user may list a resource, in a namespace or everywhere."""

    async def may_list(self, user: User, group: str, resource: str, namespace: str = "") -> bool: ...


class HistoryPages:
    """Answers requests whose `user` is known."""

    def __init__(self, history: History, access: HistoryAccess, clock: Clock) -> None:
        self._history, self._access, self._clock = history, access, clock
        self._pages: Mapping[str, Callable[[Request, User], Awaitable[object]]] = {
            "jobs": self._jobs,
            "job-counts": self._counts,
            "pods": self._pods,
            "evictions": self._evictions,
            "usage": self._usage,
            "queues": self._queues,
            "nodes": self._nodes,
            "moment": self._moment,
            "gaps": self._gaps,
        }

    def handler(self) -> Handler:
        return self.answer

    async def answer(self, request: Request) -> Response:
        """Never raises for what a caller can ask; errors are a Status, as the API server's."""
        try:
            return json_response(await self._answer(request))
        except QuestionRefused as error:
            return _error(BadRequest(str(error)))
        except DatabaseProblem:
            return _error(ServiceUnavailable("the history cannot be read now; its log says why"))
        except ApiError as error:
            return _error(error)

    async def _answer(self, request: Request) -> object:
        if request.method not in ("GET", "HEAD"):
            raise MethodNotAllowed("the history can only be read")
        assert request.user is not None, "the caller is authenticated first"
        page, _, rest = request.path.removeprefix(HISTORY_PATH).strip("/").partition("/")
        if page == "jobs" and rest:
            return await self._story(rest, request.user)
        answer = self._pages.get(page)
        if answer is None or rest:
            raise NotFound(f"the history has no page {page[:64]!r}; it has {', '.join(self._pages)}", details=OWN)
        return await answer(request, request.user)

    # -- pages ----------------------------------------------------------------------------------------------------
    async def _jobs(self, request: Request, user: User) -> object:
        return await self._history.jobs(await self._question(JobQuestion, request, user))

    async def _counts(self, request: Request, user: User) -> object:
        question = await self._question(JobQuestion, request, user, other=("by",))
        return await self._history.job_counts(question, request.param("by", "queue"))

    async def _story(self, uid: str, user: User) -> object:
        story = await self._history.story(uid, await self.visible(user))
        if story is None:
            raise NotFound(f"the history has no job with the UID {uid[:64]!r}", details=OWN)
        return story

    async def _pods(self, request: Request, user: User) -> object:
        at = request.param("at")
        return await self._history.pods(
            job_uid=request.param("job"),
            node=request.param("node"),
            at=_moment("at", at) if at else None,
            visible=await self.visible(user),
        )

    async def _evictions(self, request: Request, user: User) -> object:
        return await self._history.evictions(await self._question(EvictionQuestion, request, user, timed=True))

    async def _usage(self, request: Request, user: User) -> object:
        return await self._history.usage(await self._question(UsageQuestion, request, user, timed=True))

    async def _queues(self, request: Request, user: User) -> object:
        await self._require(user, QUEUES)
        return await self._history.queue_samples(await self._question(SampleQuestion, request, user, timed=True))

    async def _nodes(self, request: Request, user: User) -> object:
        await self._require(user, NODES)
        return await self._history.node_samples(await self._question(SampleQuestion, request, user, timed=True))

    async def _moment(self, request: Request, user: User) -> object:
        return await self._history.moment(
            _moment("at", request.param("at")),
            await self.visible(user),
            with_nodes=await self._access.may_list(user, *NODES),
            with_queues=await self._access.may_list(user, *QUEUES),
        )

    async def _gaps(self, request: Request, user: User) -> object:
        since = request.param("since")
        return await self._history.gaps(_moment("since", since) if since else self._clock.now() - DEFAULT_PERIOD)

    # -- rights ---------------------------------------------------------------------------------------------------
    async def visible(self, user: User) -> Namespaces:
        """The namespaces whose jobs the user may list; None: all."""
        if await self._access.may_list(user, *JOBS):
            return None
        names = sorted(await self._history.namespaces())[:MAX_NAMESPACES_ASKED]
        return frozenset([name for name in names if await self._access.may_list(user, *JOBS, name)])

    async def _require(self, user: User, what: tuple[str, str]) -> None:
        if not await self._access.may_list(user, *what):
            raise Forbidden(f'User "{user.name}" cannot list resource "{what[1]}" in API group "{what[0]}"')

    # -- parameters -----------------------------------------------------------------------------------------------
    async def _question(
        self, kind: type[Q], request: Request, user: User, *, timed: bool = False, other: tuple[str, ...] = ()
    ) -> Q:
        given = parameters(kind, request, other)
        if timed:
            given.setdefault("until", self._clock.now())
            given.setdefault("since", given["until"] - DEFAULT_PERIOD)
        if "visible" in kind.__struct_fields__:
            given["visible"] = await self.visible(user)
        return kind(**given)


def parameters(kind: type[msgspec.Struct], request: Request, other: tuple[str, ...] = ()) -> dict[str, Any]:
    """The query's values as the fields of a question; a name or a value that it does not have is refused."""
    fields = {field.name: field.type for field in msgspec.structs.fields(kind) if field.name != "visible"}
    found: dict[str, Any] = {}
    for name, text in request.query:
        if name in other:
            continue
        if name not in fields:
            raise QuestionRefused(f"{name[:64]}: is not a parameter; they are {', '.join([*fields, *other])}")
        found[name] = _value(name, fields[name], text)
    return found


def _value(name: str, kind: Any, text: str) -> Any:
    if kind in (datetime, datetime | None):
        return _moment(name, text)
    if kind == tuple[str, ...]:
        return tuple(part for part in text.split(",") if part)
    if kind is str:
        return text
    try:
        return msgspec.convert(text, kind, strict=False)
    except msgspec.ValidationError as error:
        raise QuestionRefused(f"{name}: {error}") from error


def _moment(name: str, text: str) -> datetime:
    try:
        return parse_timestamp(text)
    except ValueError as error:
        raise QuestionRefused(f"{name}: {error}") from error


def _error(error: ApiError) -> Response:
    return json_response(error.status(), error.status_code)
