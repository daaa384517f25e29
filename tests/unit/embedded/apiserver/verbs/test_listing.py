"""Tokens of paged lists that clients make up are bad requests, whatever they say."""

from __future__ import annotations

import pytest

from volcano.embedded.apiserver.server import ADMIN, ApiServer
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.embedded.apiserver.verbs.listing import Continue
from volcano.machinery.clock import VirtualClock
from volcano.machinery.transport import Request


@pytest.mark.parametrize("revision", [10**6, 2**63 - 1, 2**63])
async def test_a_token_of_the_future_is_a_bad_request(revision: int):
    server = ApiServer(MemoryStore(), clock=VirtualClock())
    query = (("continue", Continue(revision, "default", "a").token()),)

    response = await server.handle(Request("GET", "/api/v1/pods", query, user=ADMIN))

    assert response.status == 400
