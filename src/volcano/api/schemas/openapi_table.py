"""The schemas of Kubernetes' own kinds: names, types, list keys, patch strategies, defaults; no prose.

Read once, when first asked for, from data/core_schemas.json.z, which tools/generate_core_schemas.py makes. A schema is
an OpenAPI object in which a reference is {"$ref": "<schema name>"}. The table is shared and must not be changed.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, Final

import msgspec

from volcano.api.meta import JSON

QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
INT_OR_STRING: Final = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
TIME: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.Time"
MICRO_TIME: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime"
OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
LIST_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"
LABEL_SELECTOR: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector"
JSON_SCHEMA: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
_EXTENSIONS: Final = JSON_SCHEMA.removesuffix("JSONSchemaProps")
SCHEMA_OR: Final = tuple(_EXTENSIONS + name for name in ("JSONSchemaPropsOrArray", "JSONSchemaPropsOrBool"))
"""A schema where something else may be as well."""

FREE_FORM: Final = frozenset(
    {
        "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
        "io.k8s.apimachinery.pkg.runtime.RawExtension",
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON",
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray",
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool",
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray",
    }
)
"""Schemas without properties; every field in them is kept."""


class CoreTable(msgspec.Struct, frozen=True):
    """All schemas by name, and the name of each kind's schema."""

    release: str
    schemas: Mapping[str, JSON]
    kinds: Mapping[tuple[str, str, str], str]

    def resolve(self, schema: JSON) -> JSON:
        """The schema itself, or the one it refers to."""
        name = schema.get("$ref")
        return self.schemas[name] if name is not None else schema


@cache
def core_table() -> CoreTable:
    packed = resources.files("volcano.api").joinpath("data/core_schemas.json.z").read_bytes()
    table: dict[str, Any] = msgspec.json.decode(zlib.decompress(packed))
    schemas: dict[str, JSON] = table["schemas"]
    kinds = {
        (kind["group"], kind["version"], kind["kind"]): name
        for name, schema in schemas.items()
        for kind in schema.get("x-kubernetes-group-version-kind", ())
    }
    return CoreTable(table["release"], schemas, kinds)


def schema_name(group: str, version: str, kind: str) -> str | None:
    """`io.k8s.api.apps.v1.Deployment` for apps, v1, Deployment; None for a kind Kubernetes does not have."""
    return core_table().kinds.get((group, version, kind))


def core_schema(name: str) -> JSON:
    return core_table().schemas[name]
