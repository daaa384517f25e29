"""Patterns of users: RE2's syntax and Go's errors, and no pattern that takes long."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volcano.api.patterns import MAX_PATTERN_BYTES, PatternError, compile_pattern
from volcano.api.schema_annotations import SUBDOMAIN_PATTERN

GO_ERRORS = json.loads(Path(__file__).with_name("go_pattern_errors.json").read_text())


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
        (r"^\pL+$", "äλ", True),
        (r"^\p{Greek}$", "ä", False),
        (r"^\Qa.b\E$", "a.b", True),
        (r"^\\C$", "\\C", True),
        ("(?U)^a+", "aa", True),
        ("^.$", "é", True),
        ("^.$", "\ud800", True),
    ],
)
def test_a_pattern_means_what_it_means_in_go(pattern, text, matches):
    assert compile_pattern(pattern).matches(text) is matches


@pytest.mark.parametrize(("pattern", "error"), GO_ERRORS.items())
def test_go_and_this_accept_the_same_patterns_and_report_the_same_errors(pattern, error):
    if not error:
        compile_pattern(pattern)
        return

    with pytest.raises(PatternError) as raised:
        compile_pattern(pattern)

    assert str(raised.value) == error


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("a" * (MAX_PATTERN_BYTES + 1), f"the pattern is longer than {MAX_PATTERN_BYTES} bytes"),
        (r"(\pL{200}){4}", "error parsing regexp: expression too large"),
        ("\ud800", "error parsing regexp: invalid UTF-8"),
    ],
)
def test_a_pattern_that_is_too_large_or_no_text_is_refused(pattern, message):
    with pytest.raises(PatternError, match=re.escape(message)):
        compile_pattern(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "^(a+)+$",
        "^(a|a)*$",
        "^(a*)*b$",
        "(.*a){25}$",
        "(x+x+)+y",
        "^(.*?,){11}P$",
        "(a|aa)+$",
        r"^(\.[a-z]*[a-z]*)*$",
        "(a|b)*a(a|b){900}c",
    ],
)
def test_patterns_that_make_a_backtracking_engine_hang_do_not(pattern):
    compiled = compile_pattern(pattern)

    compiled.matches("a" * 5000 + "!")
    compiled.matches("1,2,3,4,5,6,7,8,9,10,11,12,13" * 50)
    compiled.matches(".aaaaab" * 1000 + "!")


def test_a_name_of_the_greatest_length_is_still_checked():
    pattern = compile_pattern(SUBDOMAIN_PATTERN)

    assert pattern.matches("a" * 253)
    assert pattern.matches("a.b-c." * 42 + "z")
    assert not pattern.matches("a" * 252 + "-")


def test_a_text_that_would_take_too_long_does_not_match():
    pattern = compile_pattern("(a|b)*a(a|b){900}")

    assert pattern.matches("a" * 1000)
    assert not pattern.matches("a" * 3_000_000)
    with pytest.raises(ValueError, match="3000000 bytes"):
        pattern.find_all("a" * 3_000_000)


def test_all_matches_are_found_up_to_a_limit():
    pattern = compile_pattern("[0-9]*")

    assert pattern.find_all("12é3") == ["12", "", "3", ""]
    assert pattern.find_all("12é3", 1) == ["12"]
    with pytest.raises(ValueError, match="more than 1000 times"):
        compile_pattern("a|.*b").find_all("a" * 100_000)


pieces = st.sampled_from(["a", "b", "[ab]", "[^a]", ".", "(a|b)", "(ab)", r"\d", r"\w", "^", "$", r"\b"])
quantified = st.builds(lambda p, q: p + q, pieces, st.sampled_from(["", "", "*", "+", "?", "{2}", "{1,3}", "*?"]))
patterns = st.lists(quantified, max_size=5).map("".join)


@given(patterns, st.text("ab1 -", max_size=8))
def test_where_both_know_a_pattern_python_and_re2_agree(pattern, text):
    try:
        expected = re.compile(pattern.replace("$", r"\Z"), re.ASCII)
    except re.error:
        return

    assert compile_pattern(pattern).matches(text) is (expected.search(text) is not None)


@given(st.text())
def test_any_text_is_a_pattern_or_an_error(pattern):
    try:
        compile_pattern(pattern).matches(pattern)
    except PatternError as error:
        assert str(error)
