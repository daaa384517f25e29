"""Amounts as people read them."""

import pytest

from volcano.api.quantity import parse_quantity
from volcano.cli.human_units import human


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", "3500m", "3.5"),
        ("cpu", "1950m", "1.9"),
        ("cpu", "50m", "50m"),
        ("cpu", "0", "0"),
        ("cpu", "1280", "1280"),
        ("memory", "33554432Ki", "32Gi"),
        ("memory", "12900Mi", "12.6Gi"),
        ("memory", "512", "512"),
        ("memory", "160M", "153Mi"),
        ("hugepages-2Mi", "1Gi", "1Gi"),
        ("nvidia.com/gpu", "8", "8"),
    ],
)
def test_amounts_are_short(resource, amount, text):
    assert human(resource, parse_quantity(amount)) == text
