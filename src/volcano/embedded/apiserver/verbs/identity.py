"""What makes an object the one it is: its kind, its name, and the metadata that only the server sets."""

from __future__ import annotations

from typing import Final

import msgspec

from volcano.api.errors import BadRequest, Conflict, FieldError, Invalid
from volcano.api.meta import JSON
from volcano.embedded.apiserver.calls import Call
from volcano.embedded.apiserver.kinds.metadata import metadata_errors

MAX_GENERATED_PREFIX: Final = 58
"""Characters of generateName that stay in front of the generated suffix."""
_SYSTEM_FIELDS: Final = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
)
MODIFIED_MESSAGE: Final = "the object has been modified; please apply your changes to the latest version and try again"


def check_kind(call: Call, obj: JSON) -> None:
    """Refuse a body of another kind than the URL's; fill in kind and apiVersion where the body has none."""
    row = call.served.type
    for field, usual in (("kind", row.kind), ("apiVersion", row.api_version)):
        if not isinstance(obj.get(field), str | None):
            kind = {bool: "bool", list: "array", dict: "object"}.get(type(obj[field]), "number")
            start = msgspec.json.encode(obj)[:30].decode(errors="replace")
            raise BadRequest(
                f"the object provided is unrecognized (must be of type {row.kind}): couldn't get version/kind; json "
                f"parse error: json: cannot unmarshal {kind} into Go struct field .{field} of type string ({start} ...)"
            )
        obj[field] = obj.get(field) or usual
    call.strategy.check_kind(obj, is_known=lambda *kind: call.backend.registry.of_kind(*kind) is not None)
    if obj.get("metadata") is None:
        obj["metadata"] = {}
    if not isinstance(obj["metadata"], dict):
        call.strategy.check_types(obj)
        raise BadRequest(
            f'{row.kind} in version "{row.version}" cannot be handled as a {row.kind}: metadata must be an object'
        )


def set_new_metadata(call: Call, metadata: JSON) -> None:
    """Give a new object its name, namespace, uid and time; what else only the server sets is dropped."""
    for field in (*_SYSTEM_FIELDS, "resourceVersion"):
        metadata.pop(field, None)
    row = call.served.type
    if not isinstance(metadata.get("name") or "", str) or not isinstance(metadata.get("generateName") or "", str):
        raise Invalid.of(row.kind, "", object_metadata_errors(call, metadata), row.group)
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = f"{metadata['generateName'][:MAX_GENERATED_PREFIX]}{call.backend.ids.suffix()}"
    if row.namespaced:
        given = metadata.get("namespace")
        if given and given != call.target.namespace:
            raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
        metadata["namespace"] = call.target.namespace
    else:
        metadata.pop("namespace", None)
    metadata["uid"] = call.backend.ids.uid()
    metadata["creationTimestamp"] = call.backend.timestamp()
    if call.strategy.has_generation:
        metadata["generation"] = 1


def object_metadata_errors(call: Call, metadata: JSON) -> list[FieldError]:
    return metadata_errors(metadata, call.strategy.name_problems, is_core=not call.served.type.group)


def check_identity(call: Call, new: JSON, old: JSON) -> None:
    """Refuse an update that is about another object, or about another version than the stored one."""
    row, metadata, before = call.served.type, new["metadata"], old["metadata"]
    name = metadata.get("name") or before["name"]
    if name != before["name"]:
        raise BadRequest(f"the name of the object ({name}) does not match the name on the URL ({before['name']})")
    metadata["name"] = name
    if row.namespaced and (metadata.get("namespace") or before["namespace"]) != before["namespace"]:
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
    uid = metadata.get("uid")
    if uid and uid != before["uid"]:
        raise Conflict.of(
            row.plural,
            name,
            f"Precondition failed: UID in precondition: {uid}, UID in object meta: {before['uid']}",
            row.group,
        )
    version = metadata.get("resourceVersion")
    if version and version != before["resourceVersion"]:
        if not isinstance(version, str) or not version.isdigit():
            raise Invalid.of(
                row.kind,
                name,
                [FieldError("metadata.resourceVersion", f"Invalid value: {version!r}: must be an unsigned integer")],
                row.group,
            )
        raise Conflict.of(row.plural, name, MODIFIED_MESSAGE, row.group)
    metadata["resourceVersion"] = before["resourceVersion"]


def keep_system_fields(new: JSON, old: JSON) -> None:
    """Put back what only the server sets."""
    metadata, before = new["metadata"], old["metadata"]
    metadata["name"] = before["name"]
    for field in (*_SYSTEM_FIELDS, "namespace", "resourceVersion"):
        if field in before:
            metadata[field] = before[field]
        else:
            metadata.pop(field, None)


def check_no_new_finalizers(call: Call, new: JSON, old: JSON) -> None:
    """Refuse finalizers that are added to an object that is being deleted."""
    if not old["metadata"].get("deletionTimestamp"):
        return
    added = set(new["metadata"].get("finalizers") or ()) - set(old["metadata"].get("finalizers") or ())
    if added:
        why = (
            "Forbidden: no new finalizers can be added if the object is being deleted, found new "
            f"finalizers {sorted(added)}"
        )
        row, error = call.served.type, FieldError("metadata.finalizers", why, "FieldValueForbidden")
        raise Invalid.of(row.kind, old["metadata"]["name"], [error], row.group)
