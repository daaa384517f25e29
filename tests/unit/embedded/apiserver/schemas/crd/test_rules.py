"""Validation rules: those of HyperNode, and those of any definition."""

from __future__ import annotations

import pytest

from volcano.api.schemas.crds import crd_manifests
from volcano.embedded.apiserver.schemas.crd.structural import compile_schema

HYPERNODES = compile_schema(
    next(c for c in crd_manifests() if c["spec"]["names"]["kind"] == "HyperNode")["spec"]["versions"][0]["schema"][
        "openAPIV3Schema"
    ]
)


def _ruled(*rules, **schema):
    spec = {"type": "object", "x-kubernetes-validations": list(rules), **schema}
    return compile_schema({"type": "object", "properties": {"spec": spec}})


def _hypernode(selector):
    return {"spec": {"tier": 1, "members": [{"type": "Node", "selector": selector}]}}


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ({}, "Either ExactMatch or RegexMatch or LabelMatch must be specified"),
        (
            {"exactMatch": {"name": "a"}, "regexMatch": {"pattern": "b"}},
            "Only one of ExactMatch, RegexMatch, or LabelMatch can be specified",
        ),
    ],
)
def test_a_hypernode_member_has_exactly_one_selector(selector, message):
    errors = HYPERNODES.validate(_hypernode(selector))

    assert [str(error) for error in errors] == [f"spec.members[0].selector: Invalid value: {message}"]


def test_one_selector_is_enough():
    assert HYPERNODES.validate(_hypernode({"labelMatch": {}})) == []


def test_rules_are_not_asked_about_an_object_of_the_wrong_shape():
    errors = HYPERNODES.validate(_hypernode("everything"))

    assert [error.reason for error in errors] == ["FieldValueTypeInvalid"]


def test_a_rule_that_fails_is_quoted_unless_it_has_a_message():
    properties = {"min": {"type": "integer"}, "max": {"type": "integer"}}
    schema = _ruled({"rule": "self.min <= self.max"}, properties=properties)

    assert schema.validate({"spec": {"min": 1, "max": 2}}) == []
    errors = schema.validate({"spec": {"min": 3, "max": 2}})
    assert [str(e) for e in errors] == ["spec: Invalid value: failed rule: self.min <= self.max"]


def test_a_message_expression_a_reason_and_a_field_path_are_used():
    rule = {
        "rule": "self.replicas > 0",
        "messageExpression": "'replicas is ' + string(self.replicas)",
        "reason": "FieldValueForbidden",
        "fieldPath": ".replicas",
    }
    schema = _ruled(rule, properties={"replicas": {"type": "integer"}})

    errors = schema.validate({"spec": {"replicas": 0}})

    assert [(str(e), e.reason) for e in errors] == [("spec.replicas: Forbidden: replicas is 0", "FieldValueForbidden")]


def test_a_transition_rule_is_asked_only_of_a_change():
    schema = _ruled(
        {"rule": "self.queue == oldSelf.queue", "message": "queue is immutable"},
        properties={"queue": {"type": "string"}},
    )

    assert schema.validate({"spec": {"queue": "a"}}) == []
    assert schema.validate({"spec": {"queue": "a"}}, old={"spec": {"queue": "a"}}) == []
    errors = schema.validate({"spec": {"queue": "b"}}, old={"spec": {"queue": "a"}})
    assert [error.message for error in errors] == ["Invalid value: queue is immutable"]


def test_names_that_are_no_identifiers_are_escaped_and_times_are_times():
    schema = _ruled(
        {"rule": "self.__namespace__ == 'x' && self.a__dash__b > 1"},
        {"rule": "self.until > timestamp('2020-01-01T00:00:00Z')"},
        properties={
            "namespace": {"type": "string"},
            "a-b": {"type": "integer"},
            "until": {"type": "string", "format": "date-time"},
        },
    )

    assert schema.validate({"spec": {"namespace": "x", "a-b": 2, "until": "2021-01-01T00:00:00Z"}}) == []
    assert len(schema.validate({"spec": {"namespace": "y", "a-b": 2, "until": "2019-01-01T00:00:00Z"}})) == 2


def test_a_rule_about_a_missing_field_fails_and_says_so():
    schema = _ruled({"rule": "self.x > 1"}, properties={"x": {"type": "integer"}})

    (error,) = schema.validate({"spec": {}})

    assert "evaluating rule: self.x > 1" in error.message


def test_rules_in_list_elements_name_the_element():
    items = {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.a > 1"}],
    }
    schema = compile_schema({"type": "object", "properties": {"list": {"type": "array", "items": items}}})

    errors = schema.validate({"list": [{"a": 2}, {"a": 0}]})

    assert [error.path for error in errors] == ["list[1]"]


def test_a_rule_that_does_not_compile_refuses_every_value_it_is_about():
    schema = _ruled({"rule": "self.x > unknown(1)"}, properties={"x": {"type": "integer"}})

    (error,) = schema.validate({"spec": {"x": 0}})

    assert error.path == "spec"
    assert "rule compile error: " in error.message and "unknown" in error.message
    assert schema.validate({}) == []
