"""create: a new object, its name given or generated."""

from __future__ import annotations

from typing import Final

from volcano.api.errors import AlreadyExists, MethodNotAllowed
from volcano.embedded.apiserver.calls import Call
from volcano.embedded.apiserver.store.contract import Stale
from volcano.embedded.apiserver.verbs.identity import check_kind
from volcano.embedded.apiserver.verbs.writing import create_object
from volcano.embedded.apiserver.wire.bodies import decode_body, duplicates_in
from volcano.embedded.apiserver.wire.representation import reply
from volcano.embedded.apiserver.wire.requests import write_options
from volcano.machinery.transport import Response

MAX_NAME_ATTEMPTS: Final = 8


async def create(call: Call) -> Response:
    if call.target.name:
        raise MethodNotAllowed("the server does not allow this method on the requested resource")
    if call.served.is_terminating:
        raise MethodNotAllowed("create not allowed while custom resource definition is terminating")
    options = write_options(call.request)
    for attempt in range(MAX_NAME_ATTEMPTS):
        obj = decode_body(call.request)
        duplicates = duplicates_in(call.request.body, obj, mode=options.field_validation)
        obj = {"apiVersion": call.served.type.api_version, "kind": call.served.type.kind, **obj}
        check_kind(call, obj)
        generates = not obj["metadata"].get("name") and bool(obj["metadata"].get("generateName"))
        try:
            stored, _ = await create_object(call, obj, options, duplicates=duplicates)
        except Stale:
            if generates and attempt + 1 < MAX_NAME_ATTEMPTS:
                continue
            row = call.served.type
            raise AlreadyExists.of(row.plural, str(obj["metadata"].get("name")), row.group) from None
        return reply(call.renderer().of(stored.raw), 201, call.warnings)
    raise AssertionError("the last attempt returns or raises")
