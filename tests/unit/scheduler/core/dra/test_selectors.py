"""Device selectors: what of a device an expression can see."""

from __future__ import annotations

import pytest

from volcano.scheduler.core.dra.published import PublishedDevice, read_slice
from volcano.scheduler.core.dra.selectors import LookedAt, SelectorFailed, is_selected, looked_at

EVERYTHING = LookedAt(is_everything=True)


def names(*listed: str) -> LookedAt:
    return LookedAt(frozenset(listed))


@pytest.mark.parametrize(
    ("expression", "seen"),
    [
        ('device.driver == "d"', names()),
        ("device.allowMultipleAllocations", names()),
        ('device.attributes["d"].model == "a"', names("d/model")),
        ("device.attributes['d'].model.startsWith('a')", names("d/model")),
        ('device.attributes["d"]["model"] == "a"', names("d/model")),
        ('has(device.attributes["d"].a) && device.capacity["e"].b.isGreaterThan(quantity("1"))', names("d/a", "e/b")),
        ('cel.bind(own, device.attributes["d"], own.a && own.b)', LookedAt(domains=frozenset({"d"}))),
        ('device.attributes["d"].exists(name, name == "a")', LookedAt(domains=frozenset({"d"}))),
        ('device.attributes["d"].?model.orValue("") == "a"', LookedAt(domains=frozenset({"d"}))),
        ('"d" in device.attributes', EVERYTHING),
        ('device.attributes["d" + "e"].model == "a"', EVERYTHING),
        ('device.attributes["\\u0064"].model == "a"', EVERYTHING),
        ("[device].exists(each, each.attributes['d'].model == 'a')", EVERYTHING),
    ],
)
def test_an_expression_sees_the_attributes_that_it_names(expression: str, seen: LookedAt):
    assert looked_at(expression) == seen


def device(**attributes: str) -> PublishedDevice:
    stated = {"name": "n", "attributes": {name: {"string": value} for name, value in attributes.items()}}
    return read_slice("s", {"devices": [stated]}, ("d", "p")).devices[0]


def test_devices_that_differ_in_other_attributes_get_the_same_answer():
    expression = 'device.attributes["d"].model == "a"'

    assert is_selected(expression, device(model="a", uuid="1"))
    assert is_selected(expression, device(model="a", uuid="2"))
    assert not is_selected(expression, device(model="b", uuid="1"))


def test_a_name_that_a_device_lacks_is_an_error_whatever_else_it_has():
    with pytest.raises(SelectorFailed, match="runtime error"):
        is_selected('device.attributes["d"].model == "a"', device(uuid="1"))
