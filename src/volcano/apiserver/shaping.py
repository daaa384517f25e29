"""What a kind's schema does to an object on its way in: unknown fields, pruning, defaults, validation.

Custom resources go by their CRD's structural schema, built-in kinds by the table of core schemas (apiserver.schemas).
"""

from __future__ import annotations

from collections.abc import Sequence

from volcano.api.errors import BadRequest, FieldError
from volcano.api.meta import JSON
from volcano.apiserver.resources import Served


def check_fields(served: Served, obj: JSON, *, raw: bytes | None, mode: str) -> list[str]:
    """Prune what the schema does not know. Strict refuses it, Warn returns warnings, Ignore says nothing."""
    found: list[str] = []
    if served.schema is not None:
        found = [f'unknown field "{path}"' for path in served.schema.prune(obj)]
    if mode == "Strict" and found:
        raise BadRequest(f"strict decoding error: {', '.join(found)}")
    return found if mode == "Warn" else []


def apply_defaults(served: Served, obj: JSON) -> None:
    if served.schema is not None:
        served.schema.default(obj)


def schema_errors(served: Served, obj: JSON, old: JSON | None) -> Sequence[FieldError]:
    if served.schema is None:
        return []
    errors: Sequence[FieldError] = served.schema.validate(obj, old=old)
    return errors
