"""OpenAPI documents: what kubectl and Helm look for in them."""

from __future__ import annotations

import pytest

from volcano.api.schemas.crds import crd_manifests
from volcano.api.scheme import BUILT_IN, VOLCANO
from volcano.embedded.apiserver.schemas.openapi.documents import (
    component_name,
    openapi_v2,
    openapi_v2_protobuf,
    openapi_v3,
    openapi_v3_index,
)

ROWS = (*BUILT_IN, *VOLCANO)
CRDS = {c["metadata"]["name"]: c["spec"]["versions"][0]["schema"]["openAPIV3Schema"] for c in crd_manifests()}
GROUP_VERSIONS = sorted({row.api_version for row in ROWS})


def _references(value):
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for item in value.values():
            yield from _references(item)
    elif isinstance(value, list):
        for item in value:
            yield from _references(item)


@pytest.mark.parametrize("group_version", GROUP_VERSIONS)
def test_every_reference_of_a_document_leads_somewhere(group_version):
    document = openapi_v3(group_version, ROWS, CRDS)

    names = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert set(_references(document)) <= names


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.qualified)
def test_kubectl_finds_that_a_kind_can_be_validated_by_the_server(row):
    document = openapi_v3(row.api_version, ROWS, CRDS)
    kind = {"group": row.group, "kind": row.kind, "version": row.version}

    patches = [
        item["patch"]
        for item in document["paths"].values()
        if "patch" in item and item["patch"]["x-kubernetes-group-version-kind"] == kind
    ]

    assert patches
    assert all(
        any(p["name"] == "fieldValidation" and p["in"] == "query" for p in patch["parameters"]) for patch in patches
    )


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.qualified)
def test_kubectl_explain_finds_the_schema_of_a_kind(row):
    document = openapi_v3(row.api_version, ROWS, CRDS)
    root = f"/apis/{row.group}/{row.version}" if row.group else f"/api/{row.version}"

    found = document["paths"][f"{root}/{row.plural}"]["get"]["x-kubernetes-group-version-kind"]
    schema = document["components"]["schemas"][component_name(row)]

    assert found in schema["x-kubernetes-group-version-kind"]
    assert "metadata" in schema["properties"]


def test_a_custom_kind_is_named_after_its_group_backwards():
    schemas = openapi_v3("batch.volcano.sh/v1alpha1", ROWS, CRDS)["components"]["schemas"]

    tasks = schemas["sh.volcano.batch.v1alpha1.Job"]["properties"]["spec"]["properties"]["tasks"]
    assert "partitionPolicy" in tasks["items"]["properties"]
    assert "sh.volcano.batch.v1alpha1.JobList" in schemas


def test_the_index_says_where_each_document_is():
    index = openapi_v3_index({"v1": "AA", "apps/v1": "BB"})

    assert index == {
        "paths": {
            "api/v1": {"serverRelativeURL": "/openapi/v3/api/v1?hash=AA"},
            "apis/apps/v1": {"serverRelativeURL": "/openapi/v3/apis/apps/v1?hash=BB"},
        }
    }


def test_swagger_has_no_word_it_does_not_know():
    document = openapi_v2(ROWS, CRDS)

    def words(value, is_schema):
        if isinstance(value, dict):
            if is_schema:
                yield from value
            for key, item in value.items():
                if key in ("properties", "definitions"):
                    for child in item.values():
                        yield from words(child, True)
                elif key in ("items", "additionalProperties", "schema"):
                    yield from words(item, True)

    used = {word for schema in document["definitions"].values() for word in words(schema, True)}
    assert not used & {"anyOf", "oneOf", "not", "nullable", "allOf", "default"}
    names = {f"#/definitions/{name}" for name in document["definitions"]}
    assert set(_references(document)) <= names


def _parse(raw):
    """A protobuf message as (number, value) pairs."""
    at, found = 0, []

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = raw[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(raw):
        tag = varint()
        if tag & 7 == 2:
            length = varint()
            found.append((tag >> 3, raw[at : at + length]))
            at += length
        elif tag & 7 == 1:
            found.append((tag >> 3, raw[at : at + 8]))
            at += 8
        else:
            found.append((tag >> 3, varint()))
    return found


def test_swagger_as_protobuf_has_all_paths_and_definitions():
    document = openapi_v2(ROWS, CRDS)

    message = dict(_parse(openapi_v2_protobuf(document)))

    paths = [dict(_parse(value))[1].decode() for _, value in _parse(message[8])]
    definitions = [dict(_parse(value)) for _, value in _parse(message[9])]
    assert message[1] == b"2.0"
    assert paths == list(document["paths"])
    assert [d[1].decode() for d in definitions] == list(document["definitions"])
    pod = next(d for d in definitions if d[1] == b"io.k8s.api.core.v1.Pod")
    properties = dict(_parse(pod[2]))[25]
    assert [dict(_parse(p))[1].decode() for _, p in _parse(properties)] == [
        "apiVersion", "kind", "metadata", "spec", "status",
    ]  # fmt: skip


@pytest.mark.parametrize("group_version", GROUP_VERSIONS)
def test_every_operation_says_what_success_and_errors_look_like(group_version):
    document = openapi_v3(group_version, ROWS, CRDS)

    operations = [
        (method, operation)
        for item in document["paths"].values()
        for method, operation in item.items()
        if method != "parameters"
    ]
    for method, operation in operations:
        codes = set(operation["responses"])
        assert codes >= {"200", "401", "default"}
        assert ("201" in codes) == (method in ("post", "put", "patch"))
