"""patch: JSON patch, merge patch, strategic merge (built-in kinds), and server-side apply."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from volcano.api.errors import (
    ApiError,
    BadRequest,
    Conflict,
    FieldError,
    Invalid,
    MethodNotAllowed,
    UnsupportedMediaType,
)
from volcano.api.meta import JSON
from volcano.api.schemas.openapi_table import schema_name
from volcano.embedded.apiserver.calls import Call
from volcano.embedded.apiserver.schemas.apply.strategic import strategic_merge
from volcano.embedded.apiserver.store.contract import Stale
from volcano.embedded.apiserver.verbs.field_ownership import applied
from volcano.embedded.apiserver.verbs.identity import MODIFIED_MESSAGE, check_kind
from volcano.embedded.apiserver.verbs.writing import MAX_ATTEMPTS, Transform, create_object, update_object
from volcano.embedded.apiserver.wire.bodies import APPLY, decode_applied
from volcano.embedded.apiserver.wire.json_text import decode_json
from volcano.embedded.apiserver.wire.representation import reply
from volcano.embedded.apiserver.wire.requests import WriteOptions, write_options
from volcano.machinery.patch import PatchError, json_patch, merge_patch
from volcano.machinery.transport import Response

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
MAX_PATCH_OPERATIONS: Final = 10_000


async def patch(call: Call) -> Response:
    if not call.target.name:
        raise MethodNotAllowed("the server does not allow this method on the requested resource")
    options = write_options(call.request)
    media = call.request.headers.get("content-type", "").split(";")[0].strip().lower()
    if media == APPLY:
        return await _apply(call, options)
    transform = _transform(call, media, options)
    stored, _ = await update_object(call, transform, options, subresource=call.target.subresource, keeps_argument=True)
    return reply(call.renderer().of(stored.raw), 200, call.warnings)


async def _apply(call: Call, options: WriteOptions) -> Response:
    """Server-side apply: merge the given fields into the object, or create it."""
    row, name = call.served.type, call.target.name
    if not options.field_manager:
        error = FieldError("fieldManager", "Required value: is required for apply patch", "FieldValueRequired")
        raise Invalid.of("PatchOptions", "", [error], "meta.k8s.io")
    given = decode_applied(call.request.body)
    check_kind(call, given)
    metadata = given["metadata"]
    if metadata.setdefault("name", name) != name:
        raise BadRequest(f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})")
    if row.namespaced:
        metadata.setdefault("namespace", call.target.namespace)
    now, subresource = call.backend.clock.now(), call.target.subresource
    call.warnings += call.strategy.check_fields(given, mode=options.field_validation)

    def transform(live: JSON | None) -> JSON:
        return applied(
            call.strategy,
            live,
            given,
            manager=options.field_manager,
            force=bool(options.force),
            now=now,
            subresource=subresource,
        )

    for _ in range(MAX_ATTEMPTS):
        if call.backend.store.find(call.key) is None:
            if subresource:
                raise call.not_found()
            if metadata.get("uid"):
                raise Conflict.of(row.plural, name, "uid mismatch: the object does not exist", row.group)
            try:
                stored, _obj = await create_object(call, transform(None), options, is_applied=True)
            except Stale:
                continue
            return reply(call.renderer().of(stored.raw), 201, call.warnings)
        stored, _obj = await update_object(
            call,
            transform,
            options,
            subresource=subresource,
            is_conditional="resourceVersion" in metadata,
            is_applied=True,
        )
        return reply(call.renderer().of(stored.raw), 200, call.warnings)
    raise Conflict.of(row.plural, name, MODIFIED_MESSAGE, row.group)


def patched(call: Call, obj: JSON, options: WriteOptions) -> JSON:
    """The object after the patch in the body; for objects that are not stored, such as a Scale."""
    media = call.request.headers.get("content-type", "").split(";")[0].strip().lower()
    return _transform(call, media, options)(obj)


def _transform(call: Call, media: str, options: WriteOptions) -> Transform:
    accepted = [JSON_PATCH, MERGE_PATCH] + ([STRATEGIC] if call.strategy.strategic_schema else []) + [APPLY]
    if media not in accepted:
        raise UnsupportedMediaType(
            "the body of the request was in an unknown format - accepted media types include: " + ", ".join(accepted)
        )
    if media == APPLY:
        raise UnsupportedMediaType("apply is not supported here")
    makers: Mapping[str, Callable[[Call, Any], Transform]] = {
        JSON_PATCH: _json,
        MERGE_PATCH: _merge,
        STRATEGIC: _strategic,
    }
    return makers[media](call, decode_json(call.request.body))


def _json(call: Call, operations: Any) -> Transform:
    if not isinstance(operations, list):
        raise BadRequest("json patch: the body must be a list of operations")
    if len(operations) > MAX_PATCH_OPERATIONS:
        raise ApiError(
            f"The allowed maximum operations in a JSON patch is {MAX_PATCH_OPERATIONS}, got {len(operations)}",
            code=413,
            reason="RequestEntityTooLarge",
        )

    def transform(obj: JSON) -> JSON:
        try:
            return _object(json_patch(obj, operations))
        except PatchError as error:
            raise Invalid(
                f"the server rejected our request due to an error in our request: {error}", details={}
            ) from error

    return transform


def _merge(call: Call, change: Any) -> Transform:
    if not isinstance(change, dict):
        raise BadRequest("merge patch: the body must be an object")
    return lambda obj: _object(merge_patch(obj, change))


def _strategic(call: Call, change: Any) -> Transform:
    if not isinstance(change, dict):
        raise BadRequest("strategic merge patch: the body must be an object")
    is_scale = call.target.subresource == "scale"
    name = schema_name("autoscaling", "v1", "Scale") if is_scale else call.strategy.strategic_schema
    assert name is not None, "other media types are refused"
    return lambda obj: strategic_merge(obj, change, name)


def _object(found: Any) -> JSON:
    if not isinstance(found, dict):
        raise BadRequest("the patch leaves no object")
    return found
