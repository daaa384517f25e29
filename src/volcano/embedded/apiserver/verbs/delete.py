"""delete and deletecollection: preconditions, finalizers, propagation, and the time that an object has to end."""

from __future__ import annotations

import copy
from datetime import timedelta
from typing import Any, Final

import msgspec

from volcano.api.errors import BadRequest, Conflict, FieldError, Invalid
from volcano.api.field_errors import not_supported
from volcano.api.meta import JSON
from volcano.api.times import timestamp
from volcano.embedded.apiserver.calls import Call
from volcano.embedded.apiserver.registry.selection import selection_from
from volcano.embedded.apiserver.store.contract import Stale, Stored
from volcano.embedded.apiserver.verbs.commit import commit, remove
from volcano.embedded.apiserver.verbs.conversion import all_in_asked_version, in_asked_version
from volcano.embedded.apiserver.verbs.identity import MODIFIED_MESSAGE
from volcano.embedded.apiserver.verbs.writing import MAX_ATTEMPTS
from volcano.embedded.apiserver.wire.bodies import decode_request_kind
from volcano.embedded.apiserver.wire.representation import reply, success
from volcano.embedded.apiserver.wire.requests import dry_run, invalid_option, number
from volcano.machinery.admission import DELETE, Attributes
from volcano.machinery.transport import Request, Response

POLICIES: Final = ("Background", "Foreground", "Orphan")
FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"


class DeleteOptions(msgspec.Struct, frozen=True):
    grace_seconds: int | None = None
    policy: str = ""
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False


def delete_options(call: Call) -> DeleteOptions:
    """From the body, or else from the query."""
    body = decode_request_kind(call.request, "v1", "DeleteOptions") if call.request.body.strip() else {}
    return delete_options_from(body, call.request)


def delete_options_from(body: JSON, request: Request) -> DeleteOptions:
    grace: Any = body.get("gracePeriodSeconds", number(request, "gracePeriodSeconds"))
    if grace is not None and (not isinstance(grace, int) or isinstance(grace, bool)):
        raise BadRequest("DeleteOptions: gracePeriodSeconds must be an integer")
    policy = body.get("propagationPolicy") or request.param("propagationPolicy")
    orphans = body.get("orphanDependents")
    if orphans is not None and policy:
        raise _invalid(
            "propagationPolicy",
            f'Invalid value: "{policy}": orphanDependents and deletionPropagation cannot be both set',
        )
    if orphans is not None:
        policy = "Orphan" if orphans else "Background"
    if policy and policy not in POLICIES:
        choices = ("Foreground", "Background", "Orphan", "nil")
        raise invalid_option("DeleteOptions", not_supported("propagationPolicy", policy, choices))
    preconditions = body.get("preconditions") or {}
    if not isinstance(preconditions, dict):
        raise BadRequest("DeleteOptions: preconditions must be an object")
    asked = body.get("dryRun") or request.params("dryRun")
    if not isinstance(asked, list) or not all(isinstance(value, str) for value in asked):
        raise BadRequest("DeleteOptions: dryRun must be a list of strings")
    return DeleteOptions(
        None if grace is None else max(0, min(grace, 2**31)),
        str(policy or ""),
        str(preconditions.get("uid") or ""),
        str(preconditions.get("resourceVersion") or ""),
        dry_run(asked),
    )


def _invalid(path: str, message: str) -> Invalid:
    return Invalid.of("DeleteOptions", "", [FieldError(path, message)], "meta.k8s.io")


async def delete(call: Call) -> Response:
    options = delete_options(call)
    stored, obj, is_gone = await delete_object(call, options)
    if is_gone and not call.strategy.delete_returns_object:
        row = call.served.type
        details = {"name": stored.key.name, "kind": row.plural, "uid": obj["metadata"].get("uid", "")}
        return reply(success(details | ({"group": row.group} if row.group else {})), 200, call.warnings)
    return reply(call.renderer().of(stored.raw), 200, call.warnings)


async def delete_object(call: Call, options: DeleteOptions) -> tuple[Stored, JSON, bool]:
    """Mark the object as being deleted, or remove it at once if nothing holds it; true when it is gone."""
    for _ in range(MAX_ATTEMPTS):
        stored = await in_asked_version(call, call.found())
        obj: JSON = call.strategy.from_stored(msgspec.json.decode(stored.raw))
        _check_preconditions(call, obj, options)
        attributes = _attributes(call, obj, options)
        await _admit(call, attributes)
        try:
            async with call.backend.admission.turn(attributes):
                return await _delete_once(call, stored, obj, options)
        except Stale:
            continue
    row = call.served.type
    raise Conflict.of(row.plural, call.target.name, MODIFIED_MESSAGE, row.group)


