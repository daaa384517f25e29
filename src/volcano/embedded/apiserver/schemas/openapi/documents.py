"""The OpenAPI documents: v3 per group and version with its index, v2 as a whole, also as protobuf.

They list what kubectl looks for: each kind's paths with its group, version and kind, the `fieldValidation` parameter of
its PATCH, and the schemas for `kubectl explain`. Descriptions are empty: the core table has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from volcano.api.meta import JSON
from volcano.api.schemas.openapi_table import LIST_META, OBJECT_META, core_table, schema_name
from volcano.api.scheme import ResourceType
from volcano.embedded.apiserver.schemas.openapi.paths import SCALE_SCHEMA, paths_of
from volcano.embedded.apiserver.schemas.openapi.protobuf_document import openapi_v2_protobuf as openapi_v2_protobuf
from volcano.embedded.apiserver.schemas.openapi.swagger import definition_from

REFERENCE: Final = "#/components/schemas/"
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
ALWAYS_LISTED: Final = (f"{_META}DeleteOptions", f"{_META}Status", f"{_META}APIResourceList", f"{_META}Patch")
_INFO: Final[JSON] = {"title": "Kubernetes", "version": "unversioned"}


def openapi_v3(group_version: str, resources: Iterable[ResourceType], crds: Mapping[str, JSON]) -> JSON:
    """One version of one group.

    `crds` has the openAPIV3Schema of each custom resource, by `jobs.batch.volcano.sh` or, where a CRD has several
    versions, by `jobs.batch.volcano.sh/v1alpha1`.
    """
    rows = [row for row in resources if row.api_version == group_version]
    schemas, names = _component_schemas(rows, crds)
    return {
        "openapi": "3.0.0",
        "info": dict(_INFO),
        "paths": {path: item for row in rows for path, item in paths_of(row, names, version=3)},
        "components": {"schemas": schemas},
    }


def openapi_v3_index(group_versions: Mapping[str, str]) -> JSON:
    """Where each document is; the values are hashes of their contents, so that clients can keep them."""
    paths: JSON = {}
    for group_version, digest in sorted(group_versions.items()):
        path = f"apis/{group_version}" if "/" in group_version else f"api/{group_version}"
        paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"}
    return {"paths": paths}


def openapi_v2(resources: Sequence[ResourceType], crds: Mapping[str, JSON]) -> JSON:
    """All groups in one Swagger document, without what Swagger cannot express."""
    schemas, names = _component_schemas(resources, crds)
    return {
        "swagger": "2.0",
        "info": dict(_INFO),
        "paths": {path: item for row in resources for path, item in paths_of(row, names, version=2)},
        "definitions": {name: definition_from(schema) for name, schema in schemas.items()},
    }


def component_name(row: ResourceType) -> str:
    """`io.k8s.api.apps.v1.Deployment`, or `sh.volcano.batch.v1alpha1.Job` for a custom resource."""
    core = schema_name(row.group, row.version, row.kind)
    if core is not None:
        return core
    return ".".join([*reversed(row.group.split(".")), row.version, row.kind])


# -- schemas --------------------------------------------------------------------------------------------------
def _component_schemas(rows: Iterable[ResourceType], crds: Mapping[str, JSON]) -> tuple[JSON, Mapping[str, str]]:
    """Every schema that the rows need, and the name of each row's own."""
    table = core_table()
    custom: JSON = {}
    names: dict[str, str] = {}
    wanted = [name for name in ALWAYS_LISTED if name in table.schemas]
    for row in rows:
        name = names[row.qualified + "/" + row.version] = component_name(row)
        if "scale" in row.subresources:
            wanted.append(SCALE_SCHEMA)
        if name in table.schemas:
            wanted += [name, f"{name}List"]
            continue
        openapi = crds.get(f"{row.qualified}/{row.version}") or crds.get(row.qualified) or {"type": "object"}
        custom |= _custom_schemas(row, name, openapi)
        wanted += [OBJECT_META, LIST_META]
    found = {name: _component(table.schemas[name]) for name in sorted(_reachable(wanted))}
    return found | custom, names


def _reachable(names: Iterable[str]) -> set[str]:
    table = core_table()
    seen: set[str] = set()
    waiting = [name for name in names if name in table.schemas]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += _references(table.schemas[name])
    return seen


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for item in value.values():
            yield from _references(item)
    elif isinstance(value, list):
        for item in value:
            yield from _references(item)


def _component(schema: JSON) -> JSON:
    """A schema of the table as OpenAPI writes it."""
    answer: JSON = {}
    for key, value in schema.items():
        if key == "properties":
            answer[key] = {name: _component(child) for name, child in value.items()}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            answer[key] = _component(value)
        elif key == "x-embedded":
            answer["default"] = {}
        elif key != "$ref":
            answer[key] = value
    if "$ref" in schema:
        reference = {"$ref": REFERENCE + schema["$ref"]}
        return {**answer, "allOf": [reference]} if answer else reference
    return answer


def _custom_schemas(row: ResourceType, name: str, openapi: JSON) -> JSON:
    kind = {"group": row.group, "kind": row.kind, "version": row.version}
    metadata = {"allOf": [{"$ref": REFERENCE + OBJECT_META}]}
    named: JSON = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
    one = {
        **openapi,
        "properties": {**(openapi.get("properties") or {}), **named, "metadata": metadata},
        "x-kubernetes-group-version-kind": [kind],
    }
    many = {
        "type": "object",
        "required": ["items"],
        "properties": {
            **named,
            "items": {"type": "array", "items": {"$ref": REFERENCE + name}},
            "metadata": {"allOf": [{"$ref": REFERENCE + LIST_META}]},
        },
        "x-kubernetes-group-version-kind": [{**kind, "kind": f"{row.kind}List"}],
    }
    return {name: one, f"{name}List": many}
