"""Every field of our kinds has a description, and no description belongs to a field that is gone."""

from __future__ import annotations

import msgspec
import pytest

from volcano.api.schemas.crds import KINDS, crd_manifests
from volcano.api.schemas.descriptions import FIELDS, KIND_DESCRIPTIONS

MANIFESTS = {crd["metadata"]["name"]: crd for crd in crd_manifests()}
CLIENT_SIDE_APPLY_LIMIT_BYTES = 262_144
"""The limit of all annotations of an object; `kubectl apply` keeps the whole manifest in one."""


def _undescribed(schema, path=""):
    for name, field in schema.get("properties", {}).items():
        if not field.get("description"):
            yield f"{path}.{name}"
        yield from _undescribed(field, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from _undescribed(schema[key], f"{path}[]")


@pytest.mark.parametrize("name", MANIFESTS)
def test_every_field_is_described(name):
    schema = MANIFESTS[name]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]

    assert schema["description"]
    assert list(_undescribed(schema)) == [".metadata"], "a real API server refuses a description of metadata"


@pytest.mark.parametrize("struct", FIELDS, ids=lambda struct: struct.__name__)
def test_no_description_without_its_field(struct):
    assert set(FIELDS[struct]) <= {field.encode_name for field in msgspec.structs.fields(struct)}


def test_every_kind_is_described():
    assert set(KIND_DESCRIPTIONS) == set(KINDS)


@pytest.mark.parametrize("name", MANIFESTS)
def test_kubectl_apply_can_still_keep_the_manifest(name):
    assert len(msgspec.json.encode(MANIFESTS[name])) < CLIENT_SIDE_APPLY_LIMIT_BYTES
