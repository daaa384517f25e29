"""Quantities are exact, canonical and rounded as Kubernetes does it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volcano.api.quantity import MAX_NANOS, Quantity, QuantityError, format_quantity, parse_quantity


@pytest.mark.parametrize(
    ("text", "nanos"),
    [
        ("0", 0), ("1", 10**9), ("500m", 5 * 10**8), ("1.5", 15 * 10**8), ("100n", 100), ("2u", 2000),
        ("1k", 10**12), ("1M", 10**15), ("1G", 10**18), ("1T", 10**21), ("1P", 10**24), ("1E", 10**27),
        ("1Ki", 1024 * 10**9), ("1Mi", 2**20 * 10**9), ("1Gi", 2**30 * 10**9), ("1Ti", 2**40 * 10**9),
        ("1Pi", 2**50 * 10**9), ("1Ei", 2**60 * 10**9), ("1.5Gi", 3 * 2**29 * 10**9), ("1e3", 10**12),
        ("1E3", 10**12), ("12e-3", 12 * 10**6), ("-2k", -2 * 10**12), ("+3", 3 * 10**9), (".5", 5 * 10**8),
        ("5.", 5 * 10**9), (7, 7 * 10**9), (0.1, 10**8), ("0.0000000001", 1), ("-0.0000000001", -1),
    ],
)  # fmt: skip
def test_every_notation_is_read_exactly(text, nanos):
    assert parse_quantity(text).nanos == nanos


@pytest.mark.parametrize(
    "text", ["", "m", "1x", "1 Gi", "1.2.3", "--1", "1ki", "0x10", "1e", "1e1e1", "Gi", ".", "1" * 200, True]
)
def test_what_is_no_quantity_is_refused_with_the_servers_words(text):
    with pytest.raises(QuantityError, match="quantities must match the regular expression"):
        parse_quantity(text)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("1000m", "1"), ("1.5Gi", "1536Mi"), ("1024Ki", "1Mi"), ("1000Ki", "1000Ki"), ("1234567", "1234567"),
        ("1000000", "1M"), ("1e3", "1e3"), ("0.5", "500m"), ("1.0000000001", "1000000001n"), ("0Gi", "0"),
        ("512", "512"), ("1500m", "1500m"), ("0.1Ki", "102400m"), ("-1.5", "-1500m"), ("100e-2", "1"),
    ],
)  # fmt: skip
def test_the_canonical_spelling_is_kubernetes_own(text, canonical):
    assert format_quantity(text) == canonical


def test_values_round_away_from_zero():
    assert parse_quantity("1.1").value == 2
    assert parse_quantity("-1.1").value == -2
    assert parse_quantity("1u").milli == 1
    assert parse_quantity("2").milli == 2000


def test_what_is_beyond_the_largest_is_capped():
    assert parse_quantity("1e300").nanos == MAX_NANOS
    assert parse_quantity("-9999999999E").nanos == -MAX_NANOS


@given(st.integers(-(10**26), 10**26), st.sampled_from(["DecimalSI", "BinarySI", "DecimalExponent"]))
def test_printing_and_reading_again_gives_the_same_amount(nanos, notation):
    quantity = Quantity(nanos, notation)

    assert parse_quantity(str(quantity)) == quantity


@given(st.text(max_size=40))
def test_any_text_is_either_a_quantity_or_refused(text):
    try:
        parse_quantity(text)
    except QuantityError:
        pass
