"""update: replace an object (or its status) by the one in the body, unless the stored one is newer."""

from __future__ import annotations

from volcano.api.errors import BadRequest, FieldError, Invalid, MethodNotAllowed
from volcano.api.meta import JSON
from volcano.embedded.apiserver.calls import Call
from volcano.embedded.apiserver.verbs.identity import check_kind
from volcano.embedded.apiserver.verbs.writing import update_object
from volcano.embedded.apiserver.wire.bodies import decode_body, duplicates_in
from volcano.embedded.apiserver.wire.representation import reply
from volcano.embedded.apiserver.wire.requests import write_options
from volcano.machinery.transport import Response


async def update(call: Call) -> Response:
    if not call.target.name:
        raise MethodNotAllowed("the server does not allow this method on the requested resource")
    options = write_options(call.request)
    given = given_object(call)
    name = given["metadata"].get("name") or call.target.name
    if name != call.target.name:
        raise BadRequest(f"the name of the object ({name}) does not match the name on the URL ({call.target.name})")
    is_conditional = bool(given["metadata"].get("resourceVersion"))
    if not is_conditional and call.strategy.requires_resource_version and not call.target.subresource:
        row = call.served.type
        raise Invalid.of(
            row.plural,
            call.target.name,
            [FieldError("metadata.resourceVersion", "Invalid value: 0: must be specified for an update")],
            row.group,
        )

    def replace(_: JSON) -> JSON:
        return given_object(call)

    stored, _ = await update_object(
        call,
        replace,
        options,
        subresource=call.target.subresource,
        is_conditional=is_conditional,
        duplicates=duplicates_in(call.request.body, given, mode=options.field_validation),
        keeps_argument=True,
    )
    return reply(call.renderer().of(stored.raw), 200, call.warnings)


def given_object(call: Call) -> JSON:
    """The object in the body; decoded for every attempt, since an attempt changes it."""
    given = decode_body(call.request)
    if call.target.subresource != "scale":
        check_kind(call, given)
    return given
