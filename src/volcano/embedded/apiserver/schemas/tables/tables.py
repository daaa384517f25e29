"""Server-side tables: what `kubectl get` prints, for built-in kinds, for CRDs by their columns, else name and age."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, Final

from volcano.api.ages import age
from volcano.api.go_text import go_json, go_number
from volcano.api.meta import JSON
from volcano.api.scheme import ResourceType
from volcano.api.times import timestamp
from volcano.embedded.apiserver.schemas.reading import moment, text
from volcano.embedded.apiserver.schemas.tables.json_paths import PathError, compile_path, find
from volcano.embedded.apiserver.schemas.tables.pod_cells import row_conditions
from volcano.embedded.apiserver.schemas.tables.printers import PRINTERS, Cells

AGE_COLUMN: Final[JSON] = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def table_for(
    resource: ResourceType,
    objects: Sequence[JSON],
    *,
    crd_columns: Sequence[Mapping[str, Any]] | None = None,
    is_custom: bool = False,
    now: datetime,
    include_object: str = "Metadata",
    metadata: JSON | None = None,
    version: str = "v1",
) -> JSON:
    """A meta.k8s.io Table; `crd_columns` are a CRD's additionalPrinterColumns, `include_object` a parameter."""
    if crd_columns is not None or is_custom:
        chosen = [dict(column) for column in (crd_columns if crd_columns is not None else [AGE_COLUMN])]
        columns, cells = _custom_columns(chosen), _custom_cells(chosen)
    else:
        columns, cells = _built_in(resource.group, resource.kind)
    is_pod = not resource.group and resource.kind == "Pod"
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": metadata or {},
        "columnDefinitions": columns,
        "rows": [_row(obj, cells(obj, now), include_object, version, is_pod=is_pod) for obj in objects],
    }


def _row(obj: JSON, cells: list[Any], include_object: str, version: str, *, is_pod: bool) -> JSON:
    row: JSON = {"cells": cells}
    if is_pod and (conditions := row_conditions(obj)):
        row["conditions"] = conditions
    if include_object == "Object":
        row["object"] = obj
    elif include_object != "None":
        row["object"] = {
            "kind": "PartialObjectMetadata",
            "apiVersion": f"meta.k8s.io/{version}",
            "metadata": obj.get("metadata") or {},
        }
    return row


def _column(name: str, kind: str = "string", *, layout: str = "", words: str = "", priority: int = 0) -> JSON:
    return {"name": name, "type": kind, "format": layout, "description": words, "priority": priority}


@cache
def _columns_from(spec: str) -> tuple[JSON, ...]:
    """The columns that a line of PRINTERS describes; the name comes first unless the line has its own."""
    columns = []
    for part in spec.split(", "):
        name, _, kind = part.removesuffix("!").partition(":")
        layout = "name" if name in ("Name", "Attacher") else ""
        columns.append(_column(name, kind or "string", layout=layout, priority=int(part.endswith("!"))))
    if not any(column["name"] == "Name" for column in columns):
        columns.insert(0, _column("Name", layout="name"))
    return tuple(columns)


def _built_in(group: str, kind: str) -> tuple[list[JSON], Cells]:
    if (group, kind) in PRINTERS:
        spec, cells = PRINTERS[group, kind]
        return [dict(column) for column in _columns_from(spec)], cells
    return [_column("Name", layout="name"), _column("Created At", "date")], _created_at


def _created_at(obj: JSON, now: datetime) -> list[Any]:
    created = moment(obj, "metadata", "creationTimestamp")
    shown = timestamp(created) if created is not None else "<unknown>"
    return [text(obj, "metadata", "name"), shown]


# -- columns of CRDs ------------------------------------------------------------------------------------------
def _custom_columns(columns: Sequence[JSON]) -> list[JSON]:
    return [
        _column("Name", layout="name"),
        *(
            _column(
                str(column.get("name", "")),
                str(column.get("type", "string")),
                layout=str(column.get("format") or ""),
                words=str(column.get("description") or ""),
                priority=column.get("priority") or 0,
            )
            for column in columns
        ),
    ]


def _custom_cells(columns: Sequence[JSON]) -> Cells:
    paths = [(_steps(str(column.get("jsonPath") or "")), column.get("type")) for column in columns]

    def cells(obj: JSON, now: datetime) -> list[Any]:
        row: list[Any] = [text(obj, "metadata", "name")]
        for steps, kind in paths:
            found = find(obj, steps) if steps is not None else []
            row.append(_cell(found[0], str(kind), now) if found else None)
        return row

    return cells


def _steps(path: str) -> Any:
    try:
        return compile_path(path)
    except PathError:
        return None  # the column stays empty


def _cell(value: Any, kind: str, now: datetime) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "integer":
        return int(value) if is_number and abs(value) < 2**63 else None
    if kind == "number":
        return float(value) if is_number and abs(value) < 2**1000 else None
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    if kind == "date":
        if not isinstance(value, str):
            return None
        since = moment({"at": value}, "at")
        return age(since, now) if since is not None else "<invalid>"
    return _printed(value)


def _printed(value: Any) -> str | None:
    """A value of any type as a string column shows it."""
    if value is None:
        return "<none>"
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return go_number(value)
    return go_json(value)
