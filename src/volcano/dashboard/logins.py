"""How a token becomes a Caller: it is checked by a TokenReview, and what the caller then does happens as that user."""

from __future__ import annotations

from typing import Final, Protocol

import msgspec

from volcano.api.errors import ApiError
from volcano.api.scheme import ResourceType
from volcano.dashboard.callers import Caller
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock
from volcano.machinery.transport import User

TOKEN_REVIEWS: Final = ResourceType("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", namespaced=False)
MAX_TOKEN_CHARACTERS: Final = 16 * 1024


class ClientMaker(Protocol):
    """The client that acts as a user: with the token itself, or inside one process as the user that it names."""

    def __call__(self, token: str, user: User) -> Client: ...


class TokenLogin:
    """Signs in with a bearer token of the API server."""

    def __init__(self, client: Client, clock: Clock, client_for: ClientMaker) -> None:
        self._client, self._clock, self._client_for = client, clock, client_for

    async def caller(self, token: str) -> Caller | None:
        """None for a token that the API server does not accept."""
        token = token.strip()
        user = await self._user(token)
        if user is None:
            return None

        async def still_valid() -> bool:
            return await self._user(token) is not None

        return Caller(user.name, user.groups, self._client_for(token, user), self._clock, still_valid)

    async def _user(self, token: str) -> User | None:
        if not token or len(token) > MAX_TOKEN_CHARACTERS or not token.isprintable():
            return None
        try:
            answer = await self._client.create(TOKEN_REVIEWS, {"spec": {"token": token}})
        except ApiError as error:
            if error.status_code in (400, 401, 422):
                return None
            raise
        status = msgspec.json.decode(answer).get("status") or {}
        if not status.get("authenticated"):
            return None
        found = status.get("user") or {}
        extra = {name: tuple(map(str, values)) for name, values in (found.get("extra") or {}).items()}
        groups = tuple(map(str, found.get("groups") or ()))
        return User(str(found.get("username") or ""), groups, str(found.get("uid") or ""), extra)
