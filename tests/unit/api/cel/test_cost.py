"""The upper bound of a rule's work: ordinary rules stay far below the budget, attacks are above it."""

from __future__ import annotations

from typing import Any

import pytest

from volcano.api.cel.cost import ValueSizes, shape_of
from volcano.embedded.apiserver.schemas.crd.rules import MAX_COST, compile_rules

LISTENERS = [{"name": f"listener-{number}", "port": number, "protocol": "HTTPS"} for number in range(64)]
HOSTS = [f"host-{number}.example.com" for number in range(1_000)]


def cost(rule: str, value: Any) -> int:
    sizes = ValueSizes()
    sizes.add(value)
    return shape_of(rule).cost(sizes)


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        ("self.all(a, self.exists_one(b, a.name == b.name && a.port == b.port))", LISTENERS),
        ("self.hosts.all(h, h.matches('^[a-z0-9.-]+$')) && self.mode == 'x'", {"hosts": HOSTS, "mode": "x"}),
        ("self.all(h, h.lowerAscii() == h)", HOSTS),
        ("has(self.a) ? self.hosts.exists(h, h == 'x') : size(self.hosts) > 0", {"hosts": HOSTS}),
        ("self.replicas <= self.maxReplicas", {"replicas": 1, "maxReplicas": 2, "text": "x" * 100_000}),
        ("oldSelf.all(a, a in self)", HOSTS),
    ],
)
def test_ordinary_rules_cost_a_small_part_of_the_budget(rule: str, value: Any):
    assert cost(rule, value) < MAX_COST


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        ("self.list.all(a, self.text.split('').size() > 0)", {"list": [1] * 9_999, "text": "x" * 100_000}),
        ("self.list.all(a, !self.text.matches('(a|b|c)*d$'))", {"list": [1] * 9_999, "text": "abc" * 30_000}),
        ("self.all(a, self == self)", [1] * 9_999),
        ("[self, self].all(a, self.all(b, [self].exists(c, c == a)))", [1] * 9_999),
        ("self.all(a, cel.bind(b, self, b == b))", [1] * 9_999),
        ("self.split('').all(a, a.split('').all(b, a == b))", "x" * 100_000),
    ],
)
def test_rules_that_would_take_minutes_are_not_evaluated(rule: str, value: Any):
    assert cost(rule, value) > MAX_COST
    rules = compile_rules({"type": "object", "x-kubernetes-validations": [{"rule": rule}]})
    assert rules is not None

    found = rules.evaluate(value, None, "spec.value")

    assert [(each.path, "cost budget" in each.message) for each in found] == [("spec.value", True)]


def test_many_cheap_rules_over_a_large_object_share_one_budget():
    sources = [{"rule": f"self.a != '{number}'"} for number in range(1_000)]
    rules = compile_rules({"type": "object", "x-kubernetes-validations": sources})
    assert rules is not None

    found = rules.evaluate({"a": "x" * 1_000_000}, None, "spec")

    assert len(found) == 1 and "running out of cost budget" in found[0].message
