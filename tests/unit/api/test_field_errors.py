"""Field errors in Kubernetes' words."""

from typing import Any

import pytest

from volcano.api import field_errors
from volcano.api.errors import FieldError


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (None, ""),
        ("", ""),
        ("spec", "spec"),
        ((None, "spec"), "spec"),
        (((None, "tasks"), 0), "tasks[0]"),
        (((("spec", "tasks"), 0), "name"), "spec.tasks[0].name"),
    ],
)
def test_a_path_becomes_text(path: Any, text: str):
    assert field_errors.path_text(path) == text


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        pytest.param("x", '"x"', id="text"),
        pytest.param("a\x01\n", r'"a\x01\n"', id="control characters as by %q"),
        pytest.param("<ü>", '"<ü>"', id="text is not escaped for HTML"),
        pytest.param(1.0, "1", id="1.0 is 1"),
        pytest.param(1e-5, "1e-05", id="a float as by %v"),
        pytest.param(-1, "-1", id="whole number"),
        pytest.param(True, "true", id="truth"),
        pytest.param(None, "null", id="null"),
        pytest.param({"b": 1.0, "a": "<ü>"}, r'{"a":"\u003cü\u003e","b":1}', id="the rest as JSON"),
    ],
)
def test_a_value_is_printed_as_kubernetes_prints_it(value: Any, printed: str):
    assert field_errors.shown(value) == printed
    assert field_errors.duplicate("p", value).message == f"Duplicate value: {printed}"


@pytest.mark.parametrize(
    ("error", "message", "reason"),
    [
        (field_errors.invalid("p", 1, "why"), "Invalid value: 1: why", "FieldValueInvalid"),
        (field_errors.invalid("p", 1, ""), "Invalid value: 1", "FieldValueInvalid"),
        (field_errors.type_invalid("p", "x", "why"), 'Invalid value: "x": why', "FieldValueTypeInvalid"),
        (field_errors.required("p"), "Required value", "FieldValueRequired"),
        (field_errors.required("p", "why"), "Required value: why", "FieldValueRequired"),
        (field_errors.forbidden("p"), "Forbidden", "FieldValueForbidden"),
        (field_errors.forbidden("p", "why"), "Forbidden: why", "FieldValueForbidden"),
        (field_errors.not_found("p", "x"), 'Not found: "x"', "FieldValueNotFound"),
        (field_errors.not_supported("p", "x", ()), 'Unsupported value: "x"', "FieldValueNotSupported"),
        (
            field_errors.not_supported("p", None, ("a", 1.0, {"b": 2})),
            r'Unsupported value: null: supported values: "a", "1", "{\"b\":2}"',
            "FieldValueNotSupported",
        ),
        (field_errors.too_long("p", 1), "Too long: may not be more than 1 byte", "FieldValueTooLong"),
        (field_errors.too_long("p", 63), "Too long: may not be more than 63 bytes", "FieldValueTooLong"),
        (field_errors.too_many("p", 2, 1), "Too many: 2: must have at most 1 item", "FieldValueTooMany"),
        (field_errors.too_many("p", 4, 3), "Too many: 4: must have at most 3 items", "FieldValueTooMany"),
    ],
)
def test_each_kind_of_error_has_its_words(error: FieldError, message: str, reason: str):
    assert error == FieldError("p", message, reason)


def test_an_error_without_a_field_says_so():
    assert str(field_errors.pathless("why")) == '<nil>: Invalid value: "": why'
