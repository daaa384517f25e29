"""Field errors worded as Kubernetes words them: `spec.tasks[0].name: Invalid value: "x": must be …`.

Each function makes one `FieldError` (api.errors) at a path. While walking a deep object, a path is kept as nested
pairs (parent, step) and becomes text only when something is wrong; `child` and `item` extend a path that is text.
How values are printed is api.go_text's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from volcano.api.errors import FieldError
from volcano.api.go_text import go_json, go_number, quoted

Path: TypeAlias = tuple[Any, str | int] | str | None
"""A pair of the parent's path and the next step (a name or an index); text is a prefix; None is the root."""

NO_PATH: Final = "<nil>"
"""How Kubernetes prints the path of errors that concern no single field."""


def path_text(path: Path) -> str:
    """`spec.tasks[0].name`."""
    steps: list[str | int] = []
    while isinstance(path, tuple):
        path, step = path
        steps.append(step)
    text = path or ""
    for step in reversed(steps):
        text = item(text, step) if isinstance(step, int) else child(text, step)
    return text


def child(path: str, *names: str) -> str:
    """`spec` and `containers` make `spec.containers`."""
    return ".".join(part for part in (path, *names) if part)


def item(path: str, index: int | str) -> str:
    """`containers[0]`, or `requests[cpu]` for a map."""
    return f"{path}[{index}]"


def shown(value: Any) -> str:
    """A value as a field error prints it: texts quoted, numbers and truth plain, the rest as JSON."""
    if isinstance(value, str):
        return quoted(value)
    return go_number(value) if isinstance(value, float) else go_json(value)


def invalid(path: Path, value: Any, detail: str) -> FieldError:
    return _with_value("Invalid value", "FieldValueInvalid", path, value, detail)


def type_invalid(path: Path, value: Any, detail: str) -> FieldError:
    return _with_value("Invalid value", "FieldValueTypeInvalid", path, value, detail)


def required(path: Path, detail: str = "") -> FieldError:
    return _without_value("Required value", "FieldValueRequired", path, detail)


def forbidden(path: Path, detail: str = "") -> FieldError:
    return _without_value("Forbidden", "FieldValueForbidden", path, detail)


def duplicate(path: Path, value: Any) -> FieldError:
    return _with_value("Duplicate value", "FieldValueDuplicate", path, value, "")


def not_found(path: Path, value: Any, detail: str = "") -> FieldError:
    return _with_value("Not found", "FieldValueNotFound", path, value, detail)


def not_supported(path: Path, value: Any, supported: Iterable[Any]) -> FieldError:
    """`Unsupported value: "x": supported values: "a", "b"`."""
    listed = ", ".join(quoted(each if isinstance(each, str) else go_json(each)) for each in supported)
    detail = f"supported values: {listed}" if listed else ""
    return _with_value("Unsupported value", "FieldValueNotSupported", path, value, detail)


def too_long(path: Path, limit_bytes: int) -> FieldError:
    detail = f"may not be more than {limit_bytes} {'byte' if limit_bytes == 1 else 'bytes'}"
    return _without_value("Too long", "FieldValueTooLong", path, detail)


def too_many(path: Path, actual: int, limit: int) -> FieldError:
    detail = f"must have at most {limit} {'item' if limit == 1 else 'items'}"
    return _with_value("Too many", "FieldValueTooMany", path, actual, detail)


def pathless(detail: str) -> FieldError:
    """An error of the schema as a whole, which Kubernetes reports without a path."""
    return invalid(NO_PATH, "", detail)


def _with_value(kind: str, reason: str, path: Path, value: Any, detail: str) -> FieldError:
    message = f"{kind}: {shown(value)}"
    return FieldError(path_text(path), f"{message}: {detail}" if detail else message, reason)


def _without_value(kind: str, reason: str, path: Path, detail: str) -> FieldError:
    return FieldError(path_text(path), f"{kind}: {detail}" if detail else kind, reason)
