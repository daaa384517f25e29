"""Values as Go prints them: fmt %q and %v, encoding/json, by their documented rules."""

import json
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from volcano.api.go_text import go_json, go_number, quoted


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        pytest.param("plain", '"plain"', id="plain"),
        pytest.param('a"b\\c', r'"a\"b\\c"', id="quotes and backslashes"),
        pytest.param("\a\b\f\n\r\t\v", r'"\a\b\f\n\r\t\v"', id="control characters with a letter"),
        pytest.param("\x00\x1b\x7f", r'"\x00\x1b\x7f"', id="control characters without one"),
        pytest.param("\x80\xad", r'"\u0080\u00ad"', id="Latin-1 that does not print"),
        pytest.param("ü€世", '"ü€世"', id="non-ASCII that prints stays"),
        pytest.param("\u200b\u2028\ufeff", r'"\u200b\u2028\ufeff"', id="non-ASCII that does not print"),
        pytest.param("\U0001f600", '"\U0001f600"', id="beyond the basic plane"),
        pytest.param("\U000e0001", r'"\U000e0001"', id="a tag character"),
        pytest.param("<&>", '"<&>"', id="angle brackets stay"),
    ],
)
def test_a_text_is_quoted_as_by_percent_q(text: str, printed: str):
    assert quoted(text) == printed


@pytest.mark.parametrize(
    ("value", "printed", "in_json"),
    [
        (1.0, "1", "1"),
        (-1.5, "-1.5", "-1.5"),
        (0.0, "0", "0"),
        (-0.0, "-0", "-0"),
        (0.1, "0.1", "0.1"),
        (100.25, "100.25", "100.25"),
        (1e-4, "0.0001", "0.0001"),
        (1e-5, "1e-05", "0.00001"),
        (1.5e-6, "1.5e-06", "0.0000015"),
        (1.5e-7, "1.5e-07", "1.5e-7"),
        (1e16, "10000000000000000", "10000000000000000"),
        (1.5e16, "15000000000000000", "15000000000000000"),
        (123456789012345680000.0, "123456789012345680000", "123456789012345680000"),
        (1e21, "1e+21", "1e+21"),
        (-1.5e300, "-1.5e+300", "-1.5e+300"),
        (5e-324, "5e-324", "5e-324"),
    ],
)
def test_a_float_is_printed_by_its_shortest_digits(value: float, printed: str, in_json: str):
    assert (go_number(value), go_json(value), go_json([value])) == (printed, in_json, f"[{in_json}]")


@pytest.mark.parametrize(("value", "printed"), [(math.nan, "NaN"), (math.inf, "+Inf"), (-math.inf, "-Inf")])
def test_what_is_no_number_is_named(value: float, printed: str):
    assert go_number(value) == printed


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        pytest.param({"b": 1, "a": 2}, '{"a":2,"b":1}', id="keys are sorted"),
        pytest.param({"b": {"d": 1, "c": 2}}, '{"b":{"c":2,"d":1}}', id="inside, too"),
        pytest.param({"a": 1.0, "b": [2.0]}, '{"a":1,"b":[2]}', id="1.0 is 1 at any depth"),
        pytest.param(["<a & b>"], r'["\u003ca \u0026 b\u003e"]', id="angle brackets and ampersands"),
        pytest.param(["\u2028\u2029"], r'["\u2028\u2029"]', id="line separators of JavaScript"),
        pytest.param({"ü": "世"}, '{"ü":"世"}', id="non-ASCII stays"),
        pytest.param(["\n\x01"], r'["\n\u0001"]', id="control characters"),
        pytest.param([None, True, False, 3], "[null,true,false,3]", id="plain values"),
        pytest.param(2**70, "1180591620717411303424", id="a number beyond 64 bits"),
    ],
)
def test_json_is_written_as_by_encoding_json(value: object, printed: str):
    assert go_json(value) == printed


@given(st.floats(allow_nan=False, allow_infinity=False))
@example(9007199254740993.0)
@example(5.128138125471603e16)
def test_printed_floats_read_back(value: float):
    assert float(go_number(value)) == value
    assert float(json.loads(go_json({"x": value}))["x"]) == value
