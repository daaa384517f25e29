"""Who asks the history of a cluster, and what they may see: TokenReview and SubjectAccessReview, remembered briefly."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final, TypeVar

import msgspec

from volcano.api.errors import ApiError, ServiceUnavailable, Unauthorized
from volcano.api.meta import JSON
from volcano.api.scheme import ResourceType
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock
from volcano.machinery.http_endpoints import json_response
from volcano.machinery.transport import Handler, Request, Response, User

T = TypeVar("T")

REMEMBERED_SECONDS: Final = 10.0
MAX_REMEMBERED: Final = 10_000
MAX_TOKEN_CHARACTERS: Final = 16 * 1024
TOKEN_REVIEWS: Final = ResourceType("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", namespaced=False)
ACCESS_REVIEWS: Final = ResourceType(
    "authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False
)
_BEARER: Final = "bearer "


class ReviewAccess:
    """Asks the API server, and answers the same question again from memory for some seconds."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._known: dict[Hashable, tuple[float, Any]] = {}

    async def user_of(self, token: str) -> User | None:
        """The user of a bearer token; None for a token that the API server does not know."""
        return await self._remembered(("token", token), lambda: ({"token": token}, TOKEN_REVIEWS), _user)

    async def may_list(self, user: User, group: str, resource: str, namespace: str = "") -> bool:
        attributes = {"verb": "list", "group": group, "resource": resource, "namespace": namespace}
        spec = {"user": user.name, "groups": list(user.groups), "uid": user.uid, "resourceAttributes": attributes}
        key = ("list", user.name, user.groups, group, resource, namespace)
        return await self._remembered(key, lambda: (spec, ACCESS_REVIEWS), lambda status: status.get("allowed") is True)

    async def _remembered(
        self, key: Hashable, question: Callable[[], tuple[JSON, ResourceType]], read: Callable[[JSON], T]
    ) -> T:
        now = self._clock.monotonic()
        known = self._known.get(key)
        if known is not None and now - known[0] < REMEMBERED_SECONDS:
            found: T = known[1]
            return found
        spec, resource = question()
        body = msgspec.json.decode(await self._client.create(resource, {"spec": spec}))
        answer = read(body.get("status") or {})
        if len(self._known) >= MAX_REMEMBERED:
            self._known.clear()
        self._known[key] = (now, answer)
        return answer


def _user(status: JSON) -> User | None:
    found = status.get("user") or {}
    if status.get("authenticated") is not True or not found.get("username"):
        return None
    return User(str(found["username"]), tuple(map(str, found.get("groups") or ())), str(found.get("uid") or ""))


def authenticated(handler: Handler, access: ReviewAccess) -> Handler:
    """The handler, for callers with a bearer token that the cluster knows."""

    async def handle(request: Request) -> Response:
        given = request.headers.get("authorization", "")
        token = given[len(_BEARER) :].strip() if given.lower().startswith(_BEARER) else ""
        try:
            user = await access.user_of(token) if 0 < len(token) <= MAX_TOKEN_CHARACTERS else None
            if user is None:
                refusal = Unauthorized("Unauthorized: give a bearer token of the cluster")
                return json_response(refusal.status(), refusal.status_code)
            return await handler(msgspec.structs.replace(request, user=user))
        except (ApiError, OSError, TimeoutError, msgspec.DecodeError, RecursionError):
            failure = ServiceUnavailable("the API server cannot be asked who you are and what you may see")
            return json_response(failure.status(), failure.status_code)

    return handle
