"""Rules that would make gigabytes of a small object are not evaluated; usual rules are."""

from __future__ import annotations

import pytest

from volcano.api.cel.evaluator import compile_program, evaluate

VALUE = {"a": "x" * 1000, "l": ["a", "b"]}


@pytest.mark.parametrize(
    "rule",
    [
        "self.a" + ".replace('x', 'xxxxxxxxxx')" * 8 + ".size() > 0",
        "self.a" + ".split('').join(self.a)" * 3 + ".size() > 0",
        "self.a.replace('x', self.a).replace('x', self.a).replace('x', self.a).size() > 0",
        "".join(f"cel.bind(v{n}, {f'v{n - 1} + v{n - 1}' if n else 'self.a'}, " for n in range(30))
        + "v29.size() > 0"
        + ")" * 30,
    ],
    ids=["replace", "join", "replace by itself", "bind"],
)
def test_a_rule_that_multiplies_texts_is_not_evaluated(rule: str):
    program = compile_program(rule)

    found = evaluate(program, VALUE, None, {}) if not program.error else program.error

    assert isinstance(found, str), "neither true nor false"
    assert "cost budget" in found or "depth" in found.lower() or "nest" in found.lower() or program.error


@pytest.mark.parametrize(
    "rule",
    [
        "self.a.replace('x', 'yz').size() == 2000",
        "self.l.join(', ') == 'a, b'",
        "self.a + self.a + 'b' + 'c' != ''",
        "cel.bind(v, self.a + '+', v.size() == 1001)",
        "self.a.replace('y', self.l[0]) == self.a",
    ],
)
def test_usual_rules_are_evaluated(rule: str):
    assert evaluate(compile_program(rule), VALUE, None, {}) is True
