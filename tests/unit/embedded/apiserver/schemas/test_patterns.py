"""Patterns: RE2's dialect, and no pattern that can be made to run for ever."""

from __future__ import annotations

import re
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volcano.api.schema import LABEL_PATTERN, SUBDOMAIN_PATTERN
from volcano.api.struct_schema import QUANTITY_PATTERN
from volcano.embedded.apiserver.schemas.linear_patterns import Automaton, TooComplex, risk_of
from volcano.embedded.apiserver.schemas.patterns import MOST_STEPS, compile_pattern, is_foreign


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("^a$", "a\n", False),
        (r"^a\z", "a", True),
        ("^[[:alpha:]]+$", "abc", True),
        ("^[[:alpha:]]+$", "ab1", False),
        ("^[]a]$", "]", True),
        ("^[^]a]$", "]", False),
        ("b", "abc", True),
        ("^[a[b]$", "[", True),
        (r"^\d+$", "１", False),
        ("(?i)^ABC$", "abc", True),
        ("", "anything", True),
        (r"^[$]$", "$", True),
    ],
)
def test_a_pattern_means_what_it_means_in_go(pattern, text, matches):
    compiled = compile_pattern(pattern)

    assert compiled is not None
    assert compiled.matches(text) is matches


@pytest.mark.parametrize("pattern", ["(", "[", "*", "(?P<a", r"\pL", "a" * 10_000])
def test_what_cannot_be_said_in_python_is_no_pattern(pattern):
    assert compile_pattern(pattern) is None


def test_only_re2s_own_words_are_foreign():
    assert is_foreign(r"^\pL+$")
    assert not is_foreign("(")


@pytest.mark.parametrize(
    "pattern",
    [
        "^(a+)+$",
        "^(a|a)*$",
        "^(a*)*b$",
        "^([a-z]+)*$",
        "(.*a){25}$",
        "(x+x+)+y",
        "^(.*?,){11}P$",
        "(a|aa)+$",
        r"^(\.[a-z]*[a-z]*)*$",
        r"^(\.(a|b|ab)*)*$",
    ],
)
def test_evil_patterns_answer_at_once(pattern):
    compiled = compile_pattern(pattern)

    assert compiled is not None
    compiled.matches("a" * 40 + "!")
    compiled.matches("a" * 5000 + "!")
    compiled.matches("1,2,3,4,5,6,7,8,9,10,11,12,13" * 50)
    compiled.matches(".aaaaab" * 40 + "!")


@pytest.mark.parametrize("pattern", [LABEL_PATTERN, SUBDOMAIN_PATTERN, QUANTITY_PATTERN])
def test_our_own_patterns_need_no_automaton_for_the_names_people_use(pattern):
    assert 20 ** risk_of(pattern) < MOST_STEPS
    assert risk_of("^(a+)+$") == inf


def test_a_name_of_the_greatest_length_is_still_judged():
    pattern = compile_pattern(SUBDOMAIN_PATTERN)

    assert pattern is not None
    assert pattern.matches("a" * 253)
    assert pattern.matches("a.b-c." * 42 + "z")
    assert not pattern.matches("a" * 252 + "-")


pieces = st.sampled_from(["a", "b", "[ab]", "[^a]", ".", "(a|b)", "(ab)", r"\d", r"\w", "^", "$", r"\b"])
quantified = st.builds(lambda p, q: p + q, pieces, st.sampled_from(["", "", "*", "+", "?", "{2}", "{1,3}", "*?"]))
patterns = st.lists(quantified, max_size=5).map("".join)


@given(patterns, st.text("ab1 -", max_size=8))
def test_the_automaton_answers_as_pythons_engine(pattern, text):
    pattern = pattern.replace("$", r"\Z")
    try:
        engine, automaton = re.compile(pattern, re.ASCII), Automaton(pattern)
    except (re.error, TooComplex):
        return

    assert automaton.search(text) is (engine.search(text) is not None)
