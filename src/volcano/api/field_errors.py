"""Field errors worded as the API server words them: `Invalid value: "x": must be …`.

Each function makes one `FieldError` (api.errors) at a path; `child` and `item` write paths.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from volcano.api.errors import FieldError


def child(path: str, *names: str) -> str:
    """`spec` and `containers` make `spec.containers`."""
    return ".".join(part for part in (path, *names) if part)


def item(path: str, index: int | str) -> str:
    """`containers[0]`, or `requests[cpu]` for a map."""
    return f"{path}[{index}]"


def invalid(path: str, value: Any, detail: str) -> FieldError:
    return _with_value("Invalid value", "FieldValueInvalid", path, value, detail)


def type_invalid(path: str, value: Any, detail: str) -> FieldError:
    return _with_value("Invalid value", "FieldValueTypeInvalid", path, value, detail)


def required(path: str, detail: str = "") -> FieldError:
    return _without_value("Required value", "FieldValueRequired", path, detail)


def forbidden(path: str, detail: str = "") -> FieldError:
    return _without_value("Forbidden", "FieldValueForbidden", path, detail)


def duplicate(path: str, value: Any) -> FieldError:
    return _with_value("Duplicate value", "FieldValueDuplicate", path, value, "")


def not_found(path: str, value: Any, detail: str = "") -> FieldError:
    return _with_value("Not found", "FieldValueNotFound", path, value, detail)


def not_supported(path: str, value: Any, supported: Iterable[str]) -> FieldError:
    listed = ", ".join(_quoted(str(choice)) for choice in supported)
    detail = f"supported values: {listed}" if listed else ""
    return _with_value("Unsupported value", "FieldValueNotSupported", path, value, detail)


def too_long(path: str, limit: int) -> FieldError:
    return _without_value("Too long", "FieldValueTooLong", path, f"may not be more than {limit} bytes")


def too_many(path: str, actual: int, limit: int) -> FieldError:
    detail = f"must have at most {limit} item{'' if limit == 1 else 's'}"
    return _with_value("Too many", "FieldValueTooMany", path, actual, detail)


def invalid_each(path: str, value: Any, problems: Iterable[str]) -> list[FieldError]:
    """One error per problem that a check of api.names found."""
    return [invalid(path, value, problem) for problem in problems]


def shown(value: Any) -> str:
    """A value as errors print it: texts quoted, numbers and truth plain, the rest as JSON."""
    if isinstance(value, str):
        return _quoted(value)
    return json.dumps(value, separators=(",", ":"), default=str)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _with_value(kind: str, reason: str, path: str, value: Any, detail: str) -> FieldError:
    message = f"{kind}: {shown(value)}"
    return FieldError(path, f"{message}: {detail}" if detail else message, reason)


def _without_value(kind: str, reason: str, path: str, detail: str) -> FieldError:
    return FieldError(path, f"{kind}: {detail}" if detail else kind, reason)
