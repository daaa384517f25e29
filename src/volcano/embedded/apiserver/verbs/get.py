"""get: one object, in the form the client asked for."""

from __future__ import annotations

from volcano.embedded.apiserver.calls import Call
from volcano.embedded.apiserver.verbs.conversion import in_asked_version
from volcano.embedded.apiserver.verbs.listing import require_revision
from volcano.embedded.apiserver.wire.representation import reply
from volcano.machinery.transport import Response


async def get(call: Call) -> Response:
    require_revision(call)
    stored = await in_asked_version(call, call.found())
    return reply(call.renderer().of(stored.raw))