async def _delete_once(call: Call, stored: Stored, obj: JSON, options: DeleteOptions) -> tuple[Stored, JSON, bool]:
    strategy = call.strategy
    grace = strategy.grace_seconds(obj, options.grace_seconds)
    marked = copy.deepcopy(obj)
    _set_finalizers(marked, options.policy)
    if not marked["metadata"].get("finalizers") and not strategy.is_held(marked) and not grace:
        strategy.mark_deleted(marked, call.backend.timestamp())
        gone, _ = await remove(call, stored, marked, dry_run=options.dry_run)
        return gone, marked, True
    _mark(call, marked, grace)
    if marked == obj:
        return stored, obj, False
    if not obj["metadata"].get("deletionTimestamp") and strategy.has_generation:
        marked["metadata"]["generation"] = (obj["metadata"].get("generation") or 0) + 1
    kept, _ = await commit(call, stored.key, marked, expected=stored.revision, dry_run=options.dry_run)
    return kept, marked, False


def _set_finalizers(obj: JSON, policy: str) -> None:
    finalizers = [f for f in obj["metadata"].get("finalizers") or [] if f not in (FOREGROUND, ORPHAN)]
    had = [f for f in obj["metadata"].get("finalizers") or [] if f in (FOREGROUND, ORPHAN)]
    if policy == "Foreground":
        finalizers.append(FOREGROUND)
    elif policy == "Orphan":
        finalizers.append(ORPHAN)
    elif not policy:
        finalizers += had
    if finalizers:
        obj["metadata"]["finalizers"] = finalizers
    else:
        obj["metadata"].pop("finalizers", None)


def _mark(call: Call, obj: JSON, grace: int) -> None:
    metadata = obj["metadata"]
    was_marked = bool(metadata.get("deletionTimestamp"))
    if not was_marked or grace < (metadata.get("deletionGracePeriodSeconds") or 0):
        moment = call.backend.clock.now() + timedelta(seconds=grace)
        metadata["deletionTimestamp"] = timestamp(moment)
        metadata["deletionGracePeriodSeconds"] = grace
    call.strategy.mark_deleting(obj)


def _check_preconditions(call: Call, obj: JSON, options: DeleteOptions) -> None:
    row, metadata = call.served.type, obj["metadata"]
    if options.uid and options.uid != metadata["uid"]:
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({metadata['uid']}). "
            "The object might have been deleted and then recreated"
        )
        raise Conflict.of(row.kind, call.target.name, why, row.group)
    if options.resource_version and options.resource_version != metadata["resourceVersion"]:
        why = (
            f"Precondition failed: ResourceVersion in precondition: {options.resource_version}, "
            f"ResourceVersion in object meta: {metadata['resourceVersion']}"
        )
        raise Conflict.of(row.plural, call.target.name, why, row.group)


def _attributes(call: Call, obj: JSON, options: DeleteOptions) -> Attributes:
    return Attributes(
        operation=DELETE,
        resource=call.served.type,
        name=obj["metadata"]["name"],
        namespace=obj["metadata"].get("namespace", ""),
        object=None,
        old=obj,
        user=call.user,
        dry_run=options.dry_run,
    )


async def _admit(call: Call, attributes: Attributes) -> None:
    _, warnings = await call.backend.admission.mutate(attributes)
    warnings = [*warnings, *await call.backend.admission.validate(attributes)]
    call.warnings += [warning for warning in dict.fromkeys(warnings) if warning not in call.warnings]


async def delete_collection(call: Call) -> Response:
    """Every object of the selection, each by the rules of delete."""
    options = delete_options(call)
    namespace = call.target.namespace if call.served.type.namespaced else ""
    selection = selection_from(call.request, call.served, namespace=namespace)
    store = call.backend.store
    matching = [s for s in store.scan(call.served.storage, namespace) if selection.matches(s)]
    limit = number(call.request, "limit") or len(matching)
    for stored in matching[:limit]:
        target = msgspec.structs.replace(call.target, name=stored.key.name, namespace=stored.key.namespace)
        one = Call(call.backend, call.request, target, call.served, call.user, call.warnings)
        if store.find(stored.key) is not None:
            await delete_object(one, options)
    metadata = {"resourceVersion": str(store.revision)}
    shown = await all_in_asked_version(call, matching[:limit])
    return reply(call.renderer().list_of(shown, metadata), 200, call.warnings)
