"""Which CustomResourceDefinitions are accepted, and what is said of the others, as recorded from Kubernetes."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volcano.api.errors import BadRequest
from volcano.api.schemas.crds import crd_manifests
from volcano.api.scheme import find_resource_type
from volcano.embedded.apiserver.schemas.apply.merge import apply_patch
from volcano.embedded.apiserver.schemas.builtin.core_defaults import apply_core_defaults
from volcano.embedded.apiserver.schemas.builtin.strict_fields import check_types
from volcano.embedded.apiserver.schemas.crd.definition_validation import validate_crd, validate_crd_update
from volcano.embedded.apiserver.schemas.crd.structural import compile_schema


def recorded(name):
    """Answers of Kubernetes 1.36 to the same input."""
    return json.loads((Path(__file__).parents[1] / "vectors" / f"{name}.json").read_text())


CRD = find_resource_type("apiextensions.k8s.io", "CustomResourceDefinition")
COMMANDS = next(c for c in crd_manifests() if c["spec"]["names"]["kind"] == "Command")
KNOWN_DIFFERENCES = ("spec.version", "spec.versions", "status.storedVersions")


@pytest.mark.parametrize("vector", recorded("crds"), ids=lambda v: str(v["crd"]["spec"])[-70:])
def test_a_definition_is_judged_as_kubernetes_judges_it(vector):
    crd = copy.deepcopy(vector["crd"])
    apply_core_defaults(CRD, crd)

    errors = validate_crd(crd)

    found = [{"field": e.path, "message": e.message, "type": e.reason} for e in errors]
    comparable = [
        e
        for e in found
        if e["field"] not in KNOWN_DIFFERENCES
        and "regexp" not in e["message"]
        and "compilation failed" not in e["message"]
    ]
    assert sorted(comparable, key=str) == sorted(vector["errors"], key=str)


@pytest.mark.parametrize("crd", crd_manifests(), ids=lambda crd: crd["metadata"]["name"])
def test_our_own_definitions_are_accepted(crd):
    assert validate_crd(crd) == []


def test_two_storage_versions_are_refused():
    crd = crd_manifests()[0]
    crd["spec"]["versions"].append({**crd["spec"]["versions"][0], "name": "v2"})

    assert any("exactly one version marked as storage" in str(error) for error in validate_crd(crd))


def test_the_kind_of_an_established_definition_stays():
    old = crd_manifests()[0]
    old["status"] = {"conditions": [{"type": "Established", "status": "True"}]}
    new = copy.deepcopy(old)
    new["spec"]["names"]["kind"] = "Other"

    assert 'spec.names.kind: Invalid value: "Other": field is immutable' in map(str, validate_crd_update(new, old))


def _crd_with_queue(**schema):
    crd = crd_manifests()[0]
    properties = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    properties["spec"]["properties"]["queue"] = {"type": "string", **schema}
    return crd


def test_a_pattern_is_in_the_syntax_of_re2():
    assert validate_crd(_crd_with_queue(pattern=r"^\pL+$")) == []

    (error,) = validate_crd(_crd_with_queue(pattern="(?=a)"))

    expected = (
        "must be a valid regular expression, but isn't: error parsing regexp: invalid or unsupported Perl syntax: `(?=`"
    )
    assert error.path.endswith("properties[spec].properties[queue].pattern")
    assert error.message == f'Invalid value: "(?=a)": {expected}'


@pytest.mark.parametrize(
    ("rule", "field", "detail"),
    [
        ({"rule": "self == "}, "rule", "compilation failed: "),
        ({"rule": "unknown(self)"}, "rule", "compilation failed: "),
        ({"rule": "other == 'a'"}, "rule", "compilation failed: "),
        ({"rule": "self == 'a'", "messageExpression": "unknown(self)"}, "messageExpression", "messageExpression comp"),
    ],
)
def test_a_rule_that_does_not_compile_is_refused(rule, field, detail):
    (error,) = validate_crd(_crd_with_queue(**{"x-kubernetes-validations": [rule]}))

    assert error.path.endswith(f"properties[queue].x-kubernetes-validations[0].{field}")
    assert detail in error.message


garbage = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "spec",
                    "names",
                    "versions",
                    "schema",
                    "openAPIV3Schema",
                    "properties",
                    "items",
                    "type",
                    "allOf",
                    "not",
                    "x-kubernetes-validations",
                    "additionalProperties",
                    "default",
                    "enum",
                    "required",
                    "pattern",
                    "minimum",
                    "additionalPrinterColumns",
                    "subresources",
                    "scale",
                    "conversion",
                    "x-kubernetes-list-map-keys",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
)


@given(st.dictionaries(st.sampled_from(["spec", "metadata", "status"]), garbage))
def test_any_json_is_judged(crd):
    assert validate_crd(crd)


@given(garbage)
def test_any_schema_is_judged(schema):
    crd = copy.deepcopy(COMMANDS)
    crd["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": schema}

    validate_crd(crd)


CRD_TYPE = find_resource_type("apiextensions.k8s.io", "CustomResourceDefinition")
small = st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab^$(+*", max_size=4) | st.floats(-2, 2)
likely_schemas = st.recursive(
    st.fixed_dictionaries({"type": st.sampled_from(["string", "integer", "number", "boolean", "object"])}),
    lambda inner: st.fixed_dictionaries(
        {"type": st.sampled_from(["object", "array", "string", "integer"])},
        optional={
            "properties": st.dictionaries(st.sampled_from(["a", "b", "metadata"]), inner, max_size=3),
            "items": inner | st.fixed_dictionaries({"type": st.just("string"), "minimum": small, "maxLength": small}),
            "additionalProperties": inner | st.booleans(),
            "required": st.lists(st.sampled_from(["a", "b"]), max_size=2),
            "enum": st.lists(small, max_size=3),
            "minimum": small,
            "maxItems": small,
            "maxLength": small,
            "pattern": st.text("ab^$(+*", max_size=4),
            "multipleOf": small,
            "nullable": st.booleans(),
            "default": small,
            "format": st.sampled_from(["int32", "date-time", "x"]),
            "x-kubernetes-list-type": st.sampled_from(["set", "map", "atomic"]),
            "x-kubernetes-list-map-keys": st.lists(st.sampled_from(["a", "b"]), max_size=2),
            "x-kubernetes-preserve-unknown-fields": st.booleans(),
            "not": st.fixed_dictionaries({"enum": st.lists(small, max_size=2)}),
            "anyOf": st.lists(st.fixed_dictionaries({"minLength": small}), max_size=2),
        },
    ),
    max_leaves=6,
)
values = st.recursive(
    small, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "c"]), v, max_size=3)
)


@given(likely_schemas, values)
def test_what_is_accepted_can_be_compiled_and_judges_any_object(schema, value):
    crd = copy.deepcopy(COMMANDS)
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = {"type": "object", "properties": {"spec": schema}}
    try:
        check_types(CRD_TYPE, crd)
    except BadRequest:
        return
    if validate_crd(crd):
        return

    compiled = compile_schema(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    obj = {"spec": value}
    compiled.prune(obj)
    compiled.default(obj)

    compiled.validate(obj)
    try:
        apply_patch(None, obj, manager="m", force=True, schema=compiled, now=datetime(2026, 1, 1, tzinfo=UTC))
    except BadRequest:
        pass
