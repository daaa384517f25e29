"""What a kind's schema does to an object on its way in: unknown fields, pruning, types, defaults, validation.

Custom resources go by their CRD's structural schema, built-in kinds by the table of core schemas (apiserver.schemas).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from volcano.api.errors import BadRequest, FieldError
from volcano.api.meta import JSON
from volcano.embedded.apiserver.kinds.pod_shapes import prepared_spec
from volcano.embedded.apiserver.registry.resources import Served
from volcano.embedded.apiserver.schemas.builtin.core_defaults import apply_core_defaults
from volcano.embedded.apiserver.schemas.builtin.strict_fields import (
    check_types,
    duplicate_fields,
    prune_core,
    strict_error,
    strict_messages,
)


def check_fields(
    served: Served, obj: JSON, *, mode: str, duplicates: Sequence[str] = (), unknown: Sequence[str] = ()
) -> list[str]:
    """Drop what the schema does not know. Strict refuses it, Warn returns warnings, Ignore says nothing."""
    unknown = [*(served.schema.prune(obj) if served.schema is not None else prune_core(served.type, obj)), *unknown]
    if mode != "Ignore" and (unknown or duplicates):
        messages = strict_messages(unknown, list(duplicates))
        if mode == "Strict" and not served.is_custom:
            row, error = served.type, strict_error(messages)
            raise BadRequest(f'{row.kind} in version "{row.version}" cannot be handled as a {row.kind}: {error}')
        if mode == "Strict":
            raise strict_error(messages)
        return messages
    return []


def shape_new(served: Served, obj: JSON, *, mode: str, duplicates: Sequence[str] = ()) -> tuple[JSON, list[str]]:
    """A new object pruned, of the right types and with its defaults; warnings as the mode asks for them."""
    spec = obj.get("spec")
    prepared = prepared_spec(spec) if served.storage == "pods" and type(spec) is dict else None
    rest = {field: value for field, value in obj.items() if field != "spec"} if prepared is not None else obj
    unknown = [] if prepared is None else list(prepared.unknown)
    warnings = check_fields(served, rest, mode=mode, duplicates=duplicates, unknown=unknown)
    check_value_types(served, rest)
    if prepared is None:
        return rest, warnings
    return {**rest, "spec": prepared.spec}, warnings


def check_value_types(served: Served, obj: JSON) -> None:
    """Values that cannot be what their field is are a BadRequest; custom resources say so when they are validated."""
    if served.schema is None:
        check_types(served.type, obj)


def duplicates_in(raw: bytes, decoded: JSON, *, mode: str) -> list[str]:
    """Fields given twice. The whole text is only looked through if it is not exactly what the object encodes to."""
    if mode == "Ignore" or len(msgspec.json.encode(decoded)) == len(raw):
        return []
    try:
        return duplicate_fields(raw)
    except (ValueError, RecursionError):
        return []


def apply_defaults(served: Served, obj: JSON) -> None:
    if served.schema is not None:
        served.schema.default(obj)
    else:
        apply_core_defaults(served.type, obj)


def schema_errors(served: Served, obj: JSON, old: JSON | None) -> Sequence[FieldError]:
    if served.schema is None:
        return []
    errors: Sequence[FieldError] = served.schema.validate(obj, old=old)
    return errors
